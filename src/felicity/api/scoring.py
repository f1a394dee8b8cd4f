"""Texts scored by a model, given by name or opened before: surprisal, a verdict on two sentences, fillers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput
from felicity.core.frames import Frame, as_polars, is_frame
from felicity.core.progress import Progress, notebook_progress
from felicity.core.regions import remove_bars
from felicity.core.units import to_bits
from felicity.core.wording import signed
from felicity.report import render_result
from felicity.run import (
    Model,
    Texts,
    audit_surprisal,
    build_text_prompts,
    check_units,
    measure_surprisal,
    open_model,
    read_texts,
    take_frame_of_texts,
    take_lines,
)

UNKNOWN = ("<unk>", "[UNK]", "<UNK>")


def take_model(model: str | Path | Model) -> Model:
    """A model by its name, or one that is open.

    Raises BadInput for anything else.
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, str | Path):
        return open_model(str(model))
    raise BadInput(f"The model is {model!r}; give a name, or a model opened with felicity.model().")


def surprisal(
    data: str | Path | Sequence[str] | Frame | Texts,
    model: str | Path | Model = "smollm2",
    *,
    by: str = "word",
    unit: str = "bits",
    text: str = "text",
    context: str | None = None,
    rank: bool = False,
    entropy: bool = False,
    top: int = 0,
    spillover: int = 0,
    boundary: str = "auto",
    progress: Progress | None = None,
    on_audit: Callable[[pl.DataFrame], None] | None = None,
) -> pl.DataFrame:
    """How surprising each token, word, region or sentence of texts is: one row each, with the other columns.

    data: a .txt file or table, a list of texts, or a polars or pandas frame with the column `text`. by:
    token, word, region (parts between bars) or sentence. context: a column, or one text before every
    sentence. rank, entropy, top: further columns, of tokens only. spillover: add the surprisal of so many
    preceding units. boundary: corrected, plain, or auto. on_audit: called with what could bias the result.

    Raises BadInput or UnknownName for texts that cannot be read, NotPossible for what the model cannot give.

    >>> import felicity as fe
    >>> fe.surprisal(["The cats annoy Tim."]).select("word", "n_tokens").rows()
    [('The', 1), ('cats', 1), ('annoy', 1), ('Tim.', 2)]
    """
    check_units(by, unit, extras=bool(rank or entropy or top), spillover=spillover, boundary=boundary)
    given = take_sentences(data, text=text, context=context)
    lm = take_model(model)
    audit = audit_surprisal(lm, given)
    if on_audit:
        on_audit(audit)
    return measure_surprisal(
        lm,
        given,
        by=by,  # type: ignore[arg-type]
        unit=unit,
        rank=rank,
        entropy=entropy,
        top=top,
        spillover=spillover,
        boundary=boundary,
        progress=progress or notebook_progress(),
    )


