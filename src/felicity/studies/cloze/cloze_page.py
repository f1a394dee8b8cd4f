"""The page about cloze probes: hit rates, both sizes compared, what they rest on, and items to look at."""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.wording import NO_DIFFERENCE, format_interval, format_p, p_cell, points, share_interval
from felicity.report import (
    MISSING,
    Figure,
    Linked,
    Page,
    Section,
    count,
    decimal,
    percent,
    percent_interval,
    signed,
)
from felicity.report.charts import Row, chart_accuracy
from felicity.studies.cloze.answers import MAIN, TOP
from felicity.studies.cloze.settings import FIGURES
from felicity.studies.study import Study

NAMES = {
    "top1": "Top 1",
    "top5": "Top 5",
    "top10": "Top 10",
    "top20": "Top 20",
    "sensitivity": "Sensitivity",
}
# Table 3 to 5 of the paper: mean of two annotators on 100 sentences, and their kappa.
PUBLISHED_HUMANS = {
    "neg_1500_simp_temp": (58.5, 0.50),
    "neg_1500_simp_gen": (45.5, 0.45),
    "role_1500": (10.0, 0.07),
}
LONGEST_FRAME = 90


def sections(study: Study) -> Page:
    """The answer, top-5 hit rates with what guessing gives, then everything they rest on."""
    compared = "sizes" in study.tables
    parts = [
        _accuracy(study),
        _sizes(study) if compared else None,
        _changes(study) if "changes" in study.tables else None,
        _targets(study),
        _regressions(study) if "regressions" in study.tables else None,
        _humans(study),
        *(_items(study, dataset) for dataset in _datasets(study)),
        _words(study),
        _published(study) if "published" in study.tables else None,
    ]
    return Page(
        title="Cloze probes",
        subject=", ".join(_datasets(study)),
        question="Does what a small probe says about models hold on its extension?"
        if compared
        else "How often is the target among a model's likeliest words?",
        answer=_answer_sizes(study) if compared else _answer_rates(study),
        hero=_hero(study),
        sure=(
            "95% intervals are exact, and take frames for independent; frames that share a target are not, "
            "so the intervals of the large sets are too narrow.",
            *(f"Guessing: {_guess(study, dataset)}" for dataset in _datasets(study)),
        ),
        findings=tuple(_findings(study)),
        sections=tuple(part for part in parts if part is not None),
        legend=_say_targets(study),
        summary="accuracy",
    )


def _say_targets(study: Study) -> str:
    """Which words count as found, set by set."""
    said = [
        f"in {name} the {facts['looked_for']}"
        for name, facts in study.facts["sets"].items()
        if facts["looked_for"]
    ]
    return f"Words that count as found: {'; '.join(said)}." if said else ""


def _datasets(study: Study) -> list[str]:
    return list(study.facts["sets"])


def _answer_rates(study: Study) -> str:
    best = _best_rate(study)
    shown = share_interval(best["share"], best["low"], best["high"])
    most = "" if study["accuracy"].filter(figure=MAIN).height == 1 else "at most "
    held = _held(study, best["dataset"])
    way = "more than" if best["low"] > held else "less than"
    if best["low"] <= held <= best["high"]:
        way = f"{NO_DIFFERENCE} from"
    return (
        f"The target is among the five likeliest words of {best['model']} in {most}{shown} of the "
        f"{count(best['n'])} frames of {best['dataset']}: {way} the {percent(held)}% of guessing its most "
        "frequent targets."
    )


def _best_rate(study: Study) -> dict[str, Any]:
    rates = study["accuracy"].filter(figure=MAIN)
    return rates.sort("share", descending=True, maintain_order=True).row(0, named=True)


def _answer_sizes(study: Study) -> str:
    """How many comparisons of two models come out alike at both sizes."""
    rows = study["sizes"].to_dicts()
    alike = [
        row for row in rows if row["conclusion"].startswith(("detected at both sizes, in the same", "no det"))
    ]
    return (
        f"{len(alike)} of {len(rows)} comparisons of two models come out alike on the small set and on its "
        f"extension; {len(rows) - len(alike)} do not."
    )


