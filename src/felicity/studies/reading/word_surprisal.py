"""Surprisal and entropy of every word, from the stored tokens of a run; both ways to sum them side by side.

A word's surprisal is the sum over its tokens, with the space before it. Entropy is that of the prediction at
the word's first token, over next tokens; its reduction is how much of it reading the word takes away, and 0
where it grows.
"""

from collections.abc import Sequence

import polars as pl

from felicity.core.units import NATS_PER_BIT
from felicity.measures import CORRECTED, PLAIN, assign_tokens, sum_spans
from felicity.run import RunFolder, StudyFolder
from felicity.studies.reading.reading_plan import ENTROPIES, WORDS

SCORED = {
    "row": pl.Int64,
    "model": pl.String,
    "surprisal": pl.Float64,
    PLAIN: pl.Float64,
    CORRECTED: pl.Float64,
    "entropy": pl.Float64,
    "entropy_reduction": pl.Float64,
    "n_tokens": pl.Int64,
}


def read_surprisals(folder: StudyFolder, words: pl.DataFrame) -> pl.DataFrame:
    """Rows of SCORED: every word under every model, and under every set of given surprisals; bits.

    `surprisal` is the one that leads: as the setting `boundary` says, else corrected where the model can.
    """
    asked = folder.record["settings"]["boundary"]
    parts = [_conform(folder.read("given"))]
    for model in folder.facts["scored"]:
        run = folder.run(model, WORDS if len(folder.facts["sets"]) > 1 else "")
        parts.append(_conform(score_words(run, words, asked).with_columns(model=pl.lit(model))))
    return pl.concat(parts)


def _conform(part: pl.DataFrame) -> pl.DataFrame:
    """The columns of SCORED; those that are not there are null."""
    return part.select(
        pl.col(name).cast(dtype) if name in part.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in SCORED.items()
    )


def score_words(run: RunFolder, words: pl.DataFrame, asked: str = "auto") -> pl.DataFrame:
    """Surprisal in bits, entropy and tokens of the words of one run; words that were not found have none."""
    items = run.read("items").select("item", "suite", "sentence", "text", "lead")
    requests = run.read("requests").select("request", "item")
    tokens = requests.join(run.read("tokens"), on="request", maintain_order="left")
    tokens = items.select("item").join(tokens, on="item", maintain_order="left")
    spans, scored = _list_spans(items, words.drop_nulls("start"))
    texts = items["text"].to_list()
    bounded = "boundary" in tokens.columns
    for boundary in (PLAIN, *((CORRECTED,) if bounded else ())):
        summed = sum_spans(tokens, texts, spans, boundary=boundary)
        summed = summed.filter(pl.col("end") > pl.col("start"))
        scored = scored.with_columns((-summed["lp"] / NATS_PER_BIT).alias(boundary), summed["n_tokens"])
    path = run.path / f"{ENTROPIES}.parquet"
    if path.exists():
        entropies = requests.join(run.read_file(path), on="request", maintain_order="left")
        bits = pl.Series("entropy", _first_entropies(entropies, tokens, texts, spans), dtype=pl.Float64)
        scored = scored.with_columns(bits / NATS_PER_BIT)
    if bounded:
        scored = _end_sentences(scored)
    lead = PLAIN if asked == PLAIN or not bounded else CORRECTED
    scored = scored.drop_nulls("row").with_columns(pl.col(lead).alias("surprisal"))
    whole = words.select("row", "text").join(scored, on="row", how="left", maintain_order="left")
    return (reduce_entropy(whole) if "entropy" in whole.columns else whole).drop("text")


def _end_sentences(scored: pl.DataFrame) -> pl.DataFrame:
    """The last words of sentences corrected too, for what their end costs before the next sentence.

    The word before a sentence, at its head, has no row of its own; its correction is that of its end.
    """
    ended = pl.col("row").is_null().shift(-1) & (pl.col("place").shift(-1) == pl.col("place") + 1)
    end = (pl.col(CORRECTED) - pl.col(PLAIN)).shift(-1)
    return scored.with_columns(
        pl.when(ended.fill_null(False)).then(pl.col(CORRECTED) + end).otherwise(CORRECTED).alias(CORRECTED)
    )


def _list_spans(items: pl.DataFrame, found: pl.DataFrame) -> tuple[list[list[tuple[int, int]]], pl.DataFrame]:
    """The characters of the words of every text, and a frame with the place of the text and the word's row.

    The word before the sentence, if the text begins with one, comes first; its row is null.
    """
    by_sentence: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for text, sentence, start, end, row in found.select(
        "text", "sentence", "start", "end", "row"
    ).iter_rows():
        by_sentence.setdefault((text, sentence), []).append((start, end, row))
    spans, listed = [], list[tuple[int, int | None]]()
    for place, (suite, sentence, text, lead) in enumerate(
        items.select("suite", "sentence", "text", "lead").iter_rows()
    ):
        own = by_sentence.get((suite, sentence), [])
        head = len(text[:lead].rstrip())
        spans.append([(0, head)] * bool(lead) + [(lead + start, lead + end) for start, end, _ in own])
        listed += [(place, None)] * bool(lead) + [(place, row) for _, _, row in own]
    return spans, pl.DataFrame(listed, schema={"place": pl.Int64, "row": pl.Int64}, orient="row")


def _first_entropies(
    entropies: pl.DataFrame,
    tokens: pl.DataFrame,
    texts: Sequence[str],
    spans: Sequence[Sequence[tuple[int, int]]],
) -> list[float | None]:
    """The entropy at the first token of every word, in nats."""
    values: list[float | None] = []
    listed = entropies["entropy"].to_list()
    for own, row, text, words in zip(listed, tokens.iter_rows(named=True), texts, spans, strict=True):
        belongs, _ = assign_tokens(text, row["start"], row["end"], words)
        first: dict[int, float | None] = {}
        for place, word in enumerate(belongs.tolist()):
            first.setdefault(word, own[place])
        values += [first.get(number) for number in range(len(words))]
    return values


def reduce_entropy(scored: pl.DataFrame) -> pl.DataFrame:
    """How much entropy each word takes away: that of its own prediction less that of the next word's."""
    after = pl.col("entropy").shift(-1).over("text")
    reduction = (pl.col("entropy") - after).clip(lower_bound=0.0)
    return scored.with_columns(reduction.alias("entropy_reduction"))
