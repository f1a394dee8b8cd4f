"""Series of contexts as tables: one row a context, and what was too short for a length."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from felicity.core.ids import fingerprint
from felicity.core.schemas import TEXT, Schema, conform, empty_table
from felicity.core.sweep import SWEEP_CONTEXTS, UNPERTURBED
from felicity.design.contexts.growing import Grown, Growth

# A length that `series` of the `of` series could not reach; `reached` is how far the shortest of them got.
SHORT: Schema = {
    "suite": TEXT,
    "kind": TEXT,
    "source": TEXT,
    "wanted": pl.UInt32(),
    "reached": pl.UInt32(),
    "series": pl.UInt32(),
    "of": pl.UInt32(),
}


class Series(NamedTuple):
    """What tells the contexts that grow out of one another from all others."""

    suite: str
    group: str
    kind: str
    source: str | None
    perturbation: str
    draw: int

    @property
    def name(self) -> str:
        """The id: suite/group/kind[/source]/draw[/perturbation]."""
        source = () if self.source is None else (self.source,)
        perturbation = () if self.perturbation == UNPERTURBED else (self.perturbation,)
        return "/".join((self.suite, self.group, self.kind, *source, str(self.draw), *perturbation))


def list_contexts(
    series: Sequence[Series], growths: Sequence[Growth], grown: Sequence[Grown]
) -> pl.DataFrame:
    """A row of SWEEP_CONTEXTS for each cut of each series."""
    if not any(one.cuts for one in grown):
        return empty_table(SWEEP_CONTEXTS)
    about = pl.DataFrame(
        {
            **{field: [getattr(one, field) for one in series] for field in Series._fields},
            "series": [one.name for one in series],
            "place": range(len(series)),
            "sentences": [[drawn.sentence for drawn in growth.drawn] for growth in growths],
            "origins": [[drawn.origin for drawn in growth.drawn] for growth in growths],
        },
        schema_overrides={"source": pl.String(), "place": pl.UInt32()},
    )
    cuts = [(place, *cut) for place, one in enumerate(grown) for cut in one.cuts]
    texts = [growths[place].text(number) for place, _, number, _ in cuts]
    rows = pl.DataFrame(
        cuts,
        schema={"place": pl.UInt32(), "length": pl.UInt32(), "cut": pl.UInt32(), "n_tokens": pl.UInt32()},
        orient="row",
    )
    rows = rows.with_columns(
        pl.Series("context_text", texts), pl.Series("context", [fingerprint(text) for text in texts])
    )
    joined = rows.join(about, on="place", how="left", maintain_order="left")
    return conform(joined.with_columns(pl.col("sentences", "origins").list.head("cut")), SWEEP_CONTEXTS)


def list_short(series: Sequence[Series], grown: Sequence[Grown], lengths: Sequence[int]) -> pl.DataFrame:
    """A row of SHORT for each series and length, to be summed up; `reached` is null where it was reached."""
    rows = []
    for one, got in zip(series, grown, strict=True):
        for length in lengths:
            missed = length > (got.cuts[-1].length if got.cuts else 0)
            reached = got.reached if missed else None
            rows.append((one.suite, one.kind, one.source, length, reached, int(missed), 1))
    return pl.DataFrame(rows, schema=SHORT, orient="row")


def describe_short(short: pl.DataFrame, unit: str) -> list[str]:
    """Sentences on the suites that are too small for the lengths asked for."""
    keys = ["suite", "kind", "source"]
    about = short.sort("wanted").group_by(keys, maintain_order=True).first()
    sentences = []
    for row in about.sort(keys).iter_rows(named=True):
        source = f" {row['source']}" if row["source"] else ""
        sentences.append(
            f"{row['suite']}: too few sentences for {row['kind']}{source} contexts of {row['wanted']} {unit} "
            f"and more; {row['series']} of {row['of']} end sooner, the shortest at {row['reached']}."
        )
    return sentences
