"""Checking claims: each printed figure against the computed one, with a status and a reason."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, cast

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.core.files import data_folder
from felicity.core.progress import Progress
from felicity.papers.reproduce.claims import CHANGED, FAILS, HOLDS, NOT_RUN, SLIP, Claim, Paper
from felicity.papers.reproduce.claims_file import PAPERS
from felicity.papers.reproduce.computations import (
    COMPUTATIONS,
    MODEL_COMPUTATIONS,
    Computation,
    find_computation,
)
from felicity.papers.reproduce.inputs import MISSING, SAME, Files, Input, find_inputs

LEVELS = ("data", "model")
# Modules whose functions register themselves when they are imported.
BUILT_IN = ("reading", "lau2020", "huynh2022", "shivagunde2023", "benchmarks")
FROM_DATA = "data"
MOST_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim with its result. source: data, or the model that it was computed with."""

    claim: Claim
    status: str
    expected: str
    why: str
    computed: float | None = None
    corrected: float | None = None
    source: str = FROM_DATA
    as_expected: bool = True

    @property
    def shown(self) -> str:
        """The computed figure in the format of the printed one."""
        return "" if self.computed is None else self.claim.printed.show(self.computed)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """All claims of a paper, checked."""

    paper: Paper
    level: str
    verdicts: tuple[Verdict, ...]
    inputs: Mapping[str, Input]
    models: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def as_expected(self) -> bool:
        """Whether every claim that was run has its expected status."""
        return all(verdict.as_expected for verdict in self.verdicts)

    @property
    def complaints(self) -> list[str]:
        """A sentence for every input that is not the one the claims were written for."""
        found = []
        for one in self.inputs.values():
            readers = [v.claim.id for v in self.verdicts if one.name in v.claim.inputs]
            if one.state == SAME or not readers:
                continue
            listed = ", ".join(readers[:MOST_NAMED]) + (" and others" if len(readers) > MOST_NAMED else "")
            what = (
                "is missing"
                if one.state == MISSING
                else f"has changed: its sha256 is {one.found}, not {one.expected}"
            )
            found.append(f"{one.name} {what}; {len(readers)} claims use it: {listed}.")
        return found


def check_paper(
    paper: Paper,
    *,
    level: str = "data",
    models: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    progress: Progress | None = None,
) -> Checked:
    """Compute every claim of a paper and compare it with what is printed.

    level: `data` computes from published files; `model` also runs models, by their names in the paper,
    mapped to values of `-m`. only: patterns of claim ids.

    Raises UnknownName for a model that no claim names, BadInput if a claim cannot be computed or no
    input is found.
    """
    if level not in LEVELS:
        raise UnknownName("level", level, LEVELS)
    given = dict(models or {})
    named = {claim.model for claim in paper.claims if claim.run and claim.model}
    for name in given:
        if name not in named:
            hint = f"no claim of {paper.name} is run with a model" if not named else ""
            raise UnknownName(f"model in {paper.name}", name, named, hint=hint)
    if given and level != "model":
        raise BadInput("Models are run with --level model only; add it, or omit -m.")
    claims = [c for c in paper.claims if not only or any(fnmatchcase(c.id, p) for p in only)]
    if not claims:
        raise BadInput(f"No claim of {paper.name} is called {', '.join(only)}.")
    began = time.monotonic()
    checker = _Checker(paper, given)
    verdicts = []
    for place, claim in enumerate(claims):
        verdicts.append(checker.check(claim))
        if progress:
            progress(paper.name, place + 1, len(claims))
    return Checked(
        paper=paper,
        level=level,
        verdicts=tuple(verdicts),
        inputs=checker.inputs,
        models=given,
        seconds=time.monotonic() - began,
    )


def find_function(name: str, beside: Path, *, model: bool = False) -> Computation:
    """The computation that a claim names.

    Raises UnknownName.
    """
    registry = MODEL_COMPUTATIONS if model else COMPUTATIONS
    # The module that a name starts with comes first, since some modules are slow to import.
    for module in sorted(BUILT_IN, key=lambda module: not name.startswith(f"{module}.")):
        if ".py:" in name or name in registry:
            break
        import_module(f"felicity.papers.reproduce.{module}")
    return find_computation(name, beside, registry)


