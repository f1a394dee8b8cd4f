"""Similarity of two texts, as F1 of their words or dependency labels.

A text is a bag: how often each word occurs in it, lower-cased, without punctuation (or each label of the
dependency parse, without `punct`). With |x| the size of a bag and overlap the sum over words of the smaller
of the two counts,

    F1(a, b) = 2 overlap / (|a| + |b|),

the harmonic mean of the share of a found in b and the share of b found in a; 1 for two empty bags.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from felicity.design.parsing import parse

# Letters and digits, with apostrophes and hyphens inside: didn't, ex-husband, 3rd.
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
PAIRS_AT_ONCE = 5_000
PUNCTUATION_LABELS = ("punct", "")

Bag = Counter[str]
CountAll = Callable[[Sequence[str]], list[Bag]]
By = Literal["context", "sentence"]


def token_f1(a: str, b: str) -> float:
    """F1 of the words of two texts.

    >>> token_f1("The cat saw the dog.", "The dog slept.")
    0.5
    """
    return bag_f1(*count_words([a, b]))


def bag_f1(a: Bag, b: Bag) -> float:
    """F1 of two bags."""
    size = a.total() + b.total()
    return 2 * (a & b).total() / size if size else 1.0


def count_words(texts: Sequence[str]) -> list[Bag]:
    """The bag of words of every text.

    >>> count_words(["I didn't, did I?"])
    [Counter({'i': 2, "didn't": 1, 'did': 1})]
    """
    return [Counter(word.lower().replace("’", "'") for word in WORD.findall(text)) for text in texts]


def count_labels(texts: Sequence[str]) -> list[Bag]:
    """The bag of dependency labels of every text.

    Raises NotPossible if spaCy or its model is not installed.
    """
    return [
        Counter(token.dep for token in tokens if token.dep not in PUNCTUATION_LABELS)
        for tokens in parse(texts)
    ]


def measure_similarity(
    pairs: pl.DataFrame, contexts: pl.DataFrame, *, by: By = "context", labels: bool = True
) -> pl.DataFrame:
    """Each pair of a context and a text with `token_f1` and, with `labels`, `dependency_f1`.

    `pairs` has the columns `context` and `text`; other columns and the order are kept. `contexts` has
    `context` and `sentences`. By `context`, the sentences are one bag; by `sentence`, the text is compared
    with each of them and F1 averaged (0 for a context without sentences), which does not depend on the
    length of the context: a long bag contains every text's words, so its F1 mostly reflects the two lengths.

    Raises NotPossible if labels are requested and spaCy or its model is not installed.
    """
    distinct = pairs.select("context", "text").unique(maintain_order=True)
    used = contexts.select("context", "sentences").unique("context").join(distinct, on="context", how="semi")
    placed = used.explode("sentences").rename({"sentences": "sentence"}).drop_nulls()
    sentences = pl.concat([placed["sentence"], distinct["text"]]).unique(maintain_order=True)
    score = _score_bags if by == "context" else _score_means
    for name, count_all in COUNTS.items():
        if labels or name != "dependency_f1":
            counts = _tabulate(sentences.to_list(), count_all)
            distinct = distinct.with_columns(score(distinct, placed, counts).alias(name))
    return pairs.join(distinct, on=["context", "text"], how="left", maintain_order="left")


def _score_bags(pairs: pl.DataFrame, placed: pl.DataFrame, counts: pl.DataFrame) -> pl.Series:
    """F1 of each text with all sentences of its context, by one join over the words they share."""
    bags = (
        placed.join(counts, left_on="sentence", right_on="text")
        .group_by("context", "unit")
        .agg(pl.col("count").sum())
    )
    sizes = counts.group_by("text").agg(pl.col("count").sum().alias("text_size"))
    bag_sizes = bags.group_by("context").agg(pl.col("count").sum().alias("context_size"))
    numbered = pairs.select("context", "text").with_row_index("pair")
    overlap = (
        numbered.join(counts, on="text")
        .join(bags, on=["context", "unit"], suffix="_context")
        .group_by("pair")
        .agg(pl.min_horizontal("count", "count_context").sum().alias("overlap"))
    )
    size = pl.col("text_size").fill_null(0) + pl.col("context_size").fill_null(0)
    scored = (
        numbered.join(sizes, on="text", how="left")
        .join(bag_sizes, on="context", how="left")
        .join(overlap, on="pair", how="left")
        .sort("pair")
        .select(pl.when(size > 0).then(2 * pl.col("overlap").fill_null(0) / size).otherwise(1.0).alias("f1"))
    )
    return scored["f1"]


def _score_means(pairs: pl.DataFrame, placed: pl.DataFrame, counts: pl.DataFrame) -> pl.Series:
    """Mean F1 of each text with each sentence of its context, in batches to bound memory."""
    alone = placed.select("sentence").unique().with_columns(context="sentence")
    means = []
    for part in pairs.select("context", "text").with_row_index("pair").iter_slices(PAIRS_AT_ONCE):
        met = part.join(placed, on="context", maintain_order="left").select(
            "pair", "text", context="sentence"
        )
        distinct = met.select("context", "text").unique()
        near = alone.join(distinct, on="context", how="semi")
        scored = distinct.with_columns(_score_bags(distinct, near, counts).alias("f1"))
        mean = (
            met.join(scored, on=["context", "text"], maintain_order="left")
            .group_by("pair", maintain_order=True)
            .agg(pl.col("f1").mean())
        )
        joined = part.join(mean, on="pair", how="left").sort("pair")
        means.append(joined["f1"].fill_null(0.0))
    return pl.concat(means) if means else pl.Series("f1", [], dtype=pl.Float64)


def _tabulate(texts: Sequence[str], count_all: CountAll) -> pl.DataFrame:
    """Counts as rows: text, unit (a word or label), count."""
    rows = [
        (text, unit, number)
        for text, bag in zip(texts, count_all(texts), strict=True)
        for unit, number in bag.items()
    ]
    schema = {"text": pl.String, "unit": pl.String, "count": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


COUNTS: dict[str, CountAll] = {"token_f1": count_words, "dependency_f1": count_labels}
