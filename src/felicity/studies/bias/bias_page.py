"""The page about token-length bias: does accuracy depend on which sentence of a pair is longer?"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.wording import (
    NO_DIFFERENCE,
    decimal,
    format_interval,
    format_p,
    p_cell,
    share_interval,
    signed,
)
from felicity.report import Figure, Linked, Page, Section, count, percent_interval, spaced
from felicity.report.charts import (
    MOST_SERIES,
    Dot,
    Estimate,
    Point,
    Row,
    chart_accuracy,
    chart_estimates,
    chart_lines,
    chart_scatter,
)
from felicity.studies.bias.debias import EVERYTHING
from felicity.studies.bias.lengths import BIASED, DEBIASED, SPLITS
from felicity.studies.bias.splits import INTERVALS, write_legend
from felicity.studies.study import Study

# Differences with fewer pairs than this are not drawn.
FEWEST = 5
LONGER, SHORTER = SPLITS[1], SPLITS[2]
# The explorer's facet of differences in tokens ends with "5 or more".
FURTHEST = 5
# How figures call the splits.
SPLIT_WORDS = dict(zip(SPLITS, ("equal length", "acceptable longer", "acceptable shorter"), strict=True))
SIGNS = dict(zip(SPLITS, ([0], range(1, FURTHEST + 1), range(-FURTHEST, 0)), strict=True))
# A slope with a smaller p is called a bias.
LEVEL = 0.05


def sections(study: Study) -> Page:
    """The answer, the splits of every measure as the main figure, then curves, suites and the second set."""
    headline = Headline.read(study.facts["score"])
    splits, slopes = study["splits"], study["slopes"].drop_nulls("slope")
    whole = splits.filter(suite=EVERYTHING)
    judged = whole.drop_nulls("accuracy")
    compared = study.tables.get("debias")
    subject = " and ".join(name for name in (study.facts["dataset"], study.facts["debias"]) if name)
    return Page(
        title="Token-length bias",
        subject=subject,
        question=f"Does {headline.noun} depend on which sentence of a pair is longer in tokens?",
        answer=_answer(judged, study["slopes"], headline),
        hero=_forest(study, slopes, subject, headline) or _hero(study, judged, subject, headline),
        sure=_doubts(whole, splits),
        findings=tuple(_compare_ends(judged, slopes.filter(set=BIASED), headline)),
        sections=(
            *_slopes(study, headline),
            _overall(study, whole, headline),
            *(_side_by_side(study, compared, headline) if compared is not None else ()),
            *_differences(study, subject, headline),
            _suites(study, splits),
        ),
        legend=write_legend(headline),
        summary="splits",
    )


def _ends(judged: pl.DataFrame) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Model, measure, and the cells in which A is the longer and the shorter sentence, if both have pairs."""
    found = []
    for (model, measure), part in judged.group_by("model", "measure", maintain_order=True):
        cells = {cell["split"]: cell for cell in part.iter_rows(named=True)}
        if LONGER in cells and SHORTER in cells:
            found.append((str(model), str(measure), cells[LONGER], cells[SHORTER]))
    return found


def _apart(longer: dict[str, Any], shorter: dict[str, Any]) -> bool:
    """Whether the intervals of two splits have nothing in common."""
    return bool(longer["high"] < shorter["low"] or shorter["high"] < longer["low"])


def _answer(judged: pl.DataFrame, slopes: pl.DataFrame, headline: Headline) -> str:
    """The verdict, by the slopes of the first set where they can be estimated, else by the splits."""
    if judged.is_empty():
        return "Only tokenizers were given, so pairs are counted by length and nothing was scored."
    first = slopes.filter(set=BIASED)
    known = first.drop_nulls("slope")
    # Without a slope, as where length separates right from wrong answers, the intervals of the splits decide.
    rest = judged.join(known, on=["model", "measure"], how="anti")
    if len(known) and not any(_apart(longer, shorter) for *_, longer, shorter in _ends(rest)):
        return _judge_slopes(known, headline)
    ends = _ends(rest)
    if not ends:
        return "It cannot be said here: pairs in which one of the two sentences is longer are missing."
    biased = [
        (model, measure, longer, shorter)
        for model, measure, longer, shorter in ends
        if _apart(longer, shorter)
    ]
    if not biased:
        return (
            f"No detectable difference: the intervals of {headline.noun} where the acceptable sentence is "
            "longer and where it is shorter overlap for every measure."
        )
    model, measure, longer, shorter = max(
        biased, key=lambda end: abs(end[2]["accuracy"] - end[3]["accuracy"])
    )
    return (
        f"Yes: under {measure}, {headline.noun} of {model} is {_say(shorter)} where the acceptable sentence "
        f"is shorter and {_say(longer)} where it is longer."
    )


