"""Small sets made larger by a language model: ask, store, parse, check, queue for people.

A folder holds everything: `task.json` (what is asked), `sent.jsonl` (every request, noted before it is
sent), `answers.jsonl` (every raw answer),
`log.jsonl` (what became of every sentence, and every decision after that). The work stops when enough
pairs wait for people, or when too few new ones come; started again, it resumes and sends no request twice.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from filelock import FileLock, Timeout

from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import disk_errors, is_alive, read_text, replacing
from felicity.core.ids import fingerprint
from felicity.core.progress import Progress
from felicity.stimuli.checks import WordList
from felicity.stimuli.extension.forms import FORMS
from felicity.stimuli.extension.prompts import Prompt, build_prompt, pair_sentences, split_answer
from felicity.stimuli.extension.rules import UNPAIRED, RuleInput, Seen, Violation, check_pair, check_sentence
from felicity.stimuli.extension.transcript import DIGEST, ModelAnswer, Transcript
from felicity.stimuli.items import Pair, build_items, write_items
from felicity.stimuli.review import PAPER_ROWS, Event, Log, State, replay_log, tabulate_rejections

TASK = "task.json"
ANSWERS = "answers.jsonl"
LOG = "log.jsonl"
STARTER = ".starter"
INTERRUPTED = "interrupted"
WAIT_SECONDS = 0.1
# Pairs that pass the rules, per sentence asked for: what GPT-3 gave for ROLE-1500, as a first guess.
FIRST_YIELD = 0.16
CHARACTERS_PER_TOKEN = 4.0

Generate = Callable[[str, int], list[ModelAnswer]]


@dataclass(frozen=True, kw_only=True)
class ExtensionTask:
    """What a model is asked for; it may not change once answers are stored.

    dataset: what is extended. form: how its pairs are built. k: examples in a prompt. parameters: how
    the model continues a text. model: what is known of it. seeds: the pairs to show, by item.
    """

    dataset: str
    form: str
    instruction: str
    k: int
    seed: int
    parameters: dict[str, Any]
    model: dict[str, Any]
    seeds: list[list[str]] = field(default_factory=list)

    @property
    def seed_pairs(self) -> list[Pair]:
        """The seeds as pairs."""
        return [Pair(*seed) for seed in self.seeds]

    def prompt(self, number: int) -> Prompt:
        """The prompt of request `number`, counted from 1."""
        return build_prompt(self.seed_pairs, self.instruction, k=self.k, seed=self.seed, number=number)


@dataclass(frozen=True)
class Limits:
    """When to stop: `n` pairs wait for people or are accepted; fewer than `least_yield` new pairs per
    request over the last `window` requests; `most` requests were asked."""

    n: int
    least_yield: float = 0.05
    window: int = 20
    most: int = 10_000


@dataclass(frozen=True)
class ExtensionResult:
    """The result of an extension: requests stored and now asked, pairs queued, and why it stopped.

    repeated: requests that were sent again since the folder was begun, because a process was killed with
    them under way.
    """

    requests: int
    asked: int
    queued: int
    stopped: str
    repeated: int


@dataclass(frozen=True)
class RequestForecast:
    """An estimate of what is still to be requested; tokens are the model's own if `exact`."""

    requests: int
    tokens_sent: int
    tokens_received: int
    exact: bool
    cost: float | None


