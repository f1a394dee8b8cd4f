"""The course of one list: the pages a rater goes through, in order, one answer each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from felicity.humans.lists import Trial
from felicity.humans.stimuli import Stimulus
from felicity.humans.study import PREFER_NOT, Demographic, RatingStudy
from felicity.humans.tasks import Answer, Unanswered, read_answer

StepKind = Literal["instructions", "quiz", "demographics", "practice", "trial", "question"]


@dataclass(frozen=True)
class Step:
    """One page that waits for one answer; `number` counts main trials from 1, practice is 0."""

    kind: StepKind
    number: int = 0
    trial: Trial | None = None

    def stimulus(self, study: RatingStudy) -> Stimulus:
        """What a trial or its question is about."""
        if self.trial is None:
            raise ValueError(f"a step of kind {self.kind} has no stimulus")
        return study.stimuli[self.trial.row]


def plan_steps(study: RatingStudy, trials: Sequence[Trial], *, first: bool) -> list[Step]:
    """Every step of a list; `first` is false for a further list of the same rater, who has read it all."""
    steps = []
    if first:
        steps += [Step("instructions")] if study.instructions else []
        steps += [Step("quiz")] if study.quiz else []
        steps += [Step("demographics")] if study.demographics else []
        steps += [Step("practice")] if study.practice else []
    number = 0
    for trial in trials:
        stimulus = study.stimuli[trial.row]
        if stimulus.role == "practice" and not first:
            continue
        number += stimulus.role != "practice"
        shown = 0 if stimulus.role == "practice" else number
        steps.append(Step("trial", shown, trial))
        if stimulus.question:
            steps.append(Step("question", shown, trial))
    return steps


def count_trials(steps: Sequence[Step]) -> int:
    """How many main trials a list has."""
    return max((step.number for step in steps), default=0)


def read_step(study: RatingStudy, step: Step, form: Mapping[str, str]) -> Answer:
    """The answer to any step in a submitted form.

    Raises Unanswered.
    """
    if step.kind == "trial" and step.trial is not None:
        return read_answer(study.task, step.stimulus(study), form, flipped=step.trial.flipped)
    if step.kind == "question":
        return read_question(step.stimulus(study), form)
    if step.kind == "quiz":
        return read_quiz(study, form)
    if step.kind == "demographics":
        return Answer(detail=read_demographics(study, form))
    return Answer()


def read_question(stimulus: Stimulus, form: Mapping[str, str]) -> Answer:
    """The answer to a comprehension question, as the place of the chosen one.

    Raises Unanswered.
    """
    chosen = _pick(form.get("answer", ""), stimulus.choices)
    rt = form.get("rt", "")
    return Answer(
        raw=chosen,
        correct=chosen == stimulus.correct,
        rt_ms=float(rt) if rt.replace(".", "", 1).isdecimal() and len(rt) < 12 else None,
        flags=() if form.get("script") else ("no_script",),
    )


def read_quiz(study: RatingStudy, form: Mapping[str, str]) -> Answer:
    """The answers to the questions about the instructions.

    Raises Unanswered.
    """
    quiz = study.quiz
    if quiz is None:
        raise ValueError("this study has no quiz")
    given = [_pick(form.get(f"q{n}", ""), question.choices) for n, question in enumerate(quiz.questions)]
    right = [answer == question.correct for answer, question in zip(given, quiz.questions, strict=True)]
    return Answer(correct=all(right), detail={"right": right})


def read_demographics(study: RatingStudy, form: Mapping[str, str]) -> dict[str, str]:
    """What a rater says about themselves; numbers are binned here, so that they are never stored.

    Raises Unanswered.
    """
    return {question.name: _read_demographic(question, form) for question in study.demographics}


def _read_demographic(question: Demographic, form: Mapping[str, str]) -> str:
    if form.get(f"{question.name}_declined"):
        return PREFER_NOT
    given = form.get(question.name, "").replace("\x00", "").strip()
    if question.kind == "choice":
        return PREFER_NOT if given == PREFER_NOT else _pick(given, question.choices)
    if not given or len(given) > 200:
        raise Unanswered("please_answer")
    if question.kind == "text":
        return given
    if not given.isdecimal() or len(given) > 9 or not question.minimum <= int(given) <= question.maximum:
        raise Unanswered("please_number")
    return _bin(int(given), question.bins) if question.bins else str(int(given))


def _bin(value: int, bins: Sequence[int]) -> str:
    """The bin of a value, each from one bound up to the next.

    >>> _bin(30, (18, 25, 35)), _bin(40, (18, 25, 35)), _bin(3, (18, 25, 35))
    ('25-34', '35+', 'under 18')
    """
    if value < bins[0]:
        return f"under {bins[0]}"
    for low, high in pairwise(bins):
        if value < high:
            return f"{low}-{high - 1}"
    return f"{bins[-1]}+"


def _pick(given: str, choices: Sequence[str]) -> str:
    """The choice whose place was submitted."""
    if not given.isdecimal() or len(given) > 3 or int(given) >= len(choices):
        raise Unanswered("please_answer")
    return choices[int(given)]