def _judge_slopes(slopes: pl.DataFrame, headline: Headline) -> str:
    several = slopes["model"].n_unique() > 1
    biased = slopes.filter(pl.col("p") < LEVEL)
    flat = slopes.filter(pl.col("p") >= LEVEL)
    spared = f" No slope is detectable for {_name(flat, several=several)}." if len(flat) else ""
    if biased.is_empty():
        return f"No slope of {headline.noun} over the difference in length is detectable for any measure."
    row = max(biased.iter_rows(named=True), key=lambda one: abs(one["slope"]))
    way = "falls" if row["slope"] < 0 else "rises"
    return (
        f"Yes, for {_name(biased, several=several)}: under {row['measure']}, {headline.noun} of "
        f"{row['model']} {way} as the acceptable sentence gets longer, by {decimal(abs(row['slope']))} "
        f"log-odds per token, {format_p(row['p'])}.{spared}"
    )


def _name(rows: pl.DataFrame, *, several: bool) -> str:
    named = [
        f"{row['measure']} of {row['model']}" if several else str(row["measure"])
        for row in rows.iter_rows(named=True)
    ]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _forest(study: Study, slopes: pl.DataFrame, subject: str, headline: Headline) -> Figure | None:
    """The slope of every measure with its interval around zero; None if there are fewer than two."""
    if len(slopes) < 2:
        return None
    columns = [name for name in ("model", "set") if slopes[name].n_unique() > 1]
    rows = [
        Estimate(
            ", ".join(str(row[name]) for name in ("measure", *columns)),
            row["slope"],
            row["low"],
            row["high"],
            _link_set(study, row["model"], row["set"], measure=row["measure"]),
        )
        for row in slopes.iter_rows(named=True)
    ]
    return Figure(
        name="slopes",
        title=f"Does {headline.noun} change with the difference in length?",
        subtitle=f"{subject}; a measure that length does not bias is at zero",
        label=f"Slope of {headline.noun} over tokens of A minus tokens of U with its 95% interval, for each "
        "measure; the numbers are in the table of slopes.",
        chart=partial(chart_estimates, rows, axis="log-odds per token that A is longer than U"),
    )


def _link_set(
    study: Study,
    model: str,
    name: str,
    *,
    measure: str,
    difference: Sequence[str] = (),
    suite: str | Sequence[str] = "",
) -> str:
    """Where the pairs of one of the sets are shown."""
    part = name if study.facts["debias"] else ""
    return study.link(model, part, measure=measure, difference=difference, suite=suite)


