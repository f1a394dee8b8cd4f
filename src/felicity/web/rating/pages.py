"""The pages a rater sees, each rendered whole on the server."""

import json
from collections.abc import Mapping
from typing import Any

import jinja2
from starlette.responses import Response

from felicity.humans import (
    BLANK,
    PREFER_NOT,
    RaterPosition,
    RatingStudy,
    Stimulus,
    Trial,
    count_trials,
    maze_sides,
)
from felicity.web.markdown import render_markdown
from felicity.web.rating.session import Session, Signer
from felicity.web.site import html

# What a form without an answer is told.
MISSING = {
    "slider": "please_number",
    "magnitude": "please_positive",
    "cloze": "please_write",
    "continuation": "please_write",
}
TITLES = {"instructions": "instructions", "practice": "practice", "quiz": "quiz", "demographics": "about_you"}


class Pages:
    """Every page of one study."""

    def __init__(self, study: RatingStudy, templates: jinja2.Environment, signer: Signer) -> None:
        self.study = study
        self.templates = templates
        self.signer = signer
        templates.filters["markdown"] = render_markdown

    def render(self, template: str, status: int = 200, **content: Any) -> Response:
        """Fill a template with the study, its interface and what the page needs."""
        shared = {
            "study": self.study,
            "say": self.study.interface,
            "lang": self.study.language,
            "direction": self.study.direction,
            "error": "",
            "test": False,
            "can_withdraw": False,
            "progress": None,
            "to_study": False,
        }
        page = self.templates.get_template(f"rating/{template}.html.j2")
        return html(page.render(shared | content), status)

    def message(self, title: str, text: str, status: int = 200) -> Response:
        """A short page with a message."""
        words = self.study.interface
        # Whoever has lost the way, and not the place, is led back to it.
        to_study = title in ("not_found", "forbidden")
        return self.render(
            "message", status, title=words[title], text=words[text] if text else "", to_study=to_study
        )

    def refuse_request(self, status: int) -> Response:
        """The page for a request that was not let through."""
        if status == 429:
            response = self.message("too_many", "too_many_text", 429)
            response.headers["retry-after"] = "2"
            return response
        return self.message("too_long", "", status)

    def consent(self, session: Session, error: str = "") -> Response:
        """Information and consent on one page, before anything is stored."""
        return self.render(
            "consent",
            422 if error else 200,
            title=self.study.title,
            token=self.signer.make_form(session, "", 0),
            error=self.study.interface[error] if error else "",
            test=session.test,
        )

    def step(
        self,
        session: Session,
        position: RaterPosition,
        number: int,
        *,
        error: str = "",
        form: Mapping[str, str] | None = None,
        stored: str | None = None,
    ) -> Response:
        """The page of one step: a trial, a question, or a page of text."""
        step = position.steps[number]
        total = count_trials(position.steps)
        content: dict[str, Any] = {
            "token": self.signer.make_form(session, position.slot, number),
            "error": self.study.interface[error] if error else "",
            "test": session.test,
            "can_withdraw": True,
            "form": form or {},
            "step": step,
            "stored": stored,
            "progress": (max(step.number - 1, 0), total),
            "back": self._previous(position, number),
            "prefer_not": PREFER_NOT,
        }
        if step.trial is not None:
            stimulus = step.stimulus(self.study)
            content |= {"title": self._trial_title(step.number, total), "stimulus": stimulus}
            if step.kind == "question":
                content["choices"] = [(str(n), label) for n, label in enumerate(stimulus.choices)]
                return self.render("question", 422 if error else 200, **content)
            content |= self._task(stimulus, step.trial)
            return self.render(self.study.task.kind, 422 if error else 200, **content)
        page = getattr(self.study, step.kind)
        title = getattr(page, "title", "")
        content |= {"title": title or self.study.interface[TITLES[step.kind]], "page": page}
        template = step.kind if step.kind in ("quiz", "demographics") else "text"
        return self.render(template, 422 if error else 200, **content)

    def _trial_title(self, number: int, total: int) -> str:
        if not number:
            return self.study.interface["practice"]
        return self.study.interface["progress"].format(done=number, total=total)

    def _previous(self, position: RaterPosition, number: int) -> int | None:
        """The step that Back leads to: the trial before, if the study allows it."""
        if not self.study.back or number == 0 or position.steps[number - 1].kind != "trial":
            return None
        return number - 1

    def _task(self, stimulus: Stimulus, trial: Trial) -> dict[str, Any]:
        """What the template of the task needs besides the stimulus."""
        return {"missing": MISSING.get(self.study.task.kind, "please_answer")} | self._shown(stimulus, trial)

    def _shown(self, stimulus: Stimulus, trial: Trial) -> dict[str, Any]:
        task = self.study.task
        if task.kind == "binary":
            options = [("1", task.options[0]), ("0", task.options[1])]
            return {"options": options[::-1] if trial.flipped else options}
        if task.kind == "choice":
            options = [("a", stimulus.text), ("b", stimulus.text_b)]
            return {"options": options[::-1] if trial.flipped else options}
        if task.kind == "likert":
            return {"options": [(str(n + 1), label) for n, label in enumerate(task.labels)]}
        if task.kind == "cloze":
            return {"around": stimulus.text.split(BLANK)}
        if task.kind == "reading":
            return {"words": json.dumps(stimulus.text.split())}
        if task.kind == "maze":
            sides = maze_sides(stimulus, flipped=trial.flipped)
            return {
                "words": json.dumps(stimulus.text.split()),
                "foils": json.dumps(stimulus.foils),
                "left": json.dumps(sides),
            }
        return {}

    def done(self, session: Session, position: RaterPosition) -> Response:
        """The end of a list: another one, or the completion code."""
        token = self.signer.make_form(session, position.slot, len(position.steps))
        if position.rater_state == "active":
            return self.render(
                "more", title=self.study.interface["more"], token=token, test=session.test, can_withdraw=True
            )
        return self.render(
            "done",
            title=self.study.interface["thanks"],
            code=position.code,
            url=self.study.platform.completion_url,
            test=session.test,
            can_withdraw=True,
        )

    def withdraw(self, session: Session) -> Response:
        """Ask once more before everything is deleted."""
        token = self.signer.make_form(session, "", 0)
        return self.render("withdraw", title=self.study.interface["withdraw"], token=token, test=session.test)
