"""Words with reading times: tables of one's own, exports, corpora, what is refused and what is said."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.data import average_trials, read_reading
from felicity.data.reading_words import find_in, read_words, write_sentence

Published = Callable[[str], Path]


@pytest.fixture
def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "sentence": [1, 1, 1, 2, 2],
            "position": [1, 2, 3, 1, 2],
            "word": ["It's", "raining,", "again.", "Cats", "purr."],
            "RT": [300.0, 320.0, 410.0, 280.0, 350.0],
        }
    )


def test_a_table_of_means_becomes_words_sentences_and_measures(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_csv(tmp_path / "times.csv")
    reading = read_reading(tmp_path / "times.csv")
    assert reading.measures == reading.times == ("self_paced",)
    assert reading.sentences["sentence_text"].to_list() == ["It's raining, again.", "Cats purr."]
    assert reading.words.select("start", "end").rows()[:3] == [(0, 4), (5, 13), (14, 20)]
    assert reading.trials is None


def test_readers_are_averaged_and_kept(table: pl.DataFrame) -> None:
    both = pl.concat([table.with_columns(subj=pl.lit(n), RT=pl.col("RT") + 10 * n) for n in (1, 3)])
    reading = read_words(both)
    assert reading.words["self_paced"].to_list() == [320.0, 340.0, 430.0, 300.0, 370.0]
    assert reading.trials is not None
    assert reading.trials["reader"].unique().sort().to_list() == ["1", "3"]
    trimmed = average_trials(reading, shortest=300, longest=420)
    assert trimmed.words["self_paced"].to_list() == [320.0, 340.0, 420.0, 310.0, 370.0]
    assert "2 of 10 single times of self_paced outside 300 to 420 ms are left out." in trimmed.notes


def test_skipped_words_count_as_zero_or_not_at_all() -> None:
    rows = {"sentence": [1, 1, 1, 1], "position": [1, 2, 1, 2], "word": ["a", "b", "a", "b"]}
    reading = read_words(pl.DataFrame(rows | {"reader": [1, 1, 2, 2], "gaze": [0, 200, 100, 240]}))
    assert reading.words["first_pass"].to_list() == [50.0, 220.0]
    assert average_trials(reading, skipped=False).words["first_pass"].to_list() == [100.0, 220.0]
    assert any("1 of 4 rows (25.0%): skipped words" in note for note in reading.notes)


def test_an_export_of_felicity_rate_is_read_as_it_is() -> None:
    rows = [
        {"rater": f"r{r}", "list": "A", "trial": 1, "item": "7", "condition": "amb", "role": "target"}
        | {"position": p + 1, "word": word, "foil": foil, "left": True, "correct": right, "rt_ms": 500.0 + p}
        for r in (1, 2)
        for p, (word, foil, right) in enumerate([("The", "x-x", True), ("horse", "blue", r == 1)])
    ]
    reading = read_words(pl.DataFrame(rows))
    assert reading.measures == ("maze",)
    assert reading.words["sentence"].unique().to_list() == ["7/amb"]
    assert reading.words["condition"].unique().to_list() == ["amb"]
    # The second reader chose the foil of 'horse': no reading time.
    assert reading.trials is not None
    assert reading.trials["maze"].to_list() == [500.0, 501.0, 500.0, None]


def test_words_are_joined_by_character_and_the_rest_is_listed(table: pl.DataFrame) -> None:
    given = table.with_columns(
        sentence_text=pl.when(pl.col("sentence") == 1)
        .then(pl.lit("It's raining, again."))
        .otherwise(pl.lit("Dogs purr."))
    )
    reading = read_words(given)
    assert reading.words["start"].to_list() == [0, 5, 14, None, 5]
    assert any("1 words are not in their sentence" in note and "'Cats'" in note for note in reading.notes)


def test_scripts_without_spaces_are_joined_without() -> None:
    assert write_sentence(["猫", "が", "鳴く", "。"]) == "猫が鳴く。"
    assert find_in(["猫", "が", "猫"], "猫が猫") == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pl.col("RT") / 1000, "like seconds"),
        (pl.col("RT") - 290, "below 0 ms in 1 rows"),
        (pl.lit(float("inf")).alias("RT"), "infinite"),
        (pl.lit(None, dtype=pl.Float64).alias("RT"), "empty in every row"),
        (pl.col("RT").cast(pl.String) + " ms", "no column that is known as a measure"),
        (pl.lit(1).alias("position"), "occurs twice"),
        (pl.Series("position", [1, 3, 2, 1, 2]), "comes after a later word"),
        (pl.Series("position", [1, None, 3, 1, 2]), "'position' is missing in 1 rows"),
        (pl.Series("word", ["It's", None, "again.", "Cats", "purr."]), "'word' is missing in 1 rows"),
        (pl.Series("sentence_text", ["Other text"] * 5), "5 of 5 words are not found in their sentences"),
        (pl.Series("reader", ["a", "a", "a", "a", "b"]), "reader b has only one row"),
    ],
)
def test_what_is_no_reading_time_is_refused(table: pl.DataFrame, change: pl.Expr, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_words(table.with_columns(change))


def test_readers_of_different_words_are_refused(table: pl.DataFrame) -> None:
    other = table.with_columns(pl.Series("word", ["It's", "snowing,", "again.", "Cats", "purr."]))
    both = pl.concat([table.with_columns(reader=pl.lit("a")), other.with_columns(reader=pl.lit("b"))])
    with pytest.raises(BadInput, match="word 2 of sentence 1 in text 1 is not the same word"):
        read_words(both)


def test_unknown_names_are_refused(table: pl.DataFrame) -> None:
    with pytest.raises(UnknownName, match="measure 'gaz'"):
        read_words(table, measures=["gaz"])
    with pytest.raises(UnknownName, match="column 'word'"):
        read_words(table.rename({"word": "w"}))
    with pytest.raises(UnknownName, match="corpus 'natural_storys'.*natural_stories"):
        read_reading("natural_storys")


def test_a_corpus_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="lacks natural_stories/all_stories.tok.gz.*--from"):
        read_reading("natural_stories", folder=tmp_path)


def test_the_corpora_have_their_published_sizes(published: Published) -> None:
    # SOURCES.md and PROTOCOLS.md, section 6.
    published("SOURCES.md")
    stories = read_reading("natural_stories")
    assert (stories.words.height, stories.words["text"].n_unique()) == (10_256, 10)
    # Every time is one word later than listed, so that the first word of each story has none.
    assert stories.words["self_paced"].null_count() == 10
    ucl = read_reading("ucl")
    assert (ucl.words.height, ucl.sentences.height) == (4_957, 361)
    assert ucl.trials is not None
    assert ucl.trials["self_paced"].count() == 353_584
    assert ucl.trials["first_pass"].count() == 81_109
    # 1,720 of de Varda's 1,726 words are in the corpus, whose sentences have other numbers.
    assert ucl.words["n400"].count() == 1_720
    provo = read_reading("provo")
    assert (provo.words.height, provo.words["text"].n_unique(), provo.words["cloze"].count()) == (
        2681,
        54,
        2601,
    )
    sap = read_reading("sap")
    assert sap.words.filter(pl.col("effect") == "GPE_MVRR")["item"].n_unique() == 24
    assert read_reading("meco", language="fi").measures == ("first_fixation", "first_pass", "total")


def test_means_of_ucl_are_those_of_de_varda(published: Published) -> None:
    table = pl.read_csv(published("devarda2023") / "all_measures.csv.gz", infer_schema_length=None)
    words = read_reading("ucl").words.drop_nulls("n400")
    mine = words.sort("n400")["first_pass"].to_numpy()
    theirs = (
        table.filter(pl.col("N400").is_in(words["n400"].implode())).sort("N400")["RTfirstpass"].to_numpy()
    )
    assert mine == pytest.approx(theirs)