def _slopes(study: Study, headline: Headline) -> tuple[Section, ...]:
    """The slope of every measure, and whether any two differ."""
    slopes, tests = study["slopes"], study["slope_tests"]
    if slopes.is_empty():
        return ()
    found = Section(
        name="slopes",
        title="Slopes",
        lede=f"How {headline.noun} changes per token that A is longer than U, in log-odds, with 95% "
        "intervals and Wald tests of slope 0, by a mixed logistic model whose intercept and slope vary "
        "between suites.",
        columns=("Model", "Set", "Measure", "Slope (log-odds per token)", "p", "n", "Suites"),
        rows=tuple(
            (
                *(str(row[name]) for name in ("model", "set", "measure")),
                Linked(_interval(row["slope"], row["low"], row["high"]), link),
                p_cell(row["p"]),
                Linked(count(row["n"]), link),
                count(row["suites"]),
            )
            for row in slopes.iter_rows(named=True)
            for link in (_link_set(study, row["model"], row["set"], measure=row["measure"]),)
        ),
        names=3,
        notes=tuple(
            f"{row['model']}, {row['measure']}, {row['set']}: {row['note']}"
            for row in slopes.iter_rows(named=True)
            if row["note"]
        ),
    )
    if tests.is_empty():
        return (found,)
    compared = Section(
        name="slope_tests",
        title="Slopes compared",
        lede="Differences between the slopes of two measures on the same pairs; intervals and p by the "
        "jackknife over suites, or over items where there are fewer than five suites.",
        columns=("Model", "Set", "Measures", "Difference of slopes", "p"),
        rows=tuple(
            (
                *(str(row[name]) for name in ("model", "set")),
                f"{row['first']} - {row['second']}",
                Linked(
                    _interval(row["difference"], row["low"], row["high"]),
                    _link_set(study, row["model"], row["set"], measure=row["first"]),
                ),
                p_cell(row["p"]),
            )
            for row in tests.iter_rows(named=True)
        ),
        names=3,
    )
    return (found, compared)


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None or low is None or high is None:
        return "N/A"
    return f"{signed(value)} {format_interval(low, high, signed)}"


def _compare_ends(judged: pl.DataFrame, slopes: pl.DataFrame, headline: Headline) -> list[str]:
    """The splits of every measure, with the test that the answer goes by: the slope, else the intervals."""
    tested = {(row["model"], row["measure"]): row for row in slopes.iter_rows(named=True)}
    sentences = []
    for model, measure, longer, shorter in _ends(judged):
        slope = tested.get((model, measure))
        if slope is None:
            verdict = "the intervals do not overlap" if _apart(longer, shorter) else NO_DIFFERENCE
        else:
            span = _interval(slope["slope"], slope["low"], slope["high"])
            flat = "" if slope["p"] < LEVEL else f", {NO_DIFFERENCE} from 0"
            verdict = f"slope {span} log-odds per token, {format_p(slope['p'])}{flat}"
        sentences.append(
            f"{model}, {measure}: {headline.noun} is {_say(shorter)} where the acceptable sentence is "
            f"shorter and {_say(longer)} where it is longer; {verdict}."
        )
    return sentences


def _say(cell: dict[str, Any]) -> str:
    return f"{share_interval(*_numbers(cell))} (n = {count(cell['n'])})"


def _numbers(cell: dict[str, Any]) -> tuple[float, float, float]:
    return cell["accuracy"], cell["low"], cell["high"]


def _doubts(whole: pl.DataFrame, splits: pl.DataFrame) -> tuple[str, ...]:
    single = splits.filter(pl.col("suite") != EVERYTHING)
    uneven = single.filter((pl.col("split") != SPLITS[0]) & (pl.col("n") > 0))["suite"].n_unique()
    smallest = whole.filter(pl.col("split") != SPLITS[0])["n"].min()
    return (
        INTERVALS,
        f"{uneven} of {single['suite'].n_unique()} suites have pairs of unequal length under at least one "
        f"model; the smallest split has {count(int(str(smallest)))} pairs.",
        "The verdict is that of the slope; where none can be estimated, two splits are called different if "
        "their intervals do not overlap, which is a cautious rule. The splits hold different pairs, so they "
        "may also differ in difficulty, and slopes mix both.",
    )


def _hero(study: Study, judged: pl.DataFrame, subject: str, headline: Headline) -> Figure | None:
    """Accuracy in each split, for every model and measure."""
    several = judged["model"].n_unique() > 1
    rows = [
        Row(
            f"{row['model']}, {row['measure']}, {SPLIT_WORDS[row['split']]}"
            if several
            else f"{row['measure']}, {SPLIT_WORDS[row['split']]}",
            *_numbers(row),
            row["n"],
            link=_link(study, row, SIGNS[row["split"]]),
        )
        for row in judged.iter_rows(named=True)
    ]
    if len(rows) < 2:
        return None
    return Figure(
        name="splits",
        title=f"{headline.name} by which sentence is longer",
        subtitle=subject,
        label=f"{headline.name} in each split, for each measure; the numbers are in the table of splits.",
        chart=partial(chart_accuracy, rows, chance=0.5, noun="pairs"),
    )