def _findings(study: Study) -> list[str]:
    if "sizes" in study.tables:
        return [
            f"{row['first']} against {row['second']}, {NAMES[row['figure']].lower()}, {row['small']} to "
            f"{row['large']}: {row['conclusion']} ({format_p(row['p_small'])} and "
            f"{format_p(row['p_large'])}, not adjusted)."
            for row in study["sizes"]
            .sort(pl.col("figure") != MAIN, maintain_order=True)
            .iter_rows(named=True)
        ]
    return [
        f"{row['model']} on {row['dataset']}: {NAMES[row['figure']].lower()} "
        f"{share_interval(row['share'], row['low'], row['high'])}."
        for row in study["accuracy"]
        .filter(pl.col("figure").is_in([MAIN, "sensitivity"]))
        .iter_rows(named=True)
        # The first of them is the answer.
        if row != _best_rate(study)
    ]


def _guess(study: Study, dataset: str) -> str:
    """What answering the five most frequent targets to every frame would score, in words."""
    return (
        f"the five most frequent targets of {dataset}, given to every frame, would be right in "
        f"{percent(_held(study, dataset))}% of its frames."
    )


def _held(study: Study, dataset: str) -> float:
    """The share of frames whose target is among the five most frequent ones."""
    words = study["target_words"].filter(dataset=dataset)
    return float(words["share"][min(5, len(words)) - 1])


def _hero(study: Study) -> Figure:
    """Top-5 hit rates, beside what the most frequent targets alone would score."""
    main = study["accuracy"].filter(figure=MAIN)
    bars = []
    for dataset in _datasets(study):
        held = _held(study, dataset)
        rows = main.filter(dataset=dataset).to_dicts()
        bars += [
            Row(
                f"{dataset} · {row['model']}",
                row["share"],
                row["low"],
                row["high"],
                row["n"],
                link=_link(study, row),
            )
            for row in rows
        ]
        bars.append(Row(f"{dataset} · most frequent targets", held, held, held, rows[0]["n"]))
    return Figure(
        name="top5",
        title="Top-5 hit rate",
        subtitle="with 95% intervals; beside the models, the five most frequent targets given to every frame",
        label=f"Top-5 hit rate of {len(study.models)} models on {len(_datasets(study))} datasets; the table "
        "has the numbers.",
        chart=partial(chart_accuracy, bars, chance=None, noun="frames"),
    )


def _link(study: Study, cell: dict[str, Any]) -> str:
    """Where the frames that a rate counts as hits are; all frames if there is none.

    A run judges the five likeliest words, the likeliest of which has the largest margin; it has no verdict by
    more words, or by a change of the likeliest one.
    """
    hits = {"top1": {"verdict": "right", "low": "4"}, MAIN: {"verdict": "right"}}
    chosen = hits.get(cell["figure"], {}) if cell["share"] else {}
    return study.link(cell["model"], cell["dataset"], **chosen)


def _accuracy(study: Study) -> Section:
    cells = {
        (row["dataset"], row["model"], row["figure"]): row for row in study["accuracy"].iter_rows(named=True)
    }
    rows = []
    for dataset in _datasets(study):
        for model in study.models:
            known = [cells.get((dataset, model, figure)) for figure in FIGURES]
            first = next((cell for cell in known if cell), None)
            if first:
                shown = [Linked(_interval(cell), _link(study, cell) if cell else "") for cell in known]
                total = Linked(count(first["n"]), study.link(model, dataset))
                rows.append((dataset, model, *shown, total))
    return Section(
        name="accuracy",
        title="Hit rate and sensitivity",
        lede="The share of frames, in percent, whose target is among a model's k likeliest words, with exact "
        "95% intervals. Sensitivity is the share of pairs whose likeliest word changes, right or wrong.",
        columns=("Dataset", "Model", *NAMES.values(), "n"),
        rows=tuple(rows),
        names=2,
    )


