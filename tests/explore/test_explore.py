"""What the explorer reads out of run folders: equal to the folders' own tables."""

import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from felicity.api.ratings import start_study
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.data import read_dataset
from felicity.explore import (
    Collection,
    average_regions,
    compare_margins,
    comparison,
    contents,
    find_neighbours,
    gather_everything,
    list_alternatives,
    list_stimuli,
    live,
    open_collections,
    parse_selection,
    read_contexts,
    read_item,
    read_page,
    read_ratings,
    score_texts,
    tabulate_pairs,
    tabulate_selection,
    tabulate_suites,
)
from felicity.explore.selection import PICKS, take
from felicity.papers.replay import replay_file, write_replay
from felicity.run import evaluate, open_model, read_run
from felicity.stats import compare_all
from felicity.studies import study_function
from tests.explore.runs import ODD, make_runs

TOTAL = 38


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_runs(tmp_path_factory.mktemp("explored"))


@pytest.fixture
def both(runs: tuple[Path, Path]) -> Iterator[Collection]:
    with open_collections(runs) as (collection,):
        yield collection


def test_every_judgement_is_a_row_with_the_verdicts_of_both_models(
    both: Collection, runs: tuple[Path, Path]
) -> None:
    assert both.models == ["tiny", "words"]
    assert both.measures == ("lp", "mean_lp")
    page = read_page(both, parse_selection(both, {}), size=100)
    assert (page.total, page.all) == (TOTAL, TOTAL)
    for place, run in enumerate(runs):
        judged = read_run(run)["judgements"].filter(pl.col("measure") == "lp")
        assert [row["margin"][place] for row in page.rows] == judged["margin"].to_list()
        assert [row["passed"][place] for row in page.rows] == judged["passed"].to_list()


def test_token_differences_are_those_of_each_tokenizer(both: Collection, runs: tuple[Path, Path]) -> None:
    rows = {row["item"]: row for row in read_page(both, parse_selection(both, {}), size=100).rows}
    for place, run in enumerate(runs):
        tokens = dict(read_run(run)["tokens"].select("request", pl.col("tokens").list.len()).iter_rows())
        for item, row in rows.items():
            assert row["difference"][place] == tokens[f"{item}/good"] - tokens[f"{item}/bad"]


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_a_shown_item_equal_its_scores(both: Collection, runs: tuple[Path, Path], seed: int) -> None:
    keys = take(both, parse_selection(both, {})).select("key").collect()["key"].to_list()
    item = read_item(both, "lp", random.Random(seed).choice(keys))
    for place, run in enumerate(runs):
        scores = read_run(run)["scores"].filter(pl.col("measure") == "lp")
        values = dict(scores.select("request", "value").iter_rows())
        for sentence in item["sentences"]:
            assert sentence["lp"][place] == pytest.approx(values[sentence["request"]], abs=1e-9)
            assert sentence["scores"][place]["lp"] == values[sentence["request"]]
        (running,) = [own for own in item["running"] if own["model"] == place]
        assert running["margins"][-1] == pytest.approx(item["margin"][place], abs=1e-9)


def test_a_facet_counts_what_choosing_its_value_would_show(both: Collection) -> None:
    given = {"phenomenon": ["agreement"], "q": ["the"]}
    page = read_page(both, parse_selection(both, given))
    assert page.total == 24
    for name, values in page.facets.items():
        for value, count in values:
            found = read_page(both, parse_selection(both, given | {name: [value]}))
            assert found.total == count, (name, value)


def test_facets_ranges_search_and_picks_narrow_the_selection(both: Collection) -> None:
    frame = both.scan().filter(pl.col("measure") == "lp").collect()
    found = read_page(both, parse_selection(both, {"low": ["0"], "verdict": ["right"]}))
    assert found.total == int(((frame["margin_0"] >= 0) & (frame["passed_0"] == 1)).sum())
    assert read_page(both, parse_selection(both, {"q": ["<SCRIPT>"]})).total == 1
    assert read_page(both, parse_selection(both, {"q": ["old baker"]})).total == 1
    # A phrase between quotation marks is searched as it stands.
    assert read_page(both, parse_selection(both, {"q": ["here the"]})).total > 20
    assert read_page(both, parse_selection(both, {"q": ['"the baker old" sat']})).total == 1
    assert read_page(both, parse_selection(both, {"q": ['"here the"']})).total == 0
    right = [frame[f"passed_{place}"] == 1 for place in (0, 1)]
    sizes = {pick: read_page(both, parse_selection(both, {"pick": [pick]})).total for pick in PICKS}
    assert sizes["disagree"] == sizes["only_a"] + sizes["only_b"] == int((right[0] != right[1]).sum())
    assert sizes["both_right"] + sizes["both_wrong"] + sizes["disagree"] == TOTAL
    assert sizes["unequal"] == int(((frame["difference_0"] != 0) | (frame["difference_1"] != 0)).sum())