def _overall(study: Study, whole: pl.DataFrame, headline: Headline) -> Section:
    return Section(
        name="splits",
        title="Splits",
        lede=f"{headline.name}, %, and the number of pairs n in each split. {INTERVALS} N/A: no pair.",
        columns=("Model", "Measure", *_split_columns()),
        rows=tuple(_rows(study, whole, suite=False)),
        names=2,
    )


def _suites(study: Study, splits: pl.DataFrame) -> Section:
    return Section(
        name="suites",
        title="By suite",
        lede="The same for every suite; intervals are over its pairs.",
        columns=("Suite", "Model", "Measure", *_split_columns()),
        rows=tuple(_rows(study, splits.filter(pl.col("suite") != EVERYTHING), suite=True)),
        names=3,
        folded=True,
    )


def _split_columns() -> tuple[str, ...]:
    return tuple(name for split in SPLITS for name in (split, f"n {split}"))


def _rows(study: Study, splits: pl.DataFrame, *, suite: bool) -> list[tuple[str, ...]]:
    keys = ["suite", "model", "measure"]
    rows = []
    for (name, model, measure), part in splits.group_by(keys, maintain_order=True):
        cells = {cell["split"]: cell for cell in part.iter_rows(named=True)}
        first = (spaced(str(name)),) if suite else ()
        shown = [
            Linked(text, _link(study, cells[split], SIGNS[split]))
            for split in SPLITS
            for text in (_cell(cells[split]), count(cells[split]["n"]))
        ]
        rows.append((*first, str(model), str(measure or "–"), *shown))
    return rows


def _link(study: Study, cell: dict[str, Any], differences: Sequence[int]) -> str:
    """Where the pairs of a cell are shown, by their differences in tokens; empty if it was not judged."""
    if cell["measure"] is None:
        return ""
    suite = cell.get("suite", EVERYTHING)
    return _link_set(
        study,
        cell["model"],
        BIASED,
        measure=cell["measure"],
        difference=[str(min(max(number, -FURTHEST), FURTHEST)) for number in differences],
        suite="" if suite == EVERYTHING else suite,
    )


def _cell(cell: dict[str, Any]) -> str:
    if cell["accuracy"] is None:
        return "" if cell["measure"] is None else "N/A"
    return percent_interval(*_numbers(cell))


def _differences(study: Study, subject: str, headline: Headline) -> list[Section]:
    """Accuracy, in the dataset's words, by difference in length, one figure per model with enough pairs."""
    kept = study["curves"].filter(pl.col("n") >= FEWEST)
    figures = []
    for (model,), part in kept.group_by("model", maintain_order=True):
        measures = part["measure"].unique(maintain_order=True).to_list()[:MOST_SERIES]
        points = [
            Point(
                row["measure"],
                row["difference"],
                100 * row["accuracy"],
                100 * row["low"],
                100 * row["high"],
                _link(study, row, [row["difference"]]),
            )
            for row in part.filter(pl.col("measure").is_in(measures)).iter_rows(named=True)
        ]
        figures.append(
            Figure(
                name=f"curve_{model}",
                title=f"{headline.name} by difference in length: {model}",
                subtitle=f"{subject}; 95% intervals over suites, or over pairs of one suite",
                label=f"{headline.name} of {model} by tokens of A minus tokens of U, for "
                f"{', '.join(measures)}.",
                chart=partial(
                    chart_lines,
                    points,
                    x_title="tokens of A minus tokens of U",
                    y_title=f"{headline.noun} (%)",
                    level=50,
                ),
            )
        )
    if not figures:
        return []
    lede = (
        f"{headline.name} by the difference in tokens, for differences with at least {FEWEST} pairs. "
        f"{INTERVALS} A measure that is not biased by length gives a horizontal line."
    )
    return [Section(name="curves", title="By difference in length", lede=lede, figures=tuple(figures))]


