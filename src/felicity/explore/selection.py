"""Which judgements are shown, and in which order: facets, ranges, a search, two models compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.explore.collections import Collection
from felicity.explore.index import CONTEXT_FACTORS, VERDICTS, in_order

# Facets that are columns of the table, and those that depend on the model.
LABELS = ("suite", "phenomenon", "rule", "condition", *CONTEXT_FACTORS)
OF_MODEL = ("verdict", "stability", "difference")
LARGEST_DIFFERENCE = 5
# Selections by the verdicts of two models; the word for an item that passed goes into the braces.
PICKS = {
    "disagree": "the verdict is “{}” for one model and not for the other",
    "both_right": "the verdict is “{}” for both",
    "both_wrong": "the verdict is “{}” for neither",
    "only_a": "the verdict is “{}” for the first only",
    "only_b": "the verdict is “{}” for the second only",
    "unstable": "a margin is within numerical noise",
    "unequal": "the sentences differ in their number of tokens",
}
SORTS = ("row", "item", "suite", "margin", "margin_b", "closeness", "difference", "apart")
PAGE = 50
LARGEST_PAGE = 500
RANGES = ("low", "high", "low_b", "high_b")
# A phrase between quotation marks, or a word.
SEARCH = re.compile(r'"([^"]+)"|(\S+)')


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A choice of judgements by one measure.

    a, b: places of the two models that are compared (b may be a). facets: chosen values by facet. ranges:
    ends of the margins of a (`low`, `high`) and of b (`low_b`, `high_b`). pick: a name of PICKS, or empty.
    """

    measure: str
    a: int = 0
    b: int = 0
    facets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: Mapping[str, float] = field(default_factory=dict)
    search: str = ""
    pick: str = ""
    sort: str = "row"
    descending: bool = False


def parse_selection(collection: Collection, given: Mapping[str, Sequence[str]]) -> Selection:
    """A selection from the parameters of an address, each with one or several values.

    Raises UnknownName for a measure, model, facet or order that does not exist, BadInput for a range that
    is not a number.
    """

    def one(name: str, default: str = "") -> str:
        return given[name][0] if given.get(name) else default

    measure = one("measure", collection.measures[0])
    if measure not in collection.measures:
        raise UnknownName("measure", measure, collection.measures)
    models = collection.models
    a = collection.find(one("a", models[0]))
    b = collection.find(one("b", models[1] if len(models) > 1 else models[0]))
    pick, sort = one("pick"), one("sort", "row")
    if pick and pick not in PICKS:
        raise UnknownName("selection", pick, PICKS)
    if sort not in SORTS:
        raise UnknownName("order", sort, SORTS)
    known = list_facets(collection)
    return Selection(
        measure=measure,
        a=a,
        b=b,
        facets={name: tuple(values) for name, values in given.items() if name in known and values},
        ranges={name: _number(name, one(name)) for name in RANGES if one(name)},
        search=one("q").strip().lower(),
        pick=pick,
        sort=sort,
        descending=one("desc") == "1",
    )


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BadInput(f"'{name}' is '{text}'; a margin is a number.") from error


def list_facets(collection: Collection) -> list[str]:
    """The facets that the table of a collection has."""
    return [name for name in LABELS if name in collection.columns] + list(OF_MODEL)