def _interval(cell: dict[str, Any] | None) -> str:
    return MISSING if cell is None else percent_interval(cell["share"], cell["low"], cell["high"])


def _sizes(study: Study) -> Section:
    rows = []
    for row in study["sizes"].iter_rows(named=True):
        for size in ("small", "large"):
            rows.append(
                (
                    row[size],
                    NAMES[row["figure"]],
                    f"{row['first']} against {row['second']}",
                    count(row[f"n_{size}"]),
                    Linked(
                        signed(100 * row[f"difference_{size}"], 1),
                        study.link_pair(row["first"], row["second"], row[size], pick="disagree"),
                    ),
                    p_cell(row[f"p_{size}"]),
                    p_cell(row[f"p_permutation_{size}"]),
                    decimal(row[f"power_{size}"], 2),
                    MISSING if row[f"smallest_{size}"] is None else decimal(100 * row[f"smallest_{size}"], 1),
                    row["conclusion"] if size == "large" else "",
                )
            )
    return Section(
        name="sizes",
        title="Small sets and their extensions",
        lede="Two models compared on a small set and on its extension, item by item. Power is the chance "
        "that "
        "McNemar's exact test finds the difference if the truth is as observed; the smallest difference "
        "is what "
        "as many items show with 80% power. The last column says at which size a difference is detected: "
        "where McNemar's p is at most .05.",
        columns=(
            "Dataset",
            "Figure",
            "Models",
            "n",
            "Difference",
            "p",
            "p, permutation",
            "Power",
            "Smallest",
            "Conclusion",
        ),
        rows=tuple(rows),
        names=3,
        notes=(
            "Differences are percentage points. The permutation test swaps the frames of a pair together. "
            f"p-values are not adjusted for the {count(2 * study['sizes'].height)} comparisons here.",
        ),
    )


def _changes(study: Study) -> Section:
    return Section(
        name="changes",
        title="From small to large",
        lede="How each model's figures move from a small set to its extension, in percentage points, with "
        "Newcombe's 95% interval; the items differ.",
        columns=("Sets", "Model", "Figure", "Small", "Large", "Change", "95% interval"),
        rows=tuple(
            (
                f"{row['small']} to {row['large']}",
                row["model"],
                NAMES[row["figure"]],
                *(
                    Linked(percent(row[f"share_{size}"]), study.link(row["model"], row[size]))
                    for size in ("small", "large")
                ),
                signed(100 * row["change"], 1),
                format_interval(row["low"], row["high"], points),
            )
            for row in study["changes"].iter_rows(named=True)
        ),
        names=3,
    )


def _targets(study: Study) -> Section:
    return Section(
        name="targets",
        title="How likely the targets are",
        lede="More than top-k shows: the mean probability of the target, how often it is among the 20 "
        "likeliest words, its median rank over all frames, and the log-odds, in nats, of the target against "
        "the word its partner ends in, with the share of frames in which the target is the likelier.",
        columns=("Dataset", "Model", "p(target)", "Ranked", "Median rank", "Log-odds", "Preferred, %", "n"),
        rows=tuple(
            (
                row["dataset"],
                row["model"],
                decimal(row["probability"], 4),
                Linked(
                    f"{count(row['ranked'])} of {count(row['n'])}", study.link(row["model"], row["dataset"])
                ),
                ">20" if row["median_rank"] is None else decimal(row["median_rank"], 1),
                signed(row["log_odds"], 2),
                percent(row["preferred"]),
                count(row["contrasts"]),
            )
            for row in study["targets"].iter_rows(named=True)
        ),
        names=2,
    )


def _regressions(study: Study) -> Section:
    rows = []
    for row in study["regressions"].iter_rows(named=True):
        ends = format_interval(row["low"], row["high"], signed)
        p = p_cell(row["p"])
        rows.append((row["small"], row["term"], signed(row["estimate"]), ends, p))
    formulas = study["regressions"]["formula"].unique(maintain_order=True)
    return Section(
        name="regressions",
        title="Mixed logistic regressions",
        lede="Whether a target is among the five likeliest words, by model and set, with items and frames as "
        "random effects (Laplace approximation, Wald tests); estimates are log-odds.",
        columns=("Set", "Term", "Estimate", "95% interval", "p"),
        rows=tuple(rows),
        names=2,
        notes=tuple(f"Formula: {formula}" for formula in formulas),
    )


