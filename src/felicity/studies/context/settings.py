"""The settings of the context study."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.settings import option
from felicity.studies.data_settings import ColumnSettings
from felicity.studies.definition import StudyDefinition

# A grid of lengths: FIRST:LAST:STEP or a list, as text or as numbers.
Grid = str | int | tuple[int, ...]
DEFAULT_LENGTHS = "0:900:100"
MOST_LENGTHS = 200
LONGEST = 10_000_000
CONTEXTS, ANALYSIS = "Where contexts come from", "Analysis"


@dataclass(frozen=True, kw_only=True)
class ContextSettings(ColumnSettings):
    """Score every stimulus of DATASET after growing contexts, and analyse their effect.

    Contexts consist of the dataset's own sentences, acceptable or not, from the same suite (matched) or
    from others (mismatched), or of running text (unrelated). Each grows sentence by sentence, so that a
    longer one starts with the shorter. Accuracy in context is compared with that of the same items
    without. The study keeps its contexts, so that another model can use the same ones; run the same
    command again to resume. After Sinha et al. (2023).

    \b
    Examples:
      felicity context starter --kind matched_acceptable --kind matched_unacceptable --sentences 0:6:2
      felicity context blimp -m smollm2 --sample 5
      felicity context blimp --sample 50 --contexts-per-suite 5 --lengths 0,100,300,600,900
      felicity context blimp --from-suite all --sentences 10 --sample 3 --contexts-per-suite 1
      felicity context crows_pairs -m ./my-model --contexts runs/crows_pairs-context/contexts.parquet
    """

    kinds: tuple[str, ...] = option(
        (),
        "A kind of context: matched_acceptable, matched_unacceptable, mismatched_acceptable, "
        "mismatched_unacceptable, unrelated; repeatable.  [default: all; with --from-suite none]",
        flag="--kind",
    )
    lengths: Grid | None = option(
        None, f"Tokens of context: 0:900:100, or 0,100,400.  [default: {DEFAULT_LENGTHS}]"
    )
    sentences: Grid | None = option(None, "Sentences of context instead of tokens: 0:10:2, or 10.")
    draws: int | None = option(
        None, "Contexts of each kind for each item, or group of items.  [default: 1]", least=1
    )
    contexts_per_suite: int | None = option(
        None,
        "Crossed design: this many contexts of each kind per suite, each shared by many items.",
        least=1,
    )
    from_suites: tuple[str, ...] = option(
        (),
        "Contexts from this suite for every suite, or `all` of them for a matrix; repeatable.",
        flag="--from-suite",
        panel=CONTEXTS,
    )
    perturbations: tuple[str, ...] = option(
        (),
        "Perturb context sentences, in addition to the originals: adverb_before, adverb_after, "
        "long_adverbial, clause_before, clause_after, quotation, all, nonsense; repeatable.",
        flag="--perturb",
        panel=CONTEXTS,
    )
    text: Path | None = option(
        None,
        "Running text for unrelated contexts (.txt, .gz).  [default: WikiText in $FELICITY_DATA, else a "
        "built-in text]",
        panel=CONTEXTS,
    )
    contexts: Path | None = option(
        None,
        "Use items and contexts of another study: the contexts.parquet in its folder.",
        panel=CONTEXTS,
    )
    length_tokenizer: str | None = option(
        None, "Model whose tokens are counted as lengths.  [default: the first -m]", panel=CONTEXTS
    )
    measure: str | None = option(None, "The measure that sentences are compared by.  [default: lp]")
    rule: str | None = option(None, "Another judging rule of the dataset (`felicity data show` lists them).")
    sample: int | None = option(None, "Use only this many items per suite.", least=1)
    seed: int | None = option(None, "Seed of the sample and the contexts.  [default: 0]", least=0)
    conditions: Path | None = option(
        None, "Which conditions of your own suites are acceptable: a .toml table.", panel=CONTEXTS
    )
    parse: bool = option(
        False,
        "Also compare dependency labels of contexts; needs felicity[parse].",
        panel=ANALYSIS,
        analysis=True,
    )
    formula: str | None = option(
        None,
        "A further regression: 'log(length) * acceptable + (1|suite) + (1|item)'.",
        panel=ANALYSIS,
        analysis=True,
    )

    def __post_init__(self) -> None:
        if self.lengths is not None and self.sentences is not None:
            raise BadInput(
                "The length of contexts is given by --lengths or by --sentences; give one of the two."
            )
        # One spelling of a grid, so that a study resumes however it is written.
        for name in ("lengths", "sentences"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, parse_lengths(given))

    @property
    def unit(self) -> str:
        """What lengths count."""
        return "tokens" if self.sentences is None else "sentences"

    @property
    def grid(self) -> tuple[int, ...]:
        """The lengths of contexts; 0 is the baseline."""
        chosen = self.lengths if self.sentences is None else self.sentences
        return parse_lengths(DEFAULT_LENGTHS if chosen is None else chosen)


def parse_lengths(grid: Grid) -> tuple[int, ...]:
    """Lengths from `0:900:100`, with both ends, or from `0,100,400`, or as they are.

    Raises BadInput.

    >>> parse_lengths("0:300:100")
    (0, 100, 200, 300)
    >>> parse_lengths("0,10"), parse_lengths(10)
    ((0, 10), (10,))
    """
    shown = ",".join(map(str, grid)) if isinstance(grid, tuple) else str(grid)
    wrong = BadInput(
        f"Lengths '{shown}' are neither FIRST:LAST:STEP, such as 0:900:100, nor a list such as 0,100,400."
    )
    try:
        if ":" in shown:
            first, last, step = (int(part) for part in shown.split(":"))
            if step > 0 and (last - first) // step >= MOST_LENGTHS:
                raise BadInput(f"Lengths '{shown}' are more than {MOST_LENGTHS}; use a larger step.")
            found = tuple(range(first, last + 1, step))
        else:
            found = tuple(sorted({int(part) for part in shown.split(",")}))
    except ValueError as error:
        raise wrong from error
    if not found or min(found) < 0 or max(found) == 0:
        raise wrong
    if len(found) > MOST_LENGTHS:
        raise BadInput(f"Lengths '{shown}' are more than {MOST_LENGTHS}; leave some out.")
    if max(found) > LONGEST:
        raise BadInput(f"Contexts are limited to {LONGEST:,}; request shorter ones.")
    if ":" in shown and found[-1] != last:
        raise BadInput(f"Lengths '{shown}' end at {found[-1]}, not at {last}; use a step that reaches it.")
    return found


STUDY = StudyDefinition(
    name="context",
    title="Context and acceptability",
    settings=ContextSettings,
    code="felicity.studies.context",
    forecasts=True,
)
