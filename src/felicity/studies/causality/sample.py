"""Continuations for people to rate: a stratified sample in lists, and the study folder around it.

Of each bin of bias the most frequent verbs, of each verb some noun pairs in both orders. A continuation
that is flagged is not shown: the noun pair is exchanged for another one of the verb, as in the paper, and
what cannot be exchanged is left out; all of them wait in the review queue until a person has decided.
"""

import random
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.core.files import disk_errors, replacing
from felicity.humans import STUDY_FILE, RatingStudy, read_rating_study
from felicity.stimuli.extension import FORMS, Extension, ExtensionTask
from felicity.studies.study import read_study

REVIEW_FOLDER = "review"
FACTORS = ("verb", "noun_pair", "bias", "log_frequency", "bias_bin")


@dataclass(frozen=True)
class Sample:
    """The sampled continuations with their lists; review: what a person must decide; notes on the balance."""

    rows: pl.DataFrame
    review: pl.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SampleSize:
    """How many verbs of each bin, noun pairs of each verb, and lists."""

    verbs: int = 10
    bins: int = 10
    pairs: int = 5
    lists: int = 25

    def __post_init__(self) -> None:
        for name in ("verbs", "bins", "pairs", "lists"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1.")


def start_rating(
    folder: Path,
    source: Path,
    *,
    size: SampleSize | None = None,
    model: str | None = None,
    review: Path | None = None,
    raters: int = 3,
    seed: int = 0,
) -> tuple[RatingStudy, Sample]:
    """A folder for `felicity rate` with continuations of a causality study, and what was drawn for it.

    source: the folder of the study. model: whose continuations are drawn, if several wrote some. review: a
    folder with people's decisions about flagged continuations.

    Raises BadInput if the study has no continuations of the model.
    """
    study = read_study(source)
    if "continuations" not in study.tables:
        raise BadInput(f"{source} has no continuations to rate; run `felicity causality` with --continue.")
    if model is None and len(study.models) > 1:
        raise BadInput(f"{source} has the models {', '.join(study.models)}; choose one with --model.")
    if model is not None and model not in study.models:
        raise UnknownName("model", model, study.models)
    name = model or study.models[0]
    drawn = draw_sample(
        study["continuations"].filter(lm=name),
        size or SampleSize(),
        seed=seed,
        decisions=read_decisions(review) if review else None,
    )
    return write_study_folder(drawn, folder, model=name, seed=seed, raters=raters), drawn


def draw_sample(
    table: pl.DataFrame, size: SampleSize, *, seed: int = 0, decisions: pl.DataFrame | None = None
) -> Sample:
    """A stratified sample of continuations, divided into lists.

    decisions: from `read_decisions`; what people kept may be shown as they left it. Both orders of a noun
    pair are taken, or neither.

    Raises BadInput if the sizes do not fit, or the continuations are too few.
    """
    pool = _take_decisions(table.filter(sample=0).drop_nulls(("bias", "log_frequency")), decisions)
    rng = random.Random(seed)
    chosen, waiting, notes = [], [], []
    for (lower,), part in sorted(_in_bins(pool, size.bins).group_by("stratum")):
        frequent = (
            part.group_by("verb")
            .agg(pl.col("log_frequency").first())
            .sort("log_frequency", "verb", descending=[True, False])["verb"]
            .to_list()
        )
        if len(frequent) < size.verbs:
            notes.append(
                f"The bin from {lower:g} has {len(frequent)} verbs with a frequency, not {size.verbs}."
            )
        for verb in frequent[: size.verbs]:
            own = part.filter(verb=verb)
            pairs, exchanged, waits = _choose_pairs(own, size.pairs, rng)
            chosen.append(own.filter(pl.col("noun_pair").is_in(pairs), pl.col("shown")))
            waiting.append(waits)
            if exchanged:
                notes.append(f"{verb}: {exchanged} noun pairs exchanged, as a continuation was flagged.")
            if len(pairs) < size.pairs:
                notes.append(
                    f"{verb}: {len(pairs)} noun pairs without a flag, not {size.pairs}; see the review."
                )
    rows = pl.concat(chosen) if chosen else pool.clear()
    if rows.is_empty():
        raise BadInput(
            "No continuation can be shown: all are flagged, or their verbs have no bias; "
            "see flags.csv of the study."
        )
    if rows.height < size.lists:
        raise BadInput(f"There are {rows.height} continuations for {size.lists} lists; take fewer lists.")
    return Sample(_deal(rows, size.lists, rng), pl.concat(waiting) if waiting else pool.clear(), tuple(notes))


def _in_bins(pool: pl.DataFrame, bins: int) -> pl.DataFrame:
    """The lower end of the bin of each verb's bias, all bins equally wide from -100 to 100, left-closed."""
    width = 200.0 / bins
    number = ((pl.col("bias") + 100.0) / width).floor().clip(0, bins - 1)
    return pool.with_columns(stratum=number * width - 100.0)


def _take_decisions(pool: pl.DataFrame, decisions: pl.DataFrame | None) -> pl.DataFrame:
    """What may be shown: what has no flag, and what a person decided to keep, as edited."""
    plain = pool.with_columns(shown=~pl.col("flagged"), text=pl.col("continuation"))
    if decisions is None:
        return plain
    kept = decisions.filter(decision="keep").select("item", edited=pl.col("text"))
    dropped = decisions.filter(decision="drop")["item"].implode()
    joined = plain.join(kept, on="item", how="left", maintain_order="left")
    other = joined.filter(
        pl.col("edited").is_not_null() & ~pl.col("edited").str.starts_with(pl.col("prompt"))
    )
    if other.height:
        raise BadInput(
            f"The sentence decided for '{other['item'][0]}' does not begin with it; edit it again."
        )
    rest = pl.col("edited").str.strip_prefix(pl.col("prompt")).str.strip_chars().str.strip_suffix(".")
    return joined.with_columns(
        shown=(pl.col("shown") | pl.col("edited").is_not_null()) & ~pl.col("item").is_in(dropped),
        text=pl.coalesce(rest, "text"),
    ).drop("edited")


def _choose_pairs(own: pl.DataFrame, wanted: int, rng: random.Random) -> tuple[list[str], int, pl.DataFrame]:
    """Noun pairs of a verb, drawn at random; one with a flagged continuation gives way to the next."""
    pairs = own["noun_pair"].unique(maintain_order=True).to_list()
    rng.shuffle(pairs)
    found: list[str] = []
    passed: list[str] = []
    for pair in pairs:
        if len(found) == wanted:
            break
        both = own.filter(noun_pair=pair)
        (found if both["shown"].all() and both.height > 1 else passed).append(pair)
    return found, len(passed), own.filter(pl.col("noun_pair").is_in(passed), ~pl.col("shown"))


def _deal(rows: pl.DataFrame, lists: int, rng: random.Random) -> pl.DataFrame:
    """Every row with the list it is in: lists of equal size, bins and verbs spread over them.

    Rows are dealt out in the order of bin and verb, so that a list has as many of each bin as any other, and
    never two of one verb before each list has one.
    """
    order = list(range(rows.height))
    rng.shuffle(order)
    shuffled = rows[order].sort("stratum", "verb", maintain_order=True)
    return shuffled.with_columns(list=(pl.int_range(pl.len()) % lists + 1).cast(pl.String))


def check_balance(sample: Sample) -> dict[str, Any]:
    """Smallest and largest number of continuations by list, bin and verb, and of bins within a list."""
    rows = sample.rows
    found: dict[str, Any] = {"n": rows.height}
    for name, column in (
        ("list", "list"),
        ("bin", "stratum"),
        ("verb", "verb"),
        ("gender", "subject_gender"),
    ):
        counts = rows[column].value_counts()["count"]
        found[name] = [int(counts.min()), int(counts.max())]  # type: ignore[arg-type]
    within = rows.group_by("list", "stratum").len()["len"]
    found["bin within list"] = [int(within.min()), int(within.max())]  # type: ignore[arg-type]
    return found


def write_study_folder(
    sample: Sample, folder: Path, *, model: str = "", seed: int = 0, raters: int = 3
) -> RatingStudy:
    """A folder for `felicity rate`: study.toml with all pages, stimuli.csv, and a review queue.

    Gives the study, read back and checked. Raises FelicityError if the folder already has a study.
    """
    if (folder / STUDY_FILE).exists():
        raise FelicityError(f"{folder / STUDY_FILE} exists already; choose another folder.")
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    stimuli = sample.rows.select(
        pl.col("item"),
        context=pl.col("prompt"),
        text=pl.concat_str(pl.col("text"), pl.lit(".")),
        list=pl.col("list"),
        **{name: pl.col(name) for name in FACTORS},
    )
    with replacing(folder / "stimuli.csv") as part:
        stimuli.write_csv(part)
    if sample.review.height:
        write_review(sample.review, folder / REVIEW_FOLDER, model=model, seed=seed)
    text = files("felicity.studies.causality").joinpath("rating_study.toml").read_text("utf-8")
    with replacing(folder / STUDY_FILE) as part:
        part.write_text(Template(text).substitute(seed=seed, raters=raters), encoding="utf-8")
    return read_rating_study(folder)


def write_review(rows: pl.DataFrame, folder: Path, *, model: str = "", seed: int = 0) -> None:
    """A queue for `felicity stimuli review`: each flagged sentence as written, and with the proposed trim."""
    extension = Extension(folder)
    extension.begin(
        ExtensionTask(
            dataset="implicit_causality",
            form="continuation",
            instruction=FORMS["continuation"].instruction,
            k=0,
            seed=seed,
            parameters={},
            model={"name": model},
        )
    )
    known = extension.state().proposals
    proposals: list[tuple[str, dict[str, Any]]] = []
    for row in rows.iter_rows(named=True):
        proposed = row["trimmed"] or row["continuation"]
        texts = [f"{row['prompt']} {text}." for text in (row["continuation"], proposed)]
        flags = [reason.split(": ", 1) for reason in row["reasons"].split("; ")]
        if row["item"] not in known:
            content = {"texts": texts, "flags": [[flag[0], flag[-1]] for flag in flags]}
            proposals.append(("propose", {"item": row["item"]} | content))
    if proposals:
        extension.log.append_all(proposals)


def read_decisions(folder: Path) -> pl.DataFrame:
    """What people decided: columns item, decision (keep or drop), text: the sentence as it may be shown.

    Raises BadInput if the folder has no review.
    """
    extension = Extension(folder)
    extension.task()
    state = extension.state()
    rows = []
    for item, proposal in state.proposals.items():
        decision = state.decisions.get((item, 1))
        if decision is not None:
            kept = "drop" if decision.action == "reject" else "keep"
            rows.append((item, kept, (decision.texts or proposal.texts)[1]))
    return pl.DataFrame(
        rows, schema={"item": pl.String, "decision": pl.String, "text": pl.String}, orient="row"
    )
