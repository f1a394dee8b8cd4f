"""Huynh et al.'s ratings entered through the site: the rounds, the raters kept, and the numbers again."""

import csv
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from felicity.api.ratings import choose_raters
from felicity.humans import Population, Stimulus, Visit, build_rating_tables, send_raters
from felicity.stats import fit_lmm, leave_one_out_reliability
from tests.humans.studies import make_study
from tests.web.sites import open_site


class RecordedRaters:
    """The raters of one round: whoever is given a list answers as one of its raters did."""

    def __init__(self, ratings: pl.DataFrame) -> None:
        self.waiting: dict[str, list[dict[str, int]]] = {}
        for (block, _), part in ratings.group_by("block", "participant", maintain_order=True):
            given = dict(part.select(pl.col("idx").cast(pl.String), "rating").iter_rows())
            self.waiting.setdefault(str(block), []).append(given)
        self.taken: dict[int, dict[str, int]] = {}

    def answer(self, visit: Visit, stimulus: Stimulus) -> dict[str, str]:
        if visit.number not in self.taken:
            self.taken[visit.number] = self.waiting[stimulus.list_name].pop()
        return {"answer": str(self.taken[visit.number][stimulus.item]), "script": "1", "rt": "4000"}


@pytest.mark.slow
@pytest.mark.data
def test_huynhs_ratings_come_out_of_the_site_as_they_went_in(published, tmp_path: Path) -> None:
    raw = pl.read_csv(published("huynh2022/ratings_long_anonymous.csv"))
    selection = pl.read_csv(published("huynh2022/experiment2_selection.csv")).select(
        "idx", "verb", "item", "bias"
    )
    frequency = pl.read_csv(published("huynh2022/verb_bias_frequency.csv")).select("verb", "FREQcount")
    with published("huynh2022/scored_items.csv").open(encoding="utf-8") as handle:
        texts = {row["i"]: row["output"] for row in csv.DictReader(handle)}
    stimuli = (
        raw.select("idx", "block")
        .unique()
        .join(selection, on="idx")
        .join(frequency, on="verb", how="left")
        .sort("idx")
    )
    rows = [
        {
            "item": str(row["idx"]),
            "text": texts.get(str(row["idx"]), "text"),
            "list": str(row["block"]),
            "strength": str(abs(row["bias"])),
            # The frequency list lacks one verb; the study's frame has a count of 311 for it.
            "frequency": str(311.0 if row["FREQcount"] is None else row["FREQcount"]),
            "nouns": str(row["item"]),
        }
        for row in stimuli.iter_rows(named=True)
    ]
    study = make_study(
        tmp_path, rows=rows, more='[design]\nlists = "column"\nquota = 3\n[platform]\nname = "prolific"\n'
    )
    with open_site(study) as site:
        first = RecordedRaters(raw.filter(pl.col("round") == 1))
        visits = send_raters(
            site.url, study, Population(raters=75, double_clicks=0.02), answerer=first.answer, patience=300
        )
        assert all(visit.code for visit in visits)
        assert site.store.has_room() == "full"

        def reopen() -> int:
            ratings = build_rating_tables(site.store, unfinished=True)["ratings"]
            chosen = choose_raters(ratings, quota=3, below=0.4)
            site.store.set_aside(dict(chosen.select("rater", "kept").iter_rows()))
            return chosen.filter(~pl.col("kept")).height

        # Five of the first 75 are below .4, in three lists: exactly those that were recruited again.
        assert reopen() == 5
        assert site.store.has_room() is None
        second = RecordedRaters(raw.filter(pl.col("round") == 2))
        wanted = Counter({block: len(own) for block, own in second.waiting.items()})
        visits = send_raters(
            site.url, study, Population(), numbers=range(75, 80), answerer=second.answer, patience=300
        )
        assert all(visit.code for visit in visits)
        assert sum(wanted.values()) == 5
        # Of everybody who did a list, the best three are kept.
        assert reopen() == 5
        ratings = build_rating_tables(site.store)["ratings"]
    assert ratings.height == 3_000
    counts = ratings["rating"].value_counts().sort("rating")["count"].to_list()
    assert counts == [689, 571, 333, 782, 625]
    means = ratings.group_by("item").agg(pl.col("rating").mean())["rating"]
    shares = [round(100 * (means >= bound).mean(), 1) for bound in (2, 3, 4, 5)]  # type: ignore[operator]
    assert shares == [79.0, 54.6, 31.8, 6.9]
    reliability = leave_one_out_reliability(ratings)["reliability"]
    assert reliability.mean() == pytest.approx(0.638, abs=5e-4)
    assert reliability.std(ddof=0) == pytest.approx(0.105, abs=5e-4)
    frame = ratings.with_columns(lg=(pl.col("frequency") + 1.0).log10())
    model = fit_lmm("rating ~ center(strength) * scale(lg) + (1|item) + (1|rater) + (1|nouns)", frame)
    fixed = {row["term"]: row for row in model.fixed.to_dicts()}
    # Protocol 5 of the study.
    expected = {
        "center(strength)": (0.003303, 0.001362),
        "scale(lg)": (-0.12108, 0.03813),
        "center(strength):scale(lg)": (-0.006144, 0.001284),
    }
    for term, (estimate, se) in expected.items():
        assert fixed[term]["estimate"] == pytest.approx(estimate, rel=2e-4)
        assert fixed[term]["se"] == pytest.approx(se, rel=5e-4)