def test_pages_follow_one_another_in_the_order_asked_for(both: Collection) -> None:
    chosen = parse_selection(both, {"sort": ["margin"], "desc": ["1"]})
    pages = [read_page(both, chosen, offset=offset, size=15).rows for offset in (0, 15, 30)]
    margins = [row["margin"][0] for page in pages for row in page]
    assert len(margins) == TOTAL
    assert margins == sorted(margins, reverse=True)


def test_neighbours_are_those_of_the_selection(both: Collection) -> None:
    chosen = parse_selection(both, {"suite": ["order"], "sort": ["closeness"]})
    keys = take(both, chosen).select("key").collect()["key"].to_list()
    around = find_neighbours(both, chosen, keys[3])
    assert around == {"place": 4, "of": 8, "before": keys[2], "after": keys[4]}
    assert find_neighbours(both, chosen, "scripts/1")["place"] is None


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"measure": ["slorr"]}, UnknownName),
        ({"a": ["nobody"]}, UnknownName),
        ({"pick": ["best"]}, UnknownName),
        ({"sort": ["beauty"]}, UnknownName),
        ({"low": ["much"]}, BadInput),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(
    both: Collection, given: dict[str, list[str]], error: type
) -> None:
    with pytest.raises(error):
        parse_selection(both, given)


def test_an_item_that_does_not_exist_is_named(both: Collection) -> None:
    with pytest.raises(UnknownName, match="nothing/1"):
        read_item(both, "lp", "nothing/1")