class _Checker:
    """Computes claims one by one and caches what they share: inputs, tables, fits, models."""

    def __init__(self, paper: Paper, models: Mapping[str, str]) -> None:
        self.paper = paper
        self.models = models
        self.beside = paper.path.parent
        known = data_folder()
        folders = ([] if self.beside == PAPERS else [self.beside]) + ([known] if known else [])
        self.inputs = find_inputs(paper.inputs, folders)
        if self.inputs and all(one.state == MISSING for one in self.inputs.values()):
            where = (
                "set $FELICITY_DATA to the folder that contains them"
                if not known
                else f"the folders searched are {known}"
            )
            raise BadInput(f"No input of {paper.name} is on this machine; {where}.")
        self.files = Files(self.inputs)
        self.opened: dict[str, Any] = {}

    def check(self, claim: Claim) -> Verdict:
        if claim.run and claim.model in self.models:
            return self.check_with_model(claim, str(claim.model))
        if claim.compute is None:
            why = f"needs {claim.needs}; give its weights with --level model -m {claim.model}=MODEL"
            return Verdict(claim=claim, status=NOT_RUN, expected=claim.expected, why=why)
        for name in claim.inputs:
            state = self.inputs[name].state
            if state != SAME:
                status = NOT_RUN if state == MISSING else CHANGED
                why = f"{name} is missing" if state == MISSING else f"{name} is not the file of the claims"
                return Verdict(
                    claim=claim, status=status, expected=claim.expected, why=why, as_expected=False
                )
        return self.check_with_data(claim)

    def check_with_data(self, claim: Claim) -> Verdict:
        function = self.function(claim, str(claim.compute))
        computed = self.call(claim, function, claim.arguments)
        corrected = None
        if claim.corrected is not None:
            corrected = self.call(claim, function, {**claim.arguments, **claim.corrected})
        status, why = HOLDS, ""
        if not claim.printed.matches(computed, claim.tolerance):
            status, why = FAILS, "not what the data give"
            if claim.slip is not None:
                slipped = self.call(claim, function, {**claim.arguments, **claim.slip})
                if claim.printed.matches(slipped, claim.tolerance):
                    status, why = SLIP, "an error of the authors gives the printed figure"
        as_expected = status == claim.expected
        if as_expected and claim.why:
            why = claim.why
        if (
            as_expected
            and status == FAILS
            and claim.instead
            and not claim.instead.matches(computed, claim.tolerance)
        ):
            as_expected, why = False, f"the claims file has {claim.instead.text} for what the data give"
        return Verdict(
            claim=claim,
            status=status,
            expected=claim.expected,
            why=why,
            computed=computed,
            corrected=corrected,
            as_expected=as_expected,
        )

    def check_with_model(self, claim: Claim, name: str) -> Verdict:
        spec = self.models[name]
        if spec not in self.opened:
            from felicity.run import open_model

            self.opened[spec] = open_model(spec)
        function = self.function(claim, str(claim.run), model=True)
        rest = {name: value for name, value in claim.arguments.items() if name != "model"}
        computed = self.call(claim, function, rest, self.opened[spec])
        holds = claim.printed.matches(computed, claim.tolerance)
        # An error in the authors' files does not affect a model's own scores.
        expected = HOLDS if claim.expected == HOLDS else FAILS
        status = HOLDS if holds else FAILS
        why = claim.why if status == expected and claim.why else "" if holds else "not what the model gives"
        return Verdict(
            claim=claim,
            status=status,
            expected=expected,
            why=why,
            computed=computed,
            source=f"model {name}={spec}",
            as_expected=status == expected,
        )

    def function(self, claim: Claim, name: str, *, model: bool = False) -> Computation:
        try:
            return find_function(name, self.beside, model=model)
        except FelicityError as error:
            raise BadInput(f"{self.paper.path}, line {claim.line}: {_lower(str(error))}") from error

    def call(self, claim: Claim, function: Computation, arguments: Mapping[str, Any], *model: Any) -> float:
        # A computation with a model may use any input.
        self.files.allowed = frozenset(self.inputs) if model else frozenset(claim.inputs)
        if "model" in arguments and "model" not in signature(function).parameters:
            # The name of the weights, which a computation from data need not know.
            arguments = {name: value for name, value in arguments.items() if name != "model"}
        try:
            signature(function).bind(self.files, *model, **arguments)
            return float(function(self.files, *model, **arguments))
        except FelicityError as error:
            said, cause = _lower(str(error)), cast(Exception, error)
        except Exception as error:
            # The user's own function can fail in any way; in one of felicity's it is a bug.
            bound = isinstance(error, TypeError) and "argument" in str(error)
            if function.__module__.startswith("felicity.") and not bound:
                raise
            said, cause = f"{type(error).__name__}: {error}", error
        raise BadInput(
            f"{self.paper.path}, line {claim.line}: '{claim.id}' cannot be computed: {said}"
        ) from cause


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