class Extension:
    """The folder of an extension."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.transcript = Transcript(folder / ANSWERS)
        self.log = Log(folder / LOG)

    def begin(self, task: ExtensionTask) -> None:
        """Record the task, or check that it is the one the folder was begun with.

        Raises BadInput if the folder holds another task.
        """
        if (self.folder / TASK).exists():
            old, new = asdict(self.task()), asdict(task)
            changed = [name for name in new if old[name] != new[name]]
            if changed:
                raise BadInput(
                    f"{self.folder} was begun with another {changed[0]}; use that one, or another folder."
                )
            return
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / TASK) as part:
            complete = asdict(task) | {DIGEST: fingerprint(asdict(task))}
            part.write_text(json.dumps(complete, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def task(self) -> ExtensionTask:
        """The task the folder was begun with.

        Raises BadInput if the folder holds none.
        """
        path = self.folder / TASK
        if not path.exists():
            raise BadInput(f"{self.folder} is not an extension; make one with `felicity stimuli extend`.")
        try:
            kept = json.loads(read_text(path))
            digest = kept.pop(DIGEST, None)
            task = ExtensionTask(**kept)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BadInput(f"{path} is damaged: {error}.") from error
        if digest != fingerprint(kept):
            raise BadInput(f"{path} is damaged: it was changed since it was written; restore it.")
        return task

    def state(self) -> State:
        """The state of the folder's review: a replay of its log."""
        return replay_log(self.log.read())

    def write_dataset(self) -> int:
        """Write `dataset.parquet` and `rejections.csv` from the log alone; gives the number of pairs."""
        task, state = self.task(), self.state()
        form = FORMS[task.form]
        items = build_items(
            state.accepted, form.conditions, name=f"{task.dataset} extended", phenomenon=form.phenomenon
        )
        written_by = str(task.model.get("name", ""))
        write_items(items.with_columns(written_by=pl.lit(written_by)), self.folder / "dataset.parquet")
        with replacing(self.folder / "rejections.csv") as part:
            tabulate_rejections(state, PAPER_ROWS.get(task.form)).write_csv(part)
        return len(state.accepted)

    def run(
        self,
        generate: Generate,
        limits: Limits,
        *,
        words: WordList | None = None,
        progress: Progress | None = None,
        stop_now: Callable[[], bool] = lambda: False,
        starter: int | None = None,
    ) -> ExtensionResult:
        """Ask until a limit is reached; what is stored already is read, not asked for again.

        `stop_now` is called between requests, so that an interrupt can wait for the answer under way.
        `starter` is the process that the user sees, if it is not this one. If that of an earlier call was
        killed, the answer that the earlier call still awaits is awaited here too.

        Raises NotPossible if another process is at work in the folder.
        """
        lock = FileLock(str(self.folder / ".lock"))
        while True:
            try:
                with lock.acquire(timeout=0):
                    with replacing(self.folder / STARTER) as part:
                        part.write_text(str(starter or os.getpid()), encoding="ascii")
                    return self._ask(generate, limits, words, progress, stop_now)
            except Timeout as error:
                if self._is_attended():
                    raise NotPossible(
                        f"Another felicity is extending {self.folder}; wait for it, or end it."
                    ) from error
                if stop_now():
                    stored, queued = self.transcript.read(), len(self.state().proposals)
                    return ExtensionResult(
                        len(stored), 0, queued, INTERRUPTED, self.transcript.count_repeated()
                    )
                time.sleep(WAIT_SECONDS)

    def _is_attended(self) -> bool:
        """Whether the process that a user started for the work in this folder has not ended."""
        try:
            return is_alive(int((self.folder / STARTER).read_text(encoding="ascii")))
        except (OSError, ValueError):
            return True

    def _ask(
        self,
        generate: Generate,
        limits: Limits,
        words: WordList | None,
        progress: Progress | None,
        stop_now: Callable[[], bool],
    ) -> ExtensionResult:
        task = self.task()
        sorter = Sorter(task, self.log, words=words)
        stored = self.transcript.read()
        yields: list[int] = []
        number = asked = 0
        while True:
            reason = _find_reason(limits, sorter.queued, yields, number)
            if not reason and number + 1 not in stored and stop_now():
                reason = INTERRUPTED
            if reason:
                return ExtensionResult(
                    len(stored), asked, sorter.queued, reason, self.transcript.count_repeated()
                )
            number += 1
            if number not in stored:
                prompt = task.prompt(number)
                self.transcript.note_sending(prompt)
                answers = generate(prompt.text, task.seed + number)
                stored[number] = self.transcript.store(
                    prompt, answers, seed=task.seed + number, parameters=task.parameters, model=task.model
                )
                asked += 1
            yields.append(sorter.sort_request(stored[number]))
            if progress:
                progress("Pairs", min(sorter.queued, limits.n), limits.n)

    def forecast(
        self,
        n: int,
        *,
        count: Callable[[str], int | None] | None = None,
        price_per_million: float | None = None,
    ) -> RequestForecast:
        """Requests and tokens until `n` pairs pass the rules, by the yield so far or GPT-3's.

        `count` gives the tokens of a text, or None if only the server knows; characters are counted then.
        """
        task, stored = self.task(), self.transcript.read()
        most = int(task.parameters.get("tokens", 100)) * int(task.parameters.get("samples", 1))
        prompts = [task.prompt(number).text for number in range(1, 6)]
        counted = [count(text) if count else None for text in prompts]
        exact = None not in counted
        sizes = [
            len(text) / CHARACTERS_PER_TOKEN if not exact else size or 0
            for text, size in zip(prompts, counted, strict=True)
        ]
        sent = sum(sizes) / len(sizes)
        queued = sum(event["event"] == "propose" for event in self.log.read())
        example = sum(len(pair.first) + len(pair.second) for pair in task.seed_pairs) / max(
            1, len(task.seeds)
        )
        first = FIRST_YIELD * 2 * most / max(1.0, example / CHARACTERS_PER_TOKEN)
        each = queued / len(stored) if stored and queued else first
        requests = max(0, round((n - queued) / each + 0.5)) if queued < n else 0
        tokens = round(requests * sent), requests * most
        cost = None if price_per_million is None else sum(tokens) * price_per_million / 1e6
        return RequestForecast(requests, *tokens, exact=exact, cost=cost)


