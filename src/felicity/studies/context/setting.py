"""What a context study is asked to do: everything that changes its numbers, and nothing else."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import data_folder
from felicity.core.ids import hash_file
from felicity.core.sweep import FROM_KINDS, KINDS, UNPERTURBED
from felicity.data.pairs import Columns
from felicity.design.contexts.plan import ContextPlan

EVERY_SUITE = "all"
# Which sentence counts as acceptable in this study, where a dataset's own rule says otherwise.
RULES = {"crows_pairs": "less"}
WIKITEXT = ("wikitext103/wiki.test.raw.gz", "wikitext103/wiki.test.raw")
MOST_LENGTHS = 200
LONGEST = 10_000_000
# What decides the contexts and the items behind them, and is handed on with a table of contexts.
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
    ways of changing the context's sentences, besides leaving them alone. text: running text for unrelated
    contexts. sample: so many items of each suite. tokenizer: the model whose tokens lengths are counted
    in. measure: what sentences are compared by, where the rule leaves a choice. conditions: a table of the
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
                f"Contexts as they stand are there in any case; leave '{UNPERTURBED}' out.",
            ),
            (_repeats(self.perturbations), "A perturbation is asked for twice; name each once."),
            (_repeats(self.from_suites), "A suite to draw from is named twice; name each once."),
            (
                max(self.lengths, default=0) > LONGEST,
                f"No context is longer than {LONGEST:,}; ask for shorter ones.",
            ),
            (
                self.conditions is not None and not self.conditions.is_file(),
                f"There is no file {self.conditions}; name a table of conditions with --conditions.",
            ),
        ):
            if wrong:
                raise BadInput(sentence)

    @property
    def chosen_rule(self) -> str | None:
        """The dataset's rule that this study judges by."""
        return self.rule or RULES.get(self.dataset)

    def but(self, **changes: Any) -> "Setting":
        """The same with some fields changed."""
        return replace(self, **changes)

    def like(self, told: dict[str, Any]) -> "Setting":
        """The same with everything that decides the contexts as another study's record tells it."""
        taken = {name: told[name] for name in DRAWN}
        return self.but(**{k: tuple(v) if isinstance(v, list) else v for k, v in taken.items()}, text=None)

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
        """For study.json: the text by its content, paths left out, and what can be asked of it later."""
        told = asdict(self)
        del told["parse"]
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
    wrong = BadInput(f"Lengths '{grid}' are not written FIRST:LAST:STEP, as 0:900:100, nor as 0,100,400.")
    try:
        if ":" in grid:
            first, last, step = (int(part) for part in grid.split(":"))
            if step > 0 and (last - first) // step >= MOST_LENGTHS:
                raise BadInput(f"Lengths '{grid}' are more than {MOST_LENGTHS}; take a larger step.")
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
        raise BadInput(f"Lengths '{grid}' end at {found[-1]}, not at {last}; take a step that goes up to it.")
    return found


def _repeats(names: tuple[str, ...]) -> bool:
    return len(set(names)) < len(names)


def refuse_drawing(asked: Mapping[str, object]) -> None:
    """Stop where contexts are handed in and something is asked that has decided them already.

    Raises BadInput naming the option.
    """
    for name, value in asked.items():
        if value is not None and name in (*DRAWN, "text"):
            raise BadInput(
                f"Contexts of another study are given, and with them its {name.replace('_', ' ')}; leave one "
                "of the two out."
            )


def find_text(given: Path | None, kinds: tuple[str, ...]) -> Path | None:
    """The running text for unrelated contexts: the file given, else WikiText's test part in $FELICITY_DATA.

    Raises BadInput where the file is missing, or unrelated contexts are asked for and there is no text.
    """
    if given is not None and not given.is_file():
        raise BadInput(f"There is no file {given}; name running text with --text.")
    if given is not None or "unrelated" not in kinds:
        return given
    folder = data_folder()
    known = [folder / name for name in WIKITEXT if (folder / name).is_file()] if folder else []
    if not known:
        raise BadInput(
            "Unrelated contexts are drawn from running text; name a file with --text, or choose other kinds "
            "with --kind."
        )
    return known[0]
