"""Stored outputs of agreement, Zorro and BabyLM evaluations; ties as their programs count them, and half.

Gulordava et al. (2018): one row per form of a word, with the log-probability of every model. Zorro (Huebner
et al. 2021): one file per paradigm, two lines per pair, the bad sentence first, each with a score of which
the lower is better. BabyLM (2025): the sentence that was chosen for every item, or a report with accuracies.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import load_json
from felicity.core.errors import BadInput
from felicity.core.schemas import JUDGEMENTS
from felicity.data import read_dataset, read_plain
from felicity.papers.replay.replayed import Replayed
from felicity.papers.replay.summaries import SHARES, replay_shares
from felicity.run import Verdicts

HALF = "ties half"
PROBING = re.compile(r"probing_(.+)_results_\d+\.txt(?:\.gz)?")
SCORED = re.compile(r"(.+) (-?\d+(?:\.\d+)?)$")
# Columns of Gulordava's tables that are not models.
DESCRIBED = (
    *(
        "pattern",
        "constr_id",
        "sent_id",
        "correct_number",
        "form",
        "class",
        "type",
        "prefix",
        "n_attr",
        "punct",
    ),
    *("freq", "len_context", "len_prefix", "sent", "full_id", "mturk_count"),
)
AGREEMENT_KEYS = ["pattern", "constr_id", "sent_id", "type"]
# The tasks whose chosen sentences BabyLM's programs store, by the datasets that have their items.
BABYLM_SETS = ("blimp_supplement", "entity_tracking", "wug_adj_nominalization", "blimp_filtered")
BETTER = ["good", "option_0"]
REPORT_HEAD = "### UID ACCURACY"


def is_agreement(path: Path) -> bool:
    """Whether a file is a table of Gulordava et al."""
    return path.name.removesuffix(".gz").endswith(".tab")


def replay_agreement(path: Path) -> Replayed:
    """Agreement by the log-probabilities of two forms; a tie is wrong to the authors, and half a success.

    Raises BadInput if the file lacks a column, or an item does not have both forms.
    """
    table = pl.read_csv(read_plain(path).encode(), separator="\t", infer_schema_length=None)
    missing = [name for name in (*AGREEMENT_KEYS, "class", "form", "prefix") if name not in table.columns]
    if missing:
        raise BadInput(f"{path} has no column '{missing[0]}'; it is not a table of Gulordava et al.")
    models = [name for name in table.columns if name not in DESCRIBED]
    kind = pl.when(pl.col("type") == "original").then(pl.lit("original")).otherwise(pl.lit("nonce"))
    suite = pl.concat_str(kind, "pattern", separator="/")
    named = table.with_columns(
        suite=suite,
        phenomenon=kind,
        item=pl.concat_str(suite, "constr_id", "sent_id", separator="/"),
        condition=pl.when(pl.col("class") == "correct").then(pl.lit("good")).otherwise(pl.lit("bad")),
        text=pl.concat_str("prefix", "form", separator=" "),
    )
    margins = {}
    for model in models:
        sides = named.pivot("condition", index=["item", "suite", "phenomenon"], values=model)
        if sides.select("good", "bad").null_count().sum_horizontal().item():
            raise BadInput(f"{path} has an item without both forms for {model}.")
        margins[model] = sides.select("item", "suite", "phenomenon", margin=pl.col("good") - pl.col("bad"))
    items = named.select("item", "suite", "phenomenon", "condition", "text")
    return _judge(items, margins, dataset="gulordava", tie=0.0, form="agreement")


def is_zorro(path: Path) -> bool:
    """Whether a folder has results of Zorro's program."""
    return path.is_dir() and any(PROBING.fullmatch(file.name) for file in path.rglob("probing_*"))


def replay_zorro(path: Path) -> Replayed:
    """Pairs by stored scores, the lower the better; a tie is wrong to the authors, and half a success.

    Raises BadInput naming a line that is not a sentence with a score.
    """
    rows: list[dict[str, object]] = []
    for file in sorted(path.rglob("probing_*")):
        matched = PROBING.fullmatch(file.name)
        if matched is None:
            continue
        suite = matched[1]
        for place, line in enumerate(read_plain(file).splitlines()):
            scored = SCORED.fullmatch(line.strip())
            if scored is None:
                raise BadInput(f"{file}, line {place + 1}: not a sentence with a score.")
            side = "good" if place % 2 else "bad"
            named = {"item": f"{suite}/{place // 2 + 1}", "suite": suite, "phenomenon": suite.split("-")[0]}
            rows.append(named | {"condition": side, "text": scored[1], "score": float(scored[2])})
    table = pl.DataFrame(rows)
    sides = table.pivot("condition", index=["item", "suite", "phenomenon"], values="score")
    margins = {path.name: sides.select("item", "suite", "phenomenon", margin=pl.col("bad") - pl.col("good"))}
    return _judge(table.drop("score"), margins, dataset="zorro", tie=0.0, form="scores")