class Sorter:
    """What becomes of each sentence of each answer, written to the log the same way every time."""

    def __init__(self, task: ExtensionTask, log: Log, *, words: WordList | None = None) -> None:
        self.form = FORMS[task.form]
        self.log = log
        self.seen = Seen()
        for seed in task.seed_pairs:
            self.seen.add_seed(seed, self.form)
        self.case = RuleInput(form=self.form, seen=self.seen, instruction=task.instruction, words=words)
        self.queued = 0
        self._logged: dict[int, int] = {}
        for event in log.read():
            if event["event"] in ("propose", "refuse"):
                self._logged[event["request"]] = self._logged.get(event["request"], 0) + 1

    def sort_request(self, row: Mapping[str, Any]) -> int:
        """Log what becomes of a request's sentences, from where it was interrupted; gives its new pairs.

        The events of a request depend on the answers before it only, so a log cut short by a killed process
        is completed with exactly the lines that are missing.
        """
        number = int(row["request"])
        events = self._events(number, [str(answer["text"]) for answer in row["answers"]])
        missing = events[self._logged.get(number, 0) :]
        if missing:
            self.log.append_all(missing)
        new = sum(kind == "propose" for kind, _ in events)
        self.queued += new
        return new

    def _events(self, number: int, texts: Sequence[str]) -> list[tuple[str, Event]]:
        events: list[tuple[str, Event]] = []
        for sample, text in enumerate(texts, start=1):
            name = f"{number}.{sample}"
            passed = []
            for sentence in split_answer(text):
                findings = check_sentence(sentence.text, self.case)
                if findings:
                    events.append(_refuse(number, name, [sentence.text], findings))
                else:
                    passed.append(sentence)
            pairs, alone = pair_sentences(passed, self.form, name=name)
            reason = Violation(UNPAIRED, "no partner beside it")
            events += [_refuse(number, name, [sentence.text], [reason]) for sentence in alone]
            for pair, _ in pairs:
                rejections, flags = check_pair(pair, self.case)
                if rejections:
                    events.append(_refuse(number, pair.item, list(pair.sentences), rejections))
                else:
                    events.append(("propose", _propose(number, pair, flags)))
                self.seen.add(pair, self.form)
        return events


def _refuse(number: int, name: str, texts: list[str], findings: list[Violation]) -> tuple[str, Event]:
    told = [list(finding) for finding in findings]
    return "refuse", {
        "request": number,
        "item": name,
        "texts": texts,
        "rule": findings[0].rule,
        "findings": told,
    }


def _propose(number: int, pair: Pair, flags: list[Violation]) -> Event:
    told = [list(flag) for flag in flags]
    return {"request": number, "item": pair.item, "texts": list(pair.sentences), "flags": told}


def _find_reason(limits: Limits, queued: int, yields: list[int], number: int) -> str:
    if queued >= limits.n:
        return f"{queued} pairs passed the rules"
    if number >= limits.most:
        return f"{number} requests were asked, the most allowed"
    last = yields[-limits.window :]
    if len(last) == limits.window and sum(last) / limits.window < limits.least_yield:
        return f"the last {limits.window} requests gave {sum(last)} new pairs, fewer than the limit"
    return ""
