"""Ratings as the study reads them: settings, cleaning, and sentences on what cannot be used."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.studies.acceptability.ratings import read_ratings, sample_sentences

TEXTS = ["The cats sleep.", "The cats sleeps.", "She saw.", "Her saw.", "It rains."]


def write_means(folder: Path, **changes: list[object]) -> Path:
    """A table of means in the settings none and real, with some columns changed."""
    rows = [
        {"item": f"s{k}", "condition": setting, "text": text, "context": context, "rating": value + 0.25 * k}
        for setting, context, value in (("none", None, 1.5), ("real", "It was late.", 2.0))
        for k, text in enumerate(TEXTS)
    ]
    frame = pl.DataFrame(rows)
    frame = frame.with_columns(pl.Series(name, values, strict=False) for name, values in changes.items())
    path = folder / "means.csv"
    frame.write_csv(path)
    return path


def write_raw(folder: Path, raters: int = 6, **changes: list[object]) -> Path:
    """One row per answer; the last rater rates originals low, so cleaning drops that one."""
    rows = []
    for rater in range(raters):
        for k, text in enumerate(TEXTS):
            good = k % 2 == 0
            rating = (4 if good else 2) - (rater + k) % 2
            if raters > 2 and rater == raters - 1:
                rating = 1 if good else 4
            rows.append(
                {
                    "rater": f"r{rater}",
                    "item": f"s{k}",
                    "condition": "",
                    "role": "target",
                    "text": text,
                    "phenomenon": "original" if good else "translated",
                    "rating": rating,
                }
            )
    rows.append(rows[0] | {"item": "f1", "role": "filler", "text": "A filler."})
    path = folder / "ratings.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.mark.data
def test_the_released_ratings_are_taken_as_they_are(published: Callable[[str], Path]) -> None:
    published("lau2020")
    ratings = read_ratings("lau2020")
    assert ratings.settings == ("none", "real", "random")
    assert ratings.sentences.height == 250
    assert (ratings.sentences["phenomenon"] == "original").sum() == 50
    assert ratings.scale == (1.0, 4.0)
    assert ratings.steps.is_empty()
    assert not ratings.has_raters
    # The released means are those of the released single ratings.
    single = ratings.single("real")
    assert single is not None
    assert ratings.mean("real").tolist() == pytest.approx([sum(own) / len(own) for own in single])


def test_a_table_of_means_needs_no_raters(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_means(tmp_path)))
    assert ratings.settings == ("none", "real")
    assert ratings.mean("real").tolist() == [2.0, 2.25, 2.5, 2.75, 3.0]
    assert ratings.contexts["context_text"].unique().to_list() == ["It was late."]
    assert ratings.answers is None


def test_listed_single_ratings_are_read(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_means(tmp_path, ratings=["1,2,3"] * 10)))
    assert ratings.single("none") == [[1.0, 2.0, 3.0]] * 5


def test_raw_ratings_are_cleaned_on_request_and_counted(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_raw(tmp_path)), clean="lau2020")
    assert ratings.settings == ("none",)
    dropped = dict(ratings.steps.select("step", "raters_dropped").iter_rows())
    assert dropped["raters below 3 on controls"] == 1
    assert ratings.has_raters
    assert ratings.answers is not None
    assert set(ratings.answers["rater"]) == {f"r{k}" for k in range(5)}
    assert "f1" not in ratings.sentences["item"]


def test_raw_ratings_may_be_left_as_they_are(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_raw(tmp_path)))
    assert ratings.answers is not None
    assert ratings.answers["rater"].n_unique() == 6
    assert ratings.steps.is_empty()


def test_an_export_is_a_folder_with_ratings(tmp_path: Path) -> None:
    write_raw(tmp_path)
    assert read_ratings(str(tmp_path)).sentences.height == 5
    with pytest.raises(BadInput, match="felicity rate export"):
        read_ratings(str(tmp_path.parent))


def test_settings_of_the_same_raters_are_cleaned_together(tmp_path: Path) -> None:
    whole = pl.read_csv(write_raw(tmp_path)).filter(pl.col("role") == "target")
    both = pl.concat(
        [
            whole.with_columns(
                pl.lit(None, dtype=pl.String).alias("context"), pl.lit("none").alias("condition")
            ),
            whole.with_columns(pl.lit("It was late.").alias("context"), pl.lit("real").alias("condition")),
        ]
    )
    both.write_csv(tmp_path / "both.csv")
    ratings = read_ratings(str(tmp_path / "both.csv"), clean="lau2020")
    assert ratings.steps["setting"].unique().to_list() == ["all"]
    assert any("several settings" in note for note in ratings.notes)


REFUSALS = [
    ({"rating": [1.0, 2.0, 3.0, None, 2.5, 1.0, 2.0, 3.0, 4.0, 2.5]}, "line 5: 'rating' is empty"),
    ({"rating": ["1", "2", "3", "good", "2", "1", "2", "3", "4", "2"]}, "line 5: 'rating' is 'good'"),
    ({"text": [*TEXTS[:2], None, *TEXTS[3:], *TEXTS]}, "line 4: 'text' is empty"),
    ({"rating": [2.0] * 5 + [1.0, 2.0, 3.0, 4.0, 2.5]}, "rated 2 in the setting 'none'"),
    (
        {"item": ["s0", "s0", "s2", "s3", "s4"] * 2, "text": [TEXTS[0], *TEXTS[:1], *TEXTS[2:]] * 2},
        "rated twice",
    ),
    ({"item": [f"s{k}" for k in range(9)] + ["s9"], "text": TEXTS * 2}, "has no rating in the setting"),
    ({"text": [*TEXTS, "Other.", *TEXTS[1:]]}, "2 different texts"),
    ({"context": [None] * 10}, "no context"),
    ({"context": ["It was late."] * 10}, "there is a context"),
    ({"ratings": ["1,x"] * 10}, "not a list of numbers"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSALS, ids=[said for _, said in REFUSALS])
def test_what_cannot_be_used_is_said(tmp_path: Path, changes: dict[str, list[object]], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_ratings(str(write_means(tmp_path, **changes)))


def test_one_rater_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one rater, with whom nobody can be compared"):
        read_ratings(str(write_raw(tmp_path, raters=1)))


def test_an_answer_given_twice_is_refused(tmp_path: Path) -> None:
    path = write_raw(tmp_path)
    frame = pl.read_csv(path)
    pl.concat([frame, frame.head(1)]).write_csv(path)
    with pytest.raises(BadInput, match="by the rater 'r0', on lines 2 and 33; keep one"):
        read_ratings(str(path))


def test_too_few_sentences_are_refused(tmp_path: Path) -> None:
    path = write_means(tmp_path)
    pl.read_csv(path).filter(pl.col("item").is_in(["s0", "s1", "s2"])).write_csv(path)
    with pytest.raises(BadInput, match="3 sentences; a correlation needs at least 4"):
        read_ratings(str(path))


def test_a_dataset_without_ratings_is_refused() -> None:
    from felicity.core.errors import FelicityError

    with pytest.raises(FelicityError):
        read_ratings("starter")


def test_a_sample_keeps_all_ratings_of_its_sentences(tmp_path: Path) -> None:
    ratings = sample_sentences(read_ratings(str(write_means(tmp_path))), 4)
    assert ratings.sentences.height == 4
    assert ratings.means.height == 8
    with pytest.raises(BadInput, match="leaves 2 sentences"):
        sample_sentences(ratings, 2)


DESIGN = {"good": "The {} sleep.", "bad": "The {} sleeps."}


def write_design(folder: Path, raters: int = 4, *, context: bool = False) -> Path:
    """An export of items in the conditions good and bad, one per rater (a Latin square)."""
    rows = [
        {
            "rater": f"r{rater}",
            "item": f"i{k}",
            "condition": condition,
            "role": "target",
            "context": f"Look at the {noun}." if context else "",
            "text": DESIGN[condition].format(noun),
            "rating": (6 if condition == "good" else 2) + (rater + k) % 2,
        }
        for rater in range(raters)
        for k, noun in enumerate(("cats", "dogs", "birds"))
        for condition in ("good" if (rater + k) % 2 else "bad",)
    ]
    path = folder / "ratings.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.mark.parametrize(("context", "setting"), [(False, "none"), (True, "real")])
def test_items_with_several_sentences_are_read_as_stimuli(
    tmp_path: Path, context: bool, setting: str
) -> None:
    write_design(tmp_path, context=context)
    ratings = read_ratings(str(tmp_path))
    assert ratings.settings == (setting,)
    named = ratings.add_conditions(ratings.means).sort("stimulus")
    assert named.select("stimulus", "item", "condition", "n", "rating").rows() == [
        (f"i{k}/{condition}", f"i{k}", condition, 2, rating)
        for k in range(3)
        for condition, rating in (("bad", 2.0), ("good", 7.0))
    ]
    assert "6 stimuli of 3 items" in ratings.describe_stimuli()[0]


def test_one_sentence_with_and_without_context_is_one_stimulus_in_two_settings(tmp_path: Path) -> None:
    rows = [
        {
            "item": k,
            "condition": f"{kind} {where}",
            "text": f"{kind} {k}.",
            "context": context,
            "rating": n + k,
        }
        for k in range(3)
        for n, kind in enumerate(("good", "bad"))
        for where, context in (("alone", ""), ("after", "It was late."))
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "means.csv")
    ratings = read_ratings(str(tmp_path / "means.csv"))
    assert ratings.settings == ("none", "real")
    assert ratings.sentences["item"].to_list()[:2] == ["0/good alone", "0/bad alone"]
    assert ratings.mean("real").tolist() == ratings.mean("none").tolist() == [0, 1, 1, 2, 2, 3]


def test_a_sample_counts_its_own_stimuli(tmp_path: Path) -> None:
    write_design(tmp_path, context=False)
    whole = read_ratings(str(tmp_path))
    sample = sample_sentences(whole, 5, seed=1)
    assert sample.stimuli is not None
    assert sorted(sample.stimuli["stimulus"]) == sorted(sample.sentences["item"])
    assert "5 stimuli of 3 items" in sample.describe_stimuli()[0]


def test_an_empty_context_in_a_table_of_settings_is_named_by_its_line(tmp_path: Path) -> None:
    rows = [
        {"item": k, "condition": name, "text": f"{k}.", "context": f"{name} {k}", "rating": k}
        for k in range(4)
        for name in ("early", "late")
    ]
    rows[3]["context"] = ""
    pl.DataFrame(rows).write_csv(tmp_path / "means.csv")
    with pytest.raises(BadInput, match="line 5.*no context"):
        read_ratings(str(tmp_path / "means.csv"))


def test_conditions_between_items_are_no_settings(tmp_path: Path) -> None:
    rows = [{"item": k, "condition": "ab"[k % 2], "text": f"{k}.", "rating": k} for k in range(4)]
    pl.DataFrame(rows).write_csv(tmp_path / "means.csv")
    ratings = read_ratings(str(tmp_path / "means.csv"))
    assert ratings.settings == ("none",)
    assert ratings.stimuli is not None
    assert ratings.stimuli["condition"].to_list() == ["a", "b", "a", "b"]
    assert ratings.stimuli["stimulus"].to_list() == ["0", "1", "2", "3"]
    assert not ratings.describe_stimuli()


@pytest.mark.parametrize(
    ("condition", "text", "told"),
    [
        ("odd", "The cats sleep.", "the same sentence in the conditions 'good' and 'odd'"),
        ("good", "The cats slept.", "has 2 different texts in the condition 'good'"),
        ("none", "The cats slept.", "has 3 different texts"),
    ],
)
def test_a_sentence_that_is_not_told_apart_is_refused(
    tmp_path: Path, condition: str, text: str, told: str
) -> None:
    path = write_design(tmp_path)
    with path.open("a", encoding="utf-8") as table:
        table.write(f"r9,i0,{condition},target,,{text},5\n")
    with pytest.raises(BadInput, match=told):
        read_ratings(str(path))