def is_chosen(content: object) -> bool:
    """Whether a JSON document has chosen sentences, as BabyLM's programs store them."""
    return isinstance(content, dict) and all(
        isinstance(part, dict) and isinstance(part.get("predictions"), list) for part in content.values()
    )


def replay_chosen(path: Path, content: Any) -> Replayed:
    """Chosen sentences against the dataset whose suites the file names.

    A pair of two equal sentences is a tie, which is right to BabyLM's program and half a success.

    Raises BadInput if no dataset has these suites with so many items.
    """
    data = _find_items(path, content)
    better = data.filter(pl.col("condition").is_in(BETTER))
    equal = data.group_by("item").agg(same=pl.col("text").n_unique() == 1)
    parts = []
    for suite, part in content.items():
        items = better.filter(pl.col("suite") == suite)
        chosen = [str(one["pred"]).strip() for one in part["predictions"]]
        if len(chosen) != len(items):
            raise BadInput(f"{path} has {len(chosen)} answers for '{suite}', which has {len(items)} items.")
        right = items["text"].str.strip_chars() == pl.Series(chosen)
        parts.append(items.select("item", "suite", "phenomenon").with_columns(right=right))
    judged = pl.concat(parts).join(equal, on="item", maintain_order="left")
    margin = pl.when(pl.col("same")).then(0.0).when(pl.col("right")).then(1.0).otherwise(-1.0)
    margins = {path.resolve().parent.parent.name: judged.select("item", "suite", "phenomenon", margin=margin)}
    found = _judge(data, margins, dataset="babylm", tie=1.0, form="chosen sentences")
    # A chosen sentence says which side won, not by how much.
    judgements = found.verdicts.judgements.with_columns(margin=pl.lit(float("nan")))
    return Replayed(**(vars(found) | {"verdicts": Verdicts(judgements=judgements)}))


def _find_items(path: Path, suites: Collection[str]) -> pl.DataFrame:
    """The items of the dataset that has these suites, of these suites only.

    Raises BadInput if there is none.
    """
    for name in BABYLM_SETS:
        items = read_dataset(name).items
        if set(suites) <= set(items["suite"].unique()):
            chosen = items.filter(pl.col("suite").is_in(list(suites)))
            return chosen.select("item", "suite", "phenomenon", "condition", "text")
    raise BadInput(f"{path} has suites such as '{next(iter(suites), '')}', which no task of BabyLM has.")


def is_report(path: Path) -> bool:
    """Whether a file is a report of BabyLM's program."""
    return path.name.endswith(".txt") and path.is_file() and REPORT_HEAD in path.read_text(encoding="utf-8")


def replay_report(path: Path) -> Replayed:
    """The accuracies of a report by UID; its lines by field and by term are other averages and are left out.

    Raises BadInput naming a line that is not a UID with an accuracy.
    """
    lines = read_plain(path).split(REPORT_HEAD)[1].split("###")[0].splitlines()
    shares = []
    for line in filter(str.strip, lines):
        if re.match(r"(regular|ambiref|move_contents): ", line):
            continue  # the means of the lines above it
        name, _, value = line.rpartition(": ")
        try:
            shares.append((name, float(value) / 100))
        except ValueError as error:
            raise BadInput(f"{path}: '{line}' is not a UID with an accuracy.") from error
    items = _find_items(path, dict(shares)).filter(pl.col("condition").is_in(BETTER))
    sizes = {suite: (term, n) for suite, term, n in items.group_by("suite", "phenomenon").len().iter_rows()}
    measure = path.resolve().parent.parent.name
    rows = [(name, sizes[name][0], measure, share, sizes[name][1]) for name, share in shares]
    return replay_shares(pl.DataFrame(rows, schema=SHARES, orient="row"), dataset="babylm")


def _judge(
    items: pl.DataFrame, margins: dict[str, pl.DataFrame], *, dataset: str, tie: float, form: str
) -> Replayed:
    """Judgements of every model, its ties as published and half."""
    published = {0.0: "ties wrong", 1.0: "ties right"}[tie]
    judged, measures = [], []
    for model, table in margins.items():
        for reading, value in ((published, tie), (HALF, 0.5)):
            measure = f"{model}, {reading}"
            measures.append(measure)
            margin = pl.col("margin")
            passed = pl.when(margin > 0).then(1.0).when(margin < 0).then(0.0).otherwise(value)
            judged.append(
                table.with_columns(
                    passed=passed, measure=pl.lit(measure), rule=pl.lit(form), stable=pl.lit(value=True)
                ).select(pl.col(name).cast(dtype) for name, dtype in JUDGEMENTS.items())
            )
    return Replayed(
        form=form,
        dataset=dataset,
        items=items,
        verdicts=Verdicts(judgements=pl.concat(judged)),
        measures=tuple(measures),
    )


def read_content(path: Path) -> object:
    """The content of a JSON file.

    Raises BadInput if it is not JSON.
    """
    try:
        return load_json(read_plain(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON.") from error
