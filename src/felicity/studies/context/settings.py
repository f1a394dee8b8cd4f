"""The settings of a context study: everything that affects its numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import data_folder
from felicity.core.ids import hash_file
from felicity.core.sweep import FROM_KINDS, KINDS, UNPERTURBED
from felicity.data import Columns
from felicity.design import contexts
from felicity.design.contexts import ContextPlan

EVERY_SUITE = "all"
# The rule that this study uses for datasets whose default rule has the opposite direction.
RULES = {"crows_pairs": "less"}
WIKITEXT = ("wikitext103/wiki.test.raw.gz", "wikitext103/wiki.test.raw")
BUILT_IN_TEXT = Path(contexts.__file__).with_name("prose.txt")
MOST_LENGTHS = 200
LONGEST = 10_000_000
# Settings that determine contexts and items; a table of contexts brings them along.
DRAWN = (
    "lengths",
    "unit",
    "tokenizer",
    "kinds",
    "draws",
    "contexts_per_suite",
    "from_suites",
    "perturbations",
    "sample",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A study of contexts.

    kinds, lengths, unit, draws, contexts_per_suite, from_suites, seed: as in ContextPlan. perturbations:
    of the context's sentences, besides leaving them unchanged. text: running text for unrelated
    contexts. sample: this many items of each suite. tokenizer: the model whose tokens lengths are counted
    in. measure: the measure that compares sentences, if the rule allows a choice. conditions: a table of the
    acceptable conditions of suites. parse: compare dependency labels too.
    """

    dataset: str
    lengths: tuple[int, ...]
    tokenizer: str
    kinds: tuple[str, ...] = tuple(KINDS)
    unit: str = "tokens"
    draws: int = 1
    contexts_per_suite: int | None = None
    from_suites: tuple[str, ...] = ()
    perturbations: tuple[str, ...] = ()
    text: Path | None = None
    sample: int | None = None
    seed: int = 0
    measure: str | None = None
    rule: str | None = None
    conditions: Path | None = None
    source: Path | None = None
    columns: Columns | None = None
    parse: bool = False

    def __post_init__(self) -> None:
        for wrong, sentence in (
            (self.seed < 0, f"The seed is {self.seed}; it must be 0 or more."),
            (
                UNPERTURBED in self.perturbations,
                f"Unperturbed contexts are always included; omit '{UNPERTURBED}'.",
            ),
            (_repeats(self.perturbations), "A perturbation is requested twice; name each once."),
            (_repeats(self.from_suites), "A suite to draw from is named twice; name each once."),
            (
                max(self.lengths, default=0) > LONGEST,
                f"Contexts are limited to {LONGEST:,}; request shorter ones.",
            ),
            (
                self.conditions is not None and not self.conditions.is_file(),
                f"There is no file {self.conditions}; give a table of conditions with --conditions.",
            ),
        ):
            if wrong:
                raise BadInput(sentence)

    @property
    def chosen_rule(self) -> str | None:
        """The dataset's rule for this study."""
        return self.rule or RULES.get(self.dataset)

    def replace(self, **changes: Any) -> "Setting":
        """The same with some fields changed."""
        return replace(self, **changes)

    def like(self, told: dict[str, Any]) -> "Setting":
        """The same, with everything that determines the contexts from another study's record."""
        taken = {name: told[name] for name in DRAWN}
        return self.replace(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in taken.items()}, text=None
        )

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

    def as_dict(self) -> dict[str, Any]:
        """For study.json: the text by its digest, without paths or settings that may change later."""
        told = asdict(self)
        del told["parse"]
        if told["columns"]:
            # Studies from before there were factors have no such field.
            factors = told["columns"].pop("factors")
            told["columns"] |= {"factors": list(factors)} if factors else {}
        told["text"] = hash_file(self.text) if self.text and "unrelated" in self.kinds else None
        told["conditions"] = hash_file(self.conditions) if self.conditions else None
        told["source"] = None if self.source is None else self.source.name
        return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


def parse_lengths(grid: str) -> tuple[int, ...]:
    """Lengths from `0:900:100`, with both ends, or from `0,100,400`.

    Raises BadInput.

    >>> parse_lengths("0:300:100")
    (0, 100, 200, 300)
    >>> parse_lengths("0,10")
    (0, 10)
    """
    wrong = BadInput(
        f"Lengths '{grid}' are neither FIRST:LAST:STEP, such as 0:900:100, nor a list such as 0,100,400."
    )
    try:
        if ":" in grid:
            first, last, step = (int(part) for part in grid.split(":"))
            if step > 0 and (last - first) // step >= MOST_LENGTHS:
                raise BadInput(f"Lengths '{grid}' are more than {MOST_LENGTHS}; use a larger step.")
            found = tuple(range(first, last + 1, step))
        else:
            found = tuple(sorted({int(part) for part in grid.split(",")}))
    except ValueError as error:
        raise wrong from error
    if not found or min(found) < 0 or max(found) == 0:
        raise wrong
    if len(found) > MOST_LENGTHS:
        raise BadInput(f"Lengths '{grid}' are more than {MOST_LENGTHS}; leave some out.")
    if ":" in grid and found[-1] != last:
        raise BadInput(f"Lengths '{grid}' end at {found[-1]}, not at {last}; use a step that reaches it.")
    return found


def _repeats(names: tuple[str, ...]) -> bool:
    return len(set(names)) < len(names)


def refuse_drawing(asked: Mapping[str, object]) -> None:
    """Refuse settings that another study's contexts have already determined.

    Raises BadInput naming the option.
    """
    for name, value in asked.items():
        if value is not None and name in (*DRAWN, "text"):
            raise BadInput(
                f"Contexts of another study are given, and with them its {name.replace('_', ' ')}; omit one "
                "of the two."
            )


def find_text(given: Path | None, kinds: tuple[str, ...]) -> Path | None:
    """The running text for unrelated contexts: the file given, else WikiText's test part in $FELICITY_DATA,
    else the built-in text.

    Raises BadInput if the file given is missing.
    """
    if given is not None and not given.is_file():
        raise BadInput(f"There is no file {given}; give running text with --text.")
    if given is not None or "unrelated" not in kinds:
        return given
    folder = data_folder()
    known = [folder / name for name in WIKITEXT if (folder / name).is_file()] if folder else []
    return known[0] if known else BUILT_IN_TEXT


def describe_text(setting: Setting) -> tuple[str, ...]:
    """A note for the terminal and study.json if unrelated contexts come from the built-in text."""
    if "unrelated" not in setting.kinds or find_text(setting.text, setting.kinds) != BUILT_IN_TEXT:
        return ()
    return (
        "WikiText-103 was not found, so unrelated contexts are drawn from the built-in text of 8,600 words; "
        "put wikitext103/wiki.test.raw.gz into $FELICITY_DATA, or name another text with --text.",
    )