def test_a_scatter_has_every_point_and_counts_squares_if_there_are_many(
    both: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = parse_selection(both, {})
    assert len(compare_margins(both, chosen)["points"]) == TOTAL
    monkeypatch.setattr(comparison, "MOST_POINTS", 10)
    many = compare_margins(both, chosen)
    assert sum(cell[2] for cell in many["cells"]) == TOTAL


def test_suites_have_the_accuracies_and_tests_of_the_statistics(
    both: Collection, runs: tuple[Path, Path]
) -> None:
    table = tabulate_suites(both, "lp", 0, 1)
    frames = {path.name: read_run(path)["judgements"].filter(pl.col("measure") == "lp") for path in runs}
    for row in table["rows"]:
        parts = {name: frame.filter(pl.col("suite") == row["suite"]) for name, frame in frames.items()}
        assert row["accuracy"] == [part["passed"].mean() for part in parts.values()]
        (expected,) = compare_all(parts).to_dicts()
        assert row["test"]["p"] == pytest.approx(expected["p"])
        assert row["test"]["difference"] == pytest.approx(expected["difference"])
        assert row["test"]["p_holm"] >= row["test"]["p"]
    assert table["overall"]["test"]["test"] == "score test over suites"


def test_an_exported_selection_has_verdicts_and_texts(both: Collection) -> None:
    table = tabulate_selection(both, parse_selection(both, {"suite": ["scripts"]}))
    assert table["text_good"].to_list() == [good for suite, good, _ in ODD if suite == "scripts"]
    assert {"verdict tiny", "margin words", "difference tiny", "stable words"} <= set(table.columns)


@pytest.mark.parametrize("task", ["likert", "choice"])
def test_exported_stimuli_make_a_rating_study(both: Collection, tmp_path: Path, task: str) -> None:
    table = list_stimuli(both, parse_selection(both, {"suite": ["order"]}))
    table.write_csv(tmp_path / "stimuli.csv")
    study = start_study(tmp_path / "study", str(tmp_path / "stimuli.csv"), task=task)
    assert len(study.stimuli) == (16 if task == "likert" else 8)
    assert study.stimuli[0].text == "The old cat sat down."


def test_runs_of_other_stimuli_are_collections_of_their_own(runs: tuple[Path, Path], tmp_path: Path) -> None:
    model = open_model(str(runs[0].parent / "tiny"), cache=False)
    evaluate("starter", model, sample=1, out=tmp_path / "starter")
    with open_collections([*runs, tmp_path / "starter"]) as (first, second):
        assert (first.name, second.name) == ("pairs.csv", "starter")
        assert second.models == ["tiny"]
        assert compare_margins(second, parse_selection(second, {}))["counts"]["disagree"] == 0


def test_two_runs_of_one_model_are_told_apart_and_one_named_twice_is_one(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(runs[0], tmp_path / "again")
    with open_collections([runs[0], tmp_path / "again", runs[0] / ".." / runs[0].name]) as (found,):
        assert found.models == [f"tiny ({runs[0]})", f"tiny ({tmp_path / 'again'})"]


def test_a_changed_run_and_a_missing_one_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs[0], copy)
    judged = pl.read_parquet(copy / "judgements.parquet")
    judged.with_columns(passed=pl.lit(1.0)).write_parquet(copy / "judgements.parquet")
    with pytest.raises(BadInput, match="judgements.parquet was changed"), open_collections([copy]):
        pass
    with open_collections([copy], check=False) as (collection,):
        assert collection.models == ["tiny"]
    with pytest.raises(BadInput, match="no run folder"), open_collections([tmp_path / "nothing"]):
        pass


def test_a_folder_with_a_page_and_no_run_is_told_to_be_opened_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>What was reproduced.</p>")
    with pytest.raises(BadInput, match=r"no run to explore; open .*report\.html in a browser"):
        with open_collections([tmp_path]):
            pass


def test_numbers_of_another_program_are_explored_without_tokens(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("item,condition,value\n1,good,-3\n1,bad,-4\n2,good,-5\n2,bad,-4\n")
    write_replay(replay_file(tmp_path / "scores.csv"), tmp_path / "scores.csv", tmp_path / "run")
    with open_collections([tmp_path / "run"]) as (found,):
        assert read_page(found, parse_selection(found, {})).total == 2
        assert read_item(found, found.measures[0], "1")["sentences"][0]["cells"] == [[]]


def test_regions_are_averaged_over_the_items_of_a_suite(runs: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE, encoding="utf-8")
    model = open_model(str(runs[0].parent / "tiny"), cache=False)
    run = evaluate(path, model, out=tmp_path / "run")
    with open_collections([tmp_path / "run"]) as (collection,):
        (suite,) = run["items"]["suite"].unique()
        found = average_regions(collection, suite)
        table = run["regions"]
        for curve in found["curves"]:
            for region, mean, *_ in curve["points"]:
                own = table.filter(pl.col("condition") == curve["condition"], pl.col("region") == region)
                assert mean == pytest.approx(own["surprisal_bits"].mean())
        item = read_item(collection, "surprisal_bits", run["judgements"]["item"][0])
        assert len(item["tables"][0]["regions"]) == 6
        assert len(item["tables"][0]["predictions"]) == 1


SUITE = """
name = "number"
phenomenon = "agreement"
regions = ["subject", "verb", "end"]
predictions = ["(verb;%match%) < (verb;%mismatch%)"]

[[items]]
match = ["The cat", "sleeps", "here."]
mismatch = ["The cat", "sleep", "here."]

[[items]]
match = ["The dog", "sings", "here."]
mismatch = ["The dog", "sing", "here."]
"""


def test_ratings_stand_against_the_scores_they_are_correlated_with(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = [f"The {noun} sleeps here.,{place % 5 + 1}" for place, noun in enumerate("abcdefgh")]
    (tmp_path / "rated.csv").write_text("text,rating\n" + "\n".join(rows) + "\n", encoding="utf-8")
    model = open_model(str(runs[0].parent / "tiny"), cache=False)
    run = evaluate(tmp_path / "rated.csv", model, out=tmp_path / "run")
    with open_collections([tmp_path / "run"]) as (collection,):
        found = read_ratings(collection, "lp", 0)
        (panel,) = found["panels"]
        assert sorted(rating for _, rating, _ in panel["points"]) == sorted(run["items"]["rating"])
        assert sorted(value for *_, value in panel["points"]) == sorted(run["scores"]["value"])
        assert [row["r"] for row in found["correlations"]] == run["correlations"].filter(level="all")[
            "r"
        ].to_list()
        assert read_page(collection, parse_selection(collection, {})).rows[0]["rating"] == 1.0


def test_a_context_study_is_read_with_its_contexts_and_curves(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = runs[0].parent
    models = [open_model(str(folder / name), cache=False) for name in ("tiny", "words.arpa")]
    study_function("context")(
        folder / "pairs.csv",
        models=models,
        out=tmp_path / "study",
        sentences=[0, 2],
        kinds=["matched_acceptable"],
        sample=2,
        report=False,
    )
    with open_collections([tmp_path / "study"]) as (collection,):
        assert sorted(collection.models) == ["tiny", "words"]
        page = read_page(collection, parse_selection(collection, {}), size=100)
        judged = pl.read_parquet(tmp_path / "study" / "models" / "tiny" / "judgements.parquet")
        assert page.total == len(judged)
        assert dict(page.facets["kind"]) == dict(judged["kind"].value_counts().iter_rows())
        row = next(row for row in page.rows if row["kind"] != "none")
        item = read_item(collection, "lp", row["key"])
        assert all(sentence["context"] for sentence in item["sentences"])
        place = collection.find("tiny")
        lp = [sentence["lp"][place] for sentence in item["sentences"]]
        assert lp[0] - lp[1] == pytest.approx(item["margin"][place], abs=1e-6)
        curves = read_contexts(collection)
        assert {curve["model"] for curve in curves["rows"]} == {"tiny", "words"}
        assert curves["unit"] == "sentences"
        assert "context" in list_stimuli(collection, parse_selection(collection, {})).columns


def test_everything_is_too_much_for_one_file_beyond_a_limit(
    both: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(gather_everything(both)["items"]) == 2 * TOTAL
    monkeypatch.setattr(contents, "MOST_OFFLINE", 10)
    with pytest.raises(NotPossible, match="--sample"):
        gather_everything(both)


def test_typed_sentences_are_scored_as_by_the_model_itself(runs: tuple[Path, Path]) -> None:
    lm = open_model(str(runs[0].parent / "tiny"), cache=False)
    texts = ["The cats annoy Tim.", "The cats annoys Tim."]
    found = score_texts({"tiny": lm}, texts, "She saw herself.")
    expected = lm.score(texts, context="She saw herself.")["lp"].to_list()
    assert [sentence["lp"][0] for sentence in found["sentences"]] == pytest.approx(expected)
    (verdict,) = found["verdicts"]
    assert verdict["margin"] == pytest.approx(expected[0] - expected[1])
    assert verdict["better"] == (0 if expected[0] > expected[1] else 1)
    # As in a run, where no error of float32 was measured.
    assert verdict["stable"] == (abs(expected[0] - expected[1]) > 2 * 0.01)
    assert score_texts({"tiny": lm}, ["Alone."])["verdicts"] == []
    assert score_texts({"tiny": lm}, ["Same.", "Same."])["verdicts"][0]["better"] is None


def test_alternatives_are_the_most_probable_tokens_at_a_place(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = open_model(str(runs[0].parent / "tiny"), cache=False)
    vocabulary = len(lm.engine.encoder.tokenizer)  # type: ignore[attr-defined]
    assert len(list_alternatives(lm, "The cats annoy Tim.", 1, k=vocabulary)) == live.MOST_ALTERNATIVES
    monkeypatch.setattr(live, "MOST_ALTERNATIVES", vocabulary)
    everything = list_alternatives(lm, "The cats annoy Tim.", 1, k=vocabulary)
    values = [row["logprob"] for row in everything]
    assert values == sorted(values, reverse=True)
    # Over the whole vocabulary, probabilities sum to 1, and the text's token is one of them.
    assert math.fsum(map(math.exp, values)) == pytest.approx(1.0, abs=1e-5)
    row = lm.tokens("The cats annoy Tim.", rank=True).row(0, named=True)
    (token,) = [each for each in everything if each["own"]]
    assert (token["token"], token["rank"]) == (row["tokens"][1], row["rank"][1])
    assert token["logprob"] == pytest.approx(row["logprob"][1], abs=1e-5)
    with pytest.raises(BadInput, match="no token number 99"):
        list_alternatives(lm, "The cats annoy Tim.", 99)


@pytest.mark.parametrize("texts", [[], [" "], ["x"] * 13, ["x" * 4001]])
def test_what_cannot_be_scored_at_once_is_refused(runs: tuple[Path, Path], texts: list[str]) -> None:
    with pytest.raises(BadInput):
        score_texts({}, texts)


def test_kept_pairs_are_a_file_that_a_run_takes(tmp_path: Path) -> None:
    pairs = [
        {"good": "He left.", "bad": "Him left.", "context": "Anna stayed."},
        {"good": "A.", "bad": "B.", "context": ""},
    ]
    tabulate_pairs(pairs).write_csv(tmp_path / "pairs.csv")
    data = read_dataset(str(tmp_path / "pairs.csv"))
    assert data.rule == "contrast"
    assert sorted(data.items["text"]) == ["A.", "B.", "He left.", "Him left."]
    assert tabulate_pairs(pairs[1:]).columns == ["item", "condition", "text"]
    with pytest.raises(BadInput, match="Pair 1 lacks"):
        tabulate_pairs([{"good": "A."}])
