"""Priors of words: planned from a run's requests, scored in the same pipeline, kept in the score cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import PROMPTS
from felicity.core.word_forms import PlacedForm, WordForm
from felicity.design import (
    PROBES,
    NeutralContext,
    PriorPrompt,
    build_prompts,
    draw_neutral,
    list_prompts,
    place_word,
)
from felicity.measures import CORRECTED, WordPriors, choose_boundary, find_compared, sum_word
from felicity.run.model import Model

# See docs/studies/length.md.
PRIOR_CONTEXTS, PRIOR_POWER, PRIOR_WEIGHT = 128, 2.0, 1.0
# What stands for the beginning of a text within a longer one: a new line, or only the space that joins
# context and text, for tokenizers that put a space before every text.
NEW_LINE, SPACE = "\n", ""
# A word of several tokens, for which a context must leave room.
SAMPLE = "unforgettable and"


@dataclass(frozen=True)
class PriorPlan:
    """The words whose priors a run needs, and the neutral contexts they are put in.

    compared: the words of each request that are compared with their priors. opening: what stands for the
    beginning of a text. corrected: whether words are corrected for trailing white space.
    """

    path: Path | None
    seed: int
    power: float
    weight: float
    contexts: Sequence[NeutralContext]
    compared: Mapping[str, Sequence[PlacedForm]]
    opening: str
    corrected: bool
    both_sides: bool

    @cached_property
    def words(self) -> list[WordForm]:
        """Every word once, in alphabetical order."""
        return sorted({found.word for compared in self.compared.values() for found in compared})

    @cached_property
    def placed(self) -> list[list[PriorPrompt]]:
        """Each word in each context."""
        return [
            [
                place_word(
                    word,
                    context,
                    opening=self.opening,
                    closing=self.corrected,
                    both_sides=self.both_sides,
                )
                for context in self.contexts
            ]
            for word in self.words
        ]

    @cached_property
    def prompts(self) -> pl.DataFrame:
        """What is to be scored, equal texts once."""
        return list_prompts([one for placed in self.placed for one in placed])

    def read(self, lm: Model) -> WordPriors:
        """The priors, once all prompts are in the cache."""
        rows = {row["request"]: row for part in lm.read(self.prompts) for row in part.iter_rows(named=True)}
        logprobs = np.zeros((len(self.words), len(self.contexts)))
        n_tokens = np.zeros(len(self.words), dtype=np.int64)
        for place, (word, placed) in enumerate(zip(self.words, self.placed, strict=True)):
            # The space belongs to the word: it is given that a word begins here.
            spaced = not word.lead and (word.start in ("initial", "inside") or self.opening == SPACE)
            after_space = spaced and word.start != "attached"
            for column, one in enumerate(placed):
                row = rows[one.request]
                logprobs[place, column], n_tokens[place] = sum_word(
                    row, one.begin, one.end, text=one.text, after_space=after_space
                )
        return WordPriors(self.words, logprobs, n_tokens, self.compared, self.power, self.weight)

    def describe(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "contexts": len(self.contexts),
            "seed": self.seed,
            "power": self.power,
            "weight": self.weight,
            "texts": str(self.path) if self.path else "built-in",
            "words": len(self.words),
            "prompts": len(self.prompts),
            "boundary": CORRECTED if self.corrected else "plain",
            "opening": "new line" if self.opening == NEW_LINE else "space",
            "beginnings": [context.beginning for context in self.contexts],
            "sentences": [context.sentence for context in self.contexts],
        }


def plan_priors(
    lm: Model,
    requests: pl.DataFrame,
    contexts: pl.DataFrame,
    *,
    path: Path | None,
    size: int,
    seed: int,
    power: float,
    cancel: bool,
    weight: float = PRIOR_WEIGHT,
) -> PriorPlan:
    """Which words of these requests need a prior, and how this model is asked for it.

    path: a text to take neutral contexts from, by default felicity's own. size: how many.
    power: of the mean over them. cancel: whether words that all sentences of an item share are left out.
    weight: of the log-priors.

    Raises BadInput for a script without spaces, NotPossible for a model that reads no context before a text.
    """
    if lm.info.family == "tdlm":
        raise NotPossible(
            f"'{lm.info.name}' reads a context as the topic of a text, not as words before it, so words have "
            "no priors; use a measure without priors, such as lp."
        )
    prompts = build_prompts(requests, contexts)
    compared = find_compared(
        requests.select("request", "item").with_columns(prompts["text"], prompts["context_text"]),
        cancel=cancel,
    )
    neutral = draw_neutral(path, size=size, seed=seed)
    _refuse_long(lm, neutral)
    return PriorPlan(
        path=path,
        seed=seed,
        power=power,
        weight=weight,
        contexts=neutral,
        compared=compared,
        opening=_choose_opening(lm, neutral[0]),
        corrected=choose_boundary("auto", lm.info) == CORRECTED,
        both_sides=_reads_both_sides(lm.info),
    )


def _reads_both_sides(info: EngineInfo) -> bool:
    return info.kind in ("pseudo", "permutation")


def _refuse_long(lm: Model, contexts: Sequence[NeutralContext]) -> None:
    """Refuse a neutral context that leaves no room for a word in the model's window."""
    prompts = _lay_out([(context.sentence, SAMPLE) for context in contexts])
    over = [over or 0 for over in lm.engine.encode(prompts)["n_over"].to_list()]
    if any(over):
        sentence = contexts[over.index(max(over))].sentence
        raise BadInput(
            f"The neutral context '{sentence}' is too long for '{lm.info.name}', which reads at most "
            f"{lm.info.window} tokens; give a text with shorter sentences with --prior-texts."
        )


def _lay_out(texts: Sequence[tuple[str | None, str]]) -> pl.DataFrame:
    """Contexts and texts as rows of PROMPTS."""
    rows = [(str(place), *pair) for place, pair in enumerate(texts)]
    return pl.DataFrame(rows, schema=PROMPTS, orient="row")


def _choose_opening(lm: Model, context: NeutralContext) -> str:
    """What stands for the beginning of a text, so that a word there has the tokens that it has alone.

    Tokenizers that put a space before every text give rare words the same number of tokens alone and after a
    space; others do not.
    """
    prompts = _lay_out([(left, word) for left in (None, context.sentence) for word in PROBES])
    counts = lm.engine.encode(prompts)["n_tokens"].to_list()
    alone, after = counts[: len(PROBES)], counts[len(PROBES) :]
    return SPACE if None not in counts and alone == after else NEW_LINE