def _humans(study: Study) -> Section | None:
    rows = []
    if "humans" in study.tables:
        rows += [
            (
                row["dataset"],
                "this study",
                percent(row["accuracy"]),
                decimal(row["kappa"], 2),
                count(row["n"]),
            )
            for row in study["humans"].iter_rows(named=True)
        ]
    rows += [
        (name, "published", decimal(share, 1), decimal(kappa, 2), "100")
        for name, (share, kappa) in PUBLISHED_HUMANS.items()
        if name in _datasets(study)
    ]
    if not rows:
        return None
    return Section(
        name="humans",
        title="What people say",
        lede="The share of people's words, in percent, that are the target, over two annotators, and their "
        "agreement. A low ceiling says that a set has no one right word.",
        columns=("Dataset", "Source", "Accuracy, %", "Cohen's kappa", "n"),
        rows=tuple(rows),
        names=2,
    )


def _items(study: Study, dataset: str) -> Section:
    rows = []
    chosen = study["examples"].filter(dataset=dataset)
    for (_, frame, target), part in chosen.group_by("place", "frame", "target", maintain_order=True):
        likeliest = {
            row["model"]: f"{row['likeliest']} ({row['rank'] or '>20'})" for row in part.iter_rows(named=True)
        }
        rows.append((str(frame)[-LONGEST_FRAME:], str(target), *(likeliest[model] for model in study.models)))
    return Section(
        name=f"items-{dataset}",
        title=f"Items to look at: {dataset}",
        lede="Frames on which the models disagree, then frames that all of them miss: each model's likeliest "
        "word and, in brackets, the rank of the target.",
        columns=("Frame", "Target", *study.models),
        rows=tuple(rows),
        names=2 + len(study.models),
    )


def _words(study: Study) -> Section:
    rows = []
    for (dataset,), part in study["target_words"].group_by("dataset", maintain_order=True):
        said = ", ".join(f"{row['target']} {row['n']}" for row in part.iter_rows(named=True))
        held = [percent(part["share"][min(k, len(part)) - 1]) for k in TOP]
        rows.append((str(dataset), said, count(part["different"][0]), *held))
    return Section(
        name="words",
        title="Most frequent targets",
        lede="The 20 most frequent targets of each set, as figures 2 to 6 of the paper show them, and the "
        "share of frames, in percent, that the 1, 5, 10 and 20 most frequent hold. That share is the "
        "accuracy of answering these words to every frame: few targets, often repeated, make a set easier "
        "than its size says.",
        columns=("Dataset", "Targets", "Different", *(NAMES[f"top{k}"] for k in TOP)),
        rows=tuple(rows),
        names=2,
    )


def _published(study: Study) -> Section:
    wide = study["published"].filter(pl.col("figure").is_in(["top5", "sensitivity"]))
    datasets = [name for name in _datasets(study) if name in wide["dataset"].unique()]
    cells = {
        (row["model"], row["dataset"], row["figure"]): row["published"] for row in wide.iter_rows(named=True)
    }
    models = list(dict.fromkeys(wide["model"]))
    columns = [(dataset, figure) for dataset in datasets for figure in ("top5", "sensitivity")]
    columns = [key for key in columns if any((model, *key) in cells for model in models)]
    rows = tuple(
        (
            model,
            *(
                MISSING if (value := cells.get((model, *key))) is None else decimal(value, 1)
                for key in columns
            ),
        )
        for model in models
    )
    return Section(
        name="published",
        title="Published figures",
        lede="What the paper printed for 22 models, in percent, as a backdrop. Some cells do not follow "
        "from its own "
        "predictions: `felicity replay` gives both readings.",
        columns=("Model", *(f"{dataset}, {NAMES[figure].lower()}" for dataset, figure in columns)),
        rows=rows,
    )