def facet_value(facet: str, model: int) -> pl.Expr:
    """The value of a facet for a judgement, as text (of conditions: a list of texts)."""
    if facet == "verdict":
        return pl.col(f"verdict_{model}")
    if facet == "stability":
        stable = pl.col(f"stable_{model}")
        return pl.when(stable).then(pl.lit("stable")).when(~stable).then(pl.lit("unstable"))
    if facet == "difference":
        clipped = pl.col(f"difference_{model}").clip(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
        return clipped.cast(pl.String)
    return pl.col(facet) if facet == "condition" else pl.col(facet).cast(pl.String)


def pick_filter(pick: str, a: int, b: int) -> pl.Expr:
    """The condition of a selection by comparison of two models."""
    right_a, right_b = (pl.col(f"verdict_{model}") == VERDICTS[0] for model in (a, b))
    known = right_a.is_not_null() & right_b.is_not_null()
    return (
        known
        & {
            "disagree": right_a != right_b,
            "both_right": right_a & right_b,
            "both_wrong": ~right_a & ~right_b,
            "only_a": right_a & ~right_b,
            "only_b": ~right_a & right_b,
            "unstable": ~(pl.col(f"stable_{a}") & pl.col(f"stable_{b}")),
            "unequal": (pl.col(f"difference_{a}") != 0) | (pl.col(f"difference_{b}") != 0),
        }[pick]
    )


def build_filters(selection: Selection) -> dict[str, pl.Expr]:
    """The conditions of a selection by the name of what sets them."""
    found: dict[str, pl.Expr] = {}
    for facet, values in selection.facets.items():
        value = facet_value(facet, selection.a)
        chosen = list(values)
        found[facet] = (
            value.list.set_intersection(chosen).list.len() > 0
            if facet == "condition"
            else value.is_in(chosen)
        )
    for name, limit in selection.ranges.items():
        margin = pl.col(f"margin_{selection.b if name.endswith('_b') else selection.a}")
        found[name] = margin >= limit if name.startswith("low") else margin <= limit
    for number, wanted in enumerate(split_search(selection.search)):
        found[f"search {number}"] = pl.col("search").str.contains(wanted, literal=True)
    if selection.pick:
        found["pick"] = pick_filter(selection.pick, selection.a, selection.b)
    return {name: condition.fill_null(False) for name, condition in found.items()}


def split_search(search: str) -> list[str]:
    """The words and the quoted phrases of a search, all of which a judgement must have.

    >>> split_search('cat "the old dog" sat "un')
    ['cat', 'the old dog', 'sat', 'un']
    """
    parts = [quoted or word for quoted, word in SEARCH.findall(search)]
    return [part for part in (part.strip('"') for part in parts) if part.strip()]


def take(collection: Collection, selection: Selection) -> pl.LazyFrame:
    """The selected judgements in their order."""
    chosen = collection.scan().filter(
        pl.col("measure") == selection.measure, *build_filters(selection).values()
    )
    a, b = (pl.col(f"margin_{model}") for model in (selection.a, selection.b))
    orders = {
        "row": pl.col("row"),
        "item": pl.col("item"),
        "suite": pl.col("suite"),
        "margin": a,
        "margin_b": b,
        "closeness": a.abs(),
        "difference": pl.col(f"difference_{selection.a}"),
        "apart": (a - b).abs(),
    }
    if selection.sort == "row" and not selection.descending:
        return chosen
    down = [selection.descending, False]
    return chosen.sort(orders[selection.sort], "row", descending=down, nulls_last=True)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the selected judgements, how many there are in all, and how many each facet's values have."""

    rows: list[dict[str, Any]]
    total: int
    all: int
    facets: dict[str, list[tuple[str, int]]]


def read_page(collection: Collection, selection: Selection, *, offset: int = 0, size: int = PAGE) -> Page:
    """One page of the selected judgements.

    The count of a facet's value is what choosing it would show: the other conditions apply, the facet's
    own do not.
    """
    limits = max(offset, 0), min(max(size, 1), LARGEST_PAGE)
    narrow, masks = _read_masks(collection, selection)
    whole = pl.all_horizontal(masks) if masks else pl.lit(True)
    return Page(
        rows=show_rows(collection, take(collection, selection).slice(*limits).collect()),
        total=int(narrow.select(whole.sum() if masks else pl.len()).item()),
        all=len(narrow),
        facets={name: _count(narrow, masks, name) for name in list_facets(collection)},
    )


def _read_masks(collection: Collection, selection: Selection) -> tuple[pl.DataFrame, list[str]]:
    """The values of every facet and whether each condition holds, for all judgements of the measure."""
    filters = build_filters(selection)
    masks = {name: f"mask {name}" for name in filters}
    values = [facet_value(name, selection.a).alias(name) for name in list_facets(collection)]
    conditions = [condition.alias(masks[name]) for name, condition in filters.items()]
    frame = collection.scan().filter(pl.col("measure") == selection.measure).select(*values, *conditions)
    return frame.collect(), list(masks.values())


def _count(narrow: pl.DataFrame, masks: Sequence[str], facet: str) -> list[tuple[str, int]]:
    others = [name for name in masks if name != f"mask {facet}"]
    kept = narrow.filter(pl.all_horizontal(others)) if others else narrow
    column = kept[facet].explode() if facet == "condition" else kept[facet]
    counted = column.drop_nulls().value_counts(name="n")
    counts = dict(zip(counted[facet].to_list(), counted["n"].to_list(), strict=True))
    # Values that no judgement has under the other conditions are listed too, so that the list stands still.
    every = narrow[facet].explode() if facet == "condition" else narrow[facet]
    names = every.drop_nulls().unique(maintain_order=True).to_list()
    if facet in ("difference", "length", "draw"):
        names.sort(key=int)
    return [(name, int(counts.get(name, 0))) for name in names]


def show_rows(collection: Collection, frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the table as a page shows them, the models' columns gathered into lists."""
    factors = [name for name in CONTEXT_FACTORS if name in frame.columns]
    numbers = range(len(collection.sources))
    shown = []
    for row in frame.iter_rows(named=True):
        about = {name: row[name] for name in ("row", "key", "item", "suite", "phenomenon", "rule")}
        per_model = {
            name: [row[f"{name}_{number}"] for number in numbers]
            for name in ("passed", "margin", "stable", "verdict", "difference")
        }
        texts = {"condition": row["condition"] or [], "text": row["text"] or []}
        rated = {"rating": row["rating"]} if "rating" in row else {}
        shown.append(about | texts | per_model | rated | {name: row[name] for name in factors})
    return shown


def find_neighbours(collection: Collection, selection: Selection, key: str) -> dict[str, Any]:
    """The place of a judgement among the selected ones, and those before and after it."""
    keys = take(collection, selection).select("key").collect()["key"].to_list()
    place = keys.index(key) if key in keys else None
    if place is None:
        return {"place": None, "of": len(keys), "before": None, "after": keys[0] if keys else None}
    return {
        "place": place + 1,
        "of": len(keys),
        "before": keys[place - 1] if place else None,
        "after": keys[place + 1] if place + 1 < len(keys) else None,
    }


def tabulate_selection(collection: Collection, selection: Selection) -> pl.DataFrame:
    """The selected judgements as a flat table: verdicts and margins of every model, a text per condition."""
    frame = take(collection, selection).collect()
    conditions = frame["condition"].explode().drop_nulls().unique(maintain_order=True).to_list()
    factors = [name for name in CONTEXT_FACTORS if name in frame.columns]
    texts = [
        pl.Series(
            f"text_{condition}",
            [
                dict(zip(names or [], own or [], strict=True)).get(condition)
                for names, own in zip(frame["condition"].to_list(), frame["text"].to_list(), strict=True)
            ],
            dtype=pl.String,
        )
        for condition in conditions
    ]
    columns = [pl.col(name) for name in ("item", "suite", "phenomenon", "measure", "rule", *factors)]
    columns += [pl.col("rating")] if "rating" in frame.columns else []
    for number, model in enumerate(collection.models):
        columns += [
            pl.col(f"{name}_{number}").alias(f"{name} {model}")
            for name in ("verdict", "margin", "stable", "difference")
        ]
    return frame.with_columns(texts).select(*columns, *(series.name for series in texts))


def list_stimuli(collection: Collection, selection: Selection) -> pl.DataFrame:
    """The sentences of the selected items, one row each, as `felicity rate new --from` takes them."""
    source = collection.sources[0]
    frame = take(collection, selection)
    keys = frame.select(*dict.fromkeys(["item", "suite", "phenomenon", *source.unit]))
    if "condition" in source.unit:
        keys = keys.with_columns(pl.col("condition").list.first())
    keys = keys.unique(maintain_order=True)
    asked = in_order(source).select("item", "condition", "context", "text")
    texts = source.scan("contexts").select("context", pl.col("context_text").alias("before"))
    joined = (
        keys.join(asked, on=source.unit, how="left", nulls_equal=True, maintain_order="left_right")
        .join(texts.unique("context"), on="context", how="left", maintain_order="left")
        .collect()
    )
    item = pl.col("item")
    if "context" in source.unit:
        item = pl.concat_str(item, pl.col("context").fill_null(""), separator="~").str.strip_chars_end("~")
    context = pl.col("before").fill_null("").alias("context")
    whole = joined.select(item, "condition", "text", context, "suite", "phenomenon")
    return whole.drop("context") if (whole["context"] == "").all() else whole