def _side_by_side(study: Study, compared: pl.DataFrame, headline: Headline) -> tuple[Section, ...]:
    """The biased and the debiased set: as a table, as bars, and suite by suite."""
    whole = compared.filter(suite=EVERYTHING)
    return (
        Section(
            name="debias",
            title="Biased and debiased",
            lede=f"{headline.name} on the biased set and on the debiased one. {INTERVALS} p: "
            "the score test over suites (over pairs within a suite) where both sets have the same items; "
            "over suites, Wilcoxon's signed ranks.",
            figures=(*_bars(study, whole, headline), *_scatter(study, compared, headline)),
            columns=(
                "Model",
                "Measure",
                BIASED,
                f"n {BIASED}",
                DEBIASED,
                f"n {DEBIASED}",
                "p",
                "p over suites",
            ),
            rows=tuple(_pair(study, row) for row in whole.iter_rows(named=True)),
            names=2,
        ),
    )


def _common(study: Study) -> list[str]:
    """The suites that both sets have, if the first one has others too."""
    compared, known = (set(study[name]["suite"]) - {EVERYTHING} for name in ("debias", "splits"))
    return sorted(compared) if compared < known else []


def _pair(study: Study, row: dict[str, Any]) -> tuple[str, ...]:
    sets = [
        Linked(text, _link_set(study, row["model"], name, measure=row["measure"], suite=_common(study)))
        for name in (BIASED, DEBIASED)
        for text in (
            percent_interval(row[name], row[f"{name} low"], row[f"{name} high"]),
            count(row[f"n {name}"]),
        )
    ]
    tests = [p_cell(row[name]) for name in ("p", "p_suites")]
    return (str(row["model"]), str(row["measure"]), *sets, *tests)


def _bars(study: Study, whole: pl.DataFrame, headline: Headline) -> list[Figure]:
    """The splits of the biased set above the whole of it and the debiased set, one figure per model."""
    figures = []
    for (model,), part in whole.group_by("model", maintain_order=True):
        bars = [
            Row(
                f"{row['measure']}, {name}",
                row[name],
                row[f"{name} low"],
                row[f"{name} high"],
                row[f"n {name}"],
                link=_link(study, row | {"suite": _common(study) or EVERYTHING}, SIGNS[name])
                if name in SIGNS
                else _link_set(study, row["model"], name, measure=row["measure"], suite=_common(study)),
            )
            for row in part.iter_rows(named=True)
            for name in (*SPLITS, BIASED, DEBIASED)
            if row[f"n {name}"]
        ]
        figures.append(
            Figure(
                name=f"sets_{model}",
                title=f"{headline.name} by split and set: {model}",
                subtitle="",
                label=f"{headline.name} of {model} in each split of the biased set, on all of it and "
                "on the debiased set, for each measure.",
                chart=partial(chart_accuracy, bars, chance=0.5, noun="pairs"),
            )
        )
    return figures


def _scatter(study: Study, compared: pl.DataFrame, headline: Headline) -> list[Figure]:
    figures = []
    suites = compared.filter(pl.col("suite") != EVERYTHING)
    for (model,), part in suites.group_by("model", maintain_order=True):
        dots = [
            Dot(
                row["measure"],
                "",
                100 * row[BIASED],
                100 * row[DEBIASED],
                row["suite"],
                link=_link_set(study, row["model"], DEBIASED, measure=row["measure"], suite=row["suite"]),
            )
            for row in part.iter_rows(named=True)
        ]
        figures.append(
            Figure(
                name=f"debias_{model}",
                title=f"{headline.name} on the biased and the debiased set: {model}",
                subtitle=f"{part['suite'].n_unique()} suites; above the diagonal the debiased one is easier",
                label=f"{headline.name} of {model} on each suite of the debiased set against the biased one.",
                chart=partial(
                    chart_scatter, dots, x_title=f"{BIASED} (%)", y_title=f"{DEBIASED} (%)", diagonal=True
                ),
            )
        )
    return figures
