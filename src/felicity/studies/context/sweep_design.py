"""What determines the contexts of a study: given by its settings, or brought along by another study's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput
from felicity.core.files import data_folder
from felicity.core.sweep import FROM_KINDS, KINDS, UNPERTURBED
from felicity.data import Dataset
from felicity.design import contexts
from felicity.design.contexts import ContextPlan
from felicity.run import RECORD, RULES, check_record
from felicity.studies.context.settings import ContextSettings
from felicity.studies.definition import NamedModel

EVERY_SUITE = "all"
UNRELATED = "unrelated"
WIKITEXT = ("wikitext103/wiki.test.raw.gz", "wikitext103/wiki.test.raw")
BUILT_IN_TEXT = Path(contexts.__file__).with_name("prose.txt")
# What an option is called that a design has under another name.
OPTIONS = {"tokenizer": "length_tokenizer"}


@dataclass(frozen=True, kw_only=True)
class SweepDesign:
    """Everything that determines items and contexts besides the data.

    kinds, lengths, unit, draws, contexts_per_suite, from_suites, seed: as in ContextPlan. tokenizer: the
    model whose tokens lengths are counted in. perturbations: of the context's sentences, besides leaving
    them unchanged. sample: this many items of each suite.
    """

    lengths: tuple[int, ...]
    unit: str
    tokenizer: str
    kinds: tuple[str, ...]
    draws: int
    contexts_per_suite: int | None
    from_suites: tuple[str, ...]
    perturbations: tuple[str, ...]
    sample: int | None
    seed: int

    def __post_init__(self) -> None:
        for wrong, sentence in (
            (
                UNPERTURBED in self.perturbations,
                f"Unperturbed contexts are always included; omit '{UNPERTURBED}'.",
            ),
            (_repeats(self.perturbations), "A perturbation is requested twice; name each once."),
            (_repeats(self.from_suites), "A suite to draw from is named twice; name each once."),
        ):
            if wrong:
                raise BadInput(sentence)

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> "SweepDesign":
        """The design in another study's record."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in recorded.items()
        }
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    def plan(self, suites: tuple[str, ...], *, perturb: str = UNPERTURBED) -> ContextPlan:
        """The contexts to draw; `suites` are what `all` means."""
        sources = suites if EVERY_SUITE in self.from_suites else self.from_suites
        both = sources and not set(self.kinds) & set(FROM_KINDS)
        kinds = (*self.kinds, *(FROM_KINDS if both else ()))
        return ContextPlan(
            kinds=kinds,
            lengths=self.lengths,
            unit=self.unit,
            draws=self.draws,
            contexts_per_suite=self.contexts_per_suite,
            from_suites=sources,
            perturb=perturb,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A study before any model is scored.

    items: the stimuli, sampled. contexts: rows of SWEEP_CONTEXTS. requests: rows of SWEEP_REQUESTS. sides:
    which conditions are acceptable. notes: remarks for the reader. measures: those of the rule.
    """

    design: SweepDesign
    dataset: Dataset
    items: pl.DataFrame
    contexts: pl.DataFrame
    requests: pl.DataFrame
    sides: pl.DataFrame
    notes: tuple[str, ...]
    measures: tuple[str, ...]

    @property
    def headline(self) -> Headline:
        """What the share and the sentences are called, in the dataset's words."""
        return Headline.read(self.dataset.score, default=RULES[self.dataset.rule].headline)


def _repeats(names: tuple[str, ...]) -> bool:
    return len(set(names)) < len(names)


def choose_design(settings: ContextSettings, first: NamedModel | None) -> SweepDesign:
    """The design that the settings ask for; lengths are counted by the first model unless they name another.

    Raises BadInput if only a server knows the tokens.
    """
    kinds = settings.kinds or (() if settings.from_suites else tuple(KINDS))
    return SweepDesign(
        lengths=settings.grid,
        unit=settings.unit,
        tokenizer=_choose_tokenizer(settings.length_tokenizer, first),
        kinds=kinds,
        draws=1 if settings.draws is None else settings.draws,
        contexts_per_suite=settings.contexts_per_suite,
        from_suites=settings.from_suites,
        perturbations=settings.perturbations,
        sample=settings.sample,
        seed=settings.seed or 0,
    )


def _choose_tokenizer(asked: str | None, first: NamedModel | None) -> str:
    known = first and (first.tokenizer or first.spec)
    if not asked and not known:
        raise BadInput("Contexts are measured in tokens of a model; name one with -m or --length-tokenizer.")
    chosen = str(asked or known)
    if chosen.startswith("openai:"):
        raise BadInput(
            f"Contexts are measured in tokens, and those of '{chosen}' are known only to its server; give "
            "the model's files, or another model, with --tokenizer or --length-tokenizer."
        )
    return chosen


def refuse_drawing(settings: ContextSettings) -> None:
    """Refuse settings that another study's contexts have already determined.

    Raises BadInput naming the option.
    """
    names = [OPTIONS.get(one.name, one.name) for one in fields(SweepDesign) if one.name != "unit"]
    for name in (*names, "sentences", "text"):
        if getattr(settings, name) not in (None, ()):
            raise BadInput(
                f"Contexts of another study are given, and with them its {name.replace('_', ' ')}; omit one "
                "of the two."
            )


def read_drawn(given: Path) -> dict[str, Any]:
    """The record beside another study's table of contexts.

    Raises BadInput if there is none, or it is not that of a context study.
    """
    path = given.parent / RECORD
    if not given.is_file():
        raise BadInput(f"There is no file {given}; give the contexts.parquet in a study's folder.")
    if not path.is_file():
        raise BadInput(
            f"{given} has no {RECORD} beside it, which says how it was drawn; give the "
            "contexts.parquet in a study's folder."
        )
    record = check_record(given.parent, [given.name], advice="run that study again in another folder")
    facts = record.get("facts")
    drawn = facts.get("design") if isinstance(facts, dict) else None
    wanted = {one.name for one in fields(SweepDesign)}
    if not isinstance(drawn, dict) or set(drawn) != wanted or "items" not in record["facts"]:
        raise BadInput(f"{path} does not say how the contexts were drawn; run that study again.")
    return record


def find_text(given: Path | None, kinds: tuple[str, ...]) -> Path | None:
    """The running text for unrelated contexts: the file given, else WikiText's test part in $FELICITY_DATA,
    else the built-in text.

    Raises BadInput if the file given is missing.
    """
    if given is not None and not given.is_file():
        raise BadInput(f"There is no file {given}; give running text with --text.")
    if given is not None or UNRELATED not in kinds:
        return given
    folder = data_folder()
    known = [folder / name for name in WIKITEXT if (folder / name).is_file()] if folder else []
    return known[0] if known else BUILT_IN_TEXT


def describe_text(text: Path | None) -> tuple[str, ...]:
    """A note if unrelated contexts come from the built-in text."""
    if text != BUILT_IN_TEXT:
        return ()
    return (
        "WikiText-103 was not found, so unrelated contexts are drawn from the built-in text of 8,600 words; "
        "put wikitext103/wiki.test.raw.gz into $FELICITY_DATA, or name another text with --text.",
    )