def take_sentences(
    data: str | Path | Sequence[str] | Frame | Texts, *, text: str = "text", context: str | None = None
) -> Texts:
    """Sentences from a file, a list or a frame.

    Raises BadInput or UnknownName if they cannot be read.
    """
    if isinstance(data, Texts):
        return data
    if isinstance(data, str | Path):
        return read_texts(data, text=text, context=context)
    if is_frame(data):
        return take_frame_of_texts(as_polars(data), text=text, context=context)
    texts = build_text_prompts(data, None)["text"].to_list()
    return take_lines("\n".join(texts), context=context, where="the list")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which of two sentences a model finds more acceptable: `verdict` is A, B or tie.

    margin_nats: lp(A) - lp(B). stable: whether it exceeds numerical noise. same_tokens: whether both are one
    sentence to the model. unknown: the words of each without a token. sentences: their tokens and lp.
    """

    verdict: str
    margin_nats: float
    margin_bits: float
    stable: bool
    same_tokens: bool
    unknown: list[list[str]]
    model: str
    dtype: str
    policy: dict[str, str]
    context: str | None
    sentences: list[dict[str, Any]]
    info: EngineInfo

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {name: value for name, value in self.__dict__.items() if name != "info"}

    def __repr__(self) -> str:
        return f"Verdict({self.verdict}, margin {signed(self.margin_nats, 3)} nats, by {self.model})"

    def summary(self) -> str:
        """The verdict in words."""
        if self.verdict == "tie":
            return f"The two are equally acceptable to {self.model}"
        if self.stable:
            return f"{self.verdict} is more acceptable to {self.model}"
        return f"The two do not differ by more than numerical noise to {self.model}"

    def _repr_html_(self) -> str:
        rows = [
            {"": label, "sentence": row["text"], "lp (nats)": row["lp"]}
            for label, row in zip("AB", self.sentences, strict=True)
        ]
        margin = f"Margin {signed(self.margin_nats, 3)} nats."
        return render_result(self.summary() + ".", margin, table=pl.DataFrame(rows))


def judge(
    good: str, bad: str, model: str | Path | Model = "smollm2", *, context: str | None = None
) -> Verdict:
    """Which of two sentences a model finds more acceptable, by log-probability, and each token's score.

    context: a text before both, which is not scored. Bars between regions are taken out. A margin within
    numerical noise is measured again more precisely before it is called stable.

    >>> import felicity as fe
    >>> fe.judge("The cats annoy Tim.", "The cats annoys Tim.").verdict
    'A'
    """
    (good, bad), _ = remove_bars([good, bad])
    texts = [good, bad]
    lm = take_model(model)
    rows, sums = _score(lm, texts, context)
    if abs(sums[0] - sums[1]) <= 2 * lm.info.noise and lm.in_float32 is not lm:
        lm = lm.in_float32
        rows, sums = _score(lm, texts, context)
    # The same tokens are one sentence to the model, whatever their characters.
    same = rows[0]["tokens"] == rows[1]["tokens"]
    margin = 0.0 if same else sums[0] - sums[1]
    return Verdict(
        verdict="tie" if margin == 0 else "A" if margin > 0 else "B",
        margin_nats=margin,
        margin_bits=to_bits(margin),
        stable=abs(margin) > sum(_find_errors(lm, texts, context, margin)),
        same_tokens=same,
        unknown=[_find_unknown(row) for row in rows],
        model=lm.info.name,
        dtype=lm.info.dtype,
        policy=dict(lm.info.policy),
        context=context,
        sentences=[row | {"lp": lp} for row, lp in zip(rows, sums, strict=True)],
        info=lm.info,
    )


def _score(lm: Model, texts: list[str], context: str | None) -> tuple[list[dict[str, Any]], list[float]]:
    rows = lm.tokens(texts, context=context).to_dicts()
    return rows, [sum(value for value in row["logprob"] if value is not None) for row in rows]


def _find_errors(lm: Model, texts: list[str], context: str | None, margin: float) -> list[float]:
    """The possible numerical error of each sum; measured if the margin is close."""
    bound = lm.possible_error
    if abs(margin) > 2 * bound:
        return [bound, bound]
    return list(lm.measure_errors(build_text_prompts(texts, context)).values()) or [bound, bound]


def _find_unknown(row: dict[str, Any]) -> list[str]:
    """The words for which the tokenizer has no token."""
    pieces = zip(row["tokens"], row["start"], row["end"], strict=True)
    return [row["text"][start:end] for token, start, end in pieces if token in UNKNOWN and end > start]


def fill(
    frames: str | Sequence[str],
    model: str | Path | Model = "smollm2",
    *,
    k: int = 10,
    words: Sequence[str] = (),
) -> pl.DataFrame:
    """The k most probable words for the blank `___` of each frame, or the scores of your own `words` in it.

    >>> import felicity as fe
    >>> fe.fill("The capital of France is ___.", k=1)["filler"].to_list()
    ['Paris']
    """
    lm = take_model(model)
    return lm.score_candidates(frames, words) if words else lm.fill(frames, k=k)


def generate(
    prompts: str | Sequence[str], model: str | Path | Model = "smollm2", **sampling: Any
) -> pl.DataFrame:
    """Each prompt continued: with the most probable tokens, or sampled at a temperature above 0.

    sampling: tokens, temperature, top_p, stop, samples, seed, as in `Model.generate`.

    >>> import felicity as fe
    >>> fe.generate("The capital of France is", tokens=1)["continuation"].item()
    ' Paris'
    """
    return take_model(model).generate(prompts, **sampling)
