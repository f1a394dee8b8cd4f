"""The study of larger probes: figures by hand and by lm.fill, and the published tests of power."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.judge.cloze import judge_cloze
from felicity.papers.replay.predictions import Predictions, judge_model, read_frames, read_models
from felicity.run.model import open_model
from felicity.stats import pair_answers, permute_pairs, power_of_pairs
from felicity.stimuli.items import write_items
from felicity.stimuli.templates import Member, build_from_template, read_template
from felicity.studies import Study, read_study, study_function
from felicity.studies.cloze import read_cloze_pairs, read_cloze_set
from felicity.studies.cloze.answers import (
    count_targets,
    describe_targets,
    judge_answers,
    rate_humans,
    tabulate_accuracy,
)
from felicity.studies.cloze.frames import ClozeSet, find_extensions, wrote_items
from felicity.studies.cloze.probe_tables import note_repeats, read_answers, read_sets
from felicity.studies.cloze.size_comparison import (
    compare_accuracies,
    compare_sizes,
    conclude,
    fit_regressions,
)
from tests.conftest import Answer

if TYPE_CHECKING:
    from felicity.run import Model


def read_one(study: Study, dataset: str) -> pl.DataFrame:
    """The answers of the study's only model to one dataset."""
    (model,) = study.models
    return read_answers(study.place, read_sets(study.place)[dataset], model)


def make_set(name: str = "small", n: int = 4) -> ClozeSet:
    rows = [
        (f"{name}/{number}", condition, f"A thing{number} is {no}a", target, contrast)
        for number in range(n)
        for condition, no, target, contrast in (
            ("affirmative", "", "tool", "bird"),
            ("negative", "not ", "bird", "tool"),
        )
    ]
    items = pl.DataFrame(
        rows, schema=["item", "condition", "context_text", "target", "contrast"], orient="row"
    )
    return ClozeSet(name, items, ("affirmative",), ("affirmative", "negative"))


def make_answers(data: ClozeSet, ranks: list[int | None], changed: list[bool]) -> pl.DataFrame:
    rows = []
    for place, row in enumerate(data.items.iter_rows(named=True)):
        number, second = divmod(place, 2)
        rank = None if second else ranks[number]
        words = [f"word{k}" for k in range(20)]
        if rank:
            words[rank - 1] = row["target"]
        if second and not changed[number]:
            words[0] = rows[-1]["predictions"][0]
        elif second:
            words[0] = "other"
        rows.append(
            {
                "item": row["item"],
                "condition": row["condition"],
                "frame": row["context_text"] + " ___.",
                "target": row["target"],
                "contrast": row["contrast"],
                "predictions": words,
                "rank": rank,
                "logprob": math.log(0.2),
                "contrast_logprob": math.log(0.1),
                "n_tokens": 1,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_top_k_and_sensitivity_are_shares_of_frames_and_of_pairs() -> None:
    data = make_set()
    answers = {("small", "lm"): make_answers(data, [1, 4, 15, None], [True, False, False, False])}
    table = tabulate_accuracy(answers, {"small": data})
    assert dict(table.select("figure", "share").iter_rows()) == {
        "top1": 0.25,
        "top5": 0.5,
        "top10": 0.5,
        "top20": 0.75,
        "sensitivity": 0.25,
    }
    assert set(table["n"]) == {4}


def test_targets_have_a_probability_a_rank_and_log_odds() -> None:
    data = make_set()
    answers = {("small", "lm"): make_answers(data, [1, 4, 15, None], [True] * 4)}
    row = describe_targets(answers, {"small": data}).row(0, named=True)
    assert row["probability"] == pytest.approx(0.2)
    assert row["log_odds"] == pytest.approx(math.log(2.0))
    assert (row["ranked"], row["median_rank"], row["preferred"]) == (3, 9.5, 1.0)


def test_the_median_rank_is_unknown_where_half_the_targets_are_beyond_the_last_place() -> None:
    data = make_set()
    answers = {("small", "lm"): make_answers(data, [1, 4, None, None], [True] * 4)}
    assert describe_targets(answers, {"small": data})["median_rank"].to_list() == [None]


def test_always_answering_the_most_frequent_targets_has_an_accuracy_of_its_own() -> None:
    rows = [(str(n), "affirmative", f"A {n} is a", word, None) for n, word in enumerate("aaabbc")]
    items = pl.DataFrame(
        rows, schema=["item", "condition", "context_text", "target", "contrast"], orient="row"
    )
    table = count_targets({"set": ClozeSet("set", items, ("affirmative",), ())}, most=2)
    assert table.select("target", "n", "different", "share").rows() == [
        ("a", 3, 3, pytest.approx(0.5)),
        ("b", 2, 3, pytest.approx(5 / 6)),
    ]


def test_a_conclusion_that_a_small_set_cannot_reach_is_called_so() -> None:
    """8 against 2 of 10 discordant items: p = .109; of 100: 80 against 20, p far below .05."""
    sets = {name: make_set(name, n) for name, n in (("small", 10), ("large", 100))}
    answers = {}
    for name, data in sets.items():
        n = data.items.height // 2
        first = [1 if number < 0.8 * n else None for number in range(n)]
        second = [None if number < 0.8 * n else 1 for number in range(n)]
        answers[name, "good"] = make_answers(data, first, [True] * n)
        answers[name, "poor"] = make_answers(data, second, [True] * n)
    row = compare_sizes(answers, sets, [("small", "large")], figures=("top1",)).row(0, named=True)
    assert row["p_small"] == pytest.approx(0.109375)
    assert row["p_large"] < 1e-8
    assert row["difference_small"] == pytest.approx(0.6)
    assert row["power_small"] < 0.8 < row["power_large"]
    assert row["conclusion"] == "detected on the extension only"
    change = compare_accuracies(tabulate_accuracy(answers, sets), [("small", "large")])
    assert change.filter(model="good", figure="top1")["change"][0] == pytest.approx(0.0)


def test_conclusions_are_told_apart() -> None:
    up, down = {"p": 0.01, "difference": 0.1}, {"p": 0.01, "difference": -0.1}
    unsure = {"p": 0.5, "difference": 0.1}
    assert conclude(up, up) == "detected at both sizes, in the same direction"
    assert conclude(up, down) == "detected at both sizes, in opposite directions"
    assert conclude(up, unsure) == "detected on the small set only"
    assert conclude(unsure, unsure) == "no detectable difference at either size"


def test_two_annotators_give_a_ceiling_and_kappa() -> None:
    """One says tool, tool, tool, bird; the other tool, tool, bird, bird: agreement .75, by chance .5."""
    said = {"ada": ("tool", "Tool ", "tool", "bird"), "bob": ("tool", "tool", "bird", "bird")}
    rows = [
        ("small", str(number), "affirmative", who, answer)
        for who, answers in said.items()
        for number, answer in enumerate(answers)
    ]
    given = pl.DataFrame(rows, schema=["dataset", "item", "condition", "annotator", "answer"], orient="row")
    row = rate_humans(given, {"small": make_set()}).row(0, named=True)
    assert row["accuracy"] == pytest.approx((0.75 + 0.5) / 2)
    assert row["kappa"] == pytest.approx(0.5)


def test_sentences_that_stand_twice_are_told() -> None:
    data = make_set()
    twice = ClozeSet("twice", pl.concat([data.items, data.items.head(2)]), data.targets, data.change)
    assert note_repeats({"once": data, "twice": twice}) == [
        "twice repeats 2 of its 10 sentences; tests count each of them."
    ]


def test_the_published_extensions_are_known_and_others_are_named() -> None:
    names = ["neg_136_simp", "neg_1500_simp_temp", "mine"]
    assert find_extensions(names) == [("neg_136_simp", "neg_1500_simp_temp")]
    assert find_extensions(names, ["neg_136_simp:mine"])[-1] == ("neg_136_simp", "mine")
    with pytest.raises(BadInput, match="SMALL:LARGE"):
        find_extensions(names, ["neg_136_simp:nothing"])


def test_a_model_that_wrote_the_items_is_known_by_any_of_its_names() -> None:
    data = ClozeSet("role_1500", pl.DataFrame(), (), (), written_by="text-davinci-002")
    assert wrote_items(data, name="gpt3", spec="openai:gpt3")
    assert wrote_items(data, name="text-davinci-002", spec="openai:text-davinci-002")
    assert not wrote_items(data, name="smollm2", spec="smollm2")


def test_a_dataset_comes_in_pairs_of_sentences(published: Callable[[str], Path]) -> None:
    published("ettinger2020")
    pairs = read_cloze_pairs("neg_136_simp")
    assert len(pairs) == 18
    assert pairs[0].sentences == ("A trout is a fish", "A trout is not a tool")


@pytest.fixture
def own_sets(tmp_path: Path) -> list[str]:
    """A small and a larger cloze file of our own, the larger written by the tiny model."""
    members = [Member("cat", "animal"), Member("dog", "animal"), Member("oak", "tree"), Member("elm", "tree")]
    more = [*members, *(Member(f"saw{n}", "tool") for n in range(6))]
    paths = []
    for name, chosen in (("small", members), ("large", more)):
        items = build_from_template(read_template("neg"), members=chosen).items
        if name == "large":
            items = items.with_columns(written_by=pl.lit("tiny-gpt2"))
        paths.append(str(tmp_path / f"{name}.parquet"))
        write_items(items, Path(paths[-1]))
    return paths


def test_the_study_is_what_fill_and_score_candidates_say(
    tiny_model: Path, own_sets: list[str], tmp_path: Path
) -> None:
    lm = open_model(str(tiny_model), cache=False)
    study = study_function("cloze")(own_sets, models=lm, out=tmp_path / "study", against="small:large")
    answers = read_one(study, "large")
    data = read_cloze_set(own_sets[1])
    for row in answers.iter_rows(named=True):
        filled = lm.fill(row["frame"], k=20)["filler"].to_list()
        assert row["predictions"] == filled
        assert row["rank"] == (filled.index(row["target"]) + 1 if row["target"] in filled else None)
        scored = lm.score_candidates(row["frame"], [row["target"], row["contrast"]])["logprob"]
        assert row["logprob"] == pytest.approx(scored[0], abs=1e-3)
        assert row["contrast_logprob"] == pytest.approx(scored[1], abs=1e-3)
    frames = answers.with_columns(suite=pl.lit("s"), phenomenon=pl.lit("p"))
    judged = judge_cloze(frames, targets=data.targets, change=data.change)
    ours = judge_answers(answers, data).group_by("figure").agg(pl.col("passed").mean())
    theirs = judged.group_by("rule").agg(pl.col("passed").mean())
    assert dict(ours.iter_rows()) == dict(theirs.iter_rows())


@pytest.mark.slow
def test_the_tables_of_the_default_model_come_out_of_fill_and_of_its_logits(
    default_model: "Model", default_weights: Any, published: Callable[[str], Path], tmp_path: Path
) -> None:
    """Ranks again from `lm.fill`, probabilities from the logits that transformers gives, in plain Python."""
    import torch
    from transformers import AutoTokenizer

    published("ettinger2020")
    study = study_function("cloze")("neg_136_simp", models=default_model, out=tmp_path / "study")
    (name,) = study.models
    data = read_cloze_set("neg_136_simp")
    tokenizer = AutoTokenizer.from_pretrained(default_weights.name_or_path)
    begin = tokenizer.convert_tokens_to_ids(default_model.info.policy["bos"])
    ranks, logprobs, odds, firsts = [], [], [], {}
    for row in data.items.iter_rows(named=True):
        words = default_model.fill(f"{row['context_text']} ___.", k=20)["filler"].to_list()
        firsts[row["item"], row["condition"]] = words[0]
        if row["condition"] in data.targets:
            ids = [begin, *tokenizer(row["context_text"], add_special_tokens=False)["input_ids"]]
            with torch.inference_mode():
                table = default_weights(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
            target, contrast = (
                float(table[tokenizer.convert_tokens_to_ids(f"Ġ{row[word]}")])
                for word in ("target", "contrast")
            )
            ranks.append(words.index(row["target"]) + 1 if row["target"] in words else 21)
            logprobs.append(target)
            odds.append(target - contrast)
    shares = dict(study["accuracy"].select("figure", "share").iter_rows())
    items = {item for item, _ in firsts}
    one, other = data.change
    changed = sum(firsts[item, one] != firsts[item, other] for item in items)
    assert shares == {
        **{f"top{k}": sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 5, 10, 20)},
        "sensitivity": changed / len(items),
    }
    told = study["targets"].row(0, named=True)
    assert (told["model"], told["n"]) == (name, len(ranks))
    assert told["probability"] == pytest.approx(sum(map(math.exp, logprobs)) / len(logprobs), rel=1e-3)
    assert told["log_odds"] == pytest.approx(sum(odds) / len(odds), abs=1e-3)
    assert told["preferred"] == pytest.approx(sum(each > 0 for each in odds) / len(odds))
    assert told["ranked"] == sum(rank <= 20 for rank in ranks)


def test_a_sample_takes_whole_items_and_is_recorded(
    cli: Callable[..., Answer], tiny_model: Path, own_sets: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "study"
    whole = read_cloze_set(own_sets[1])
    human = whole.items.select(
        "condition",
        item=pl.col("item").str.split("/").list.last(),
        dataset=pl.lit("large"),
        annotator=pl.lit("ada"),
        answer="target",
    )
    human.write_csv(tmp_path / "human.csv")
    options = ("-m", tiny_model, "-o", out, "--sample", 2, "--seed", 1, "--human", tmp_path / "human.csv")
    said = cli("cloze", own_sets[1], *options, "--json")
    assert said.code == 0, said.err
    drawn = read_cloze_set(own_sets[1], sample=2, seed=1).items
    assert drawn["item"].n_unique() == 2 < whole.items["item"].n_unique()
    assert drawn.height == 2 * whole.items["condition"].n_unique()
    answers = read_one(read_study(out), "large")
    assert answers["item"].to_list() == drawn["item"].to_list()
    assert answers["predictions"].null_count() == 0
    assert "a sample of 2 items of each suite" in (out / "report.html").read_text()
    found = json.loads(said.out)
    assert {row["n"] for row in found["tables"]["targets"]} == {4}
    assert found["tables"]["humans"][0]["n"] == len(human)
    assert cli("report", out).code == 0


def test_a_file_that_is_no_cloze_file_is_told_its_columns(cli: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("item,sentence\n1,A robin is a bird\n")
    said = cli("cloze", tmp_path / "mine.csv", "-o", tmp_path / "out")
    assert said.code == 2
    assert "lacks condition, context_text, text; a cloze file has the columns" in said.err
    assert "--good" not in said.err


def test_the_report_warns_of_a_model_on_its_own_items(
    tiny_model: Path, own_sets: list[str], tmp_path: Path
) -> None:
    lm = open_model(str(tiny_model), cache=False)
    out = tmp_path / "study"
    study = study_function("cloze")(own_sets, models=lm, out=out, against="small:large")
    (warning,) = (note for note in study.notes if "wrote itself" in note)
    assert "large, whose items it wrote itself" in warning
    assert warning in (out / "report.html").read_text()
    assert {"accuracy.csv", "targets.csv", "changes.csv"} <= {path.name for path in out.iterdir()}


@cache
def read_published(folder: Path) -> list[Predictions]:
    """The predictions of every model, read once for all tests."""
    return list(read_models(folder))


def pair_published(
    folder: Path, first: str, second: str, reading: str, *, firsts_only: bool = False
) -> object:
    """Two published models on the same frames, top-5 under a reading."""
    name = folder.name.lower().replace("-", "_")
    frames = read_frames(name, folder)
    role = name.startswith("role")
    targets = ["a", "b"] if role else ["affirmative"]
    tables = []
    for model in read_published(folder):
        if model.model in (first, second):
            judged = judge_model(frames, model, reading, targets=targets, change=[])
            chosen = judged.filter(rule="top5").with_row_index("place")
            tables.append((model.model, chosen))
    by_name = dict(tables)
    return pair_answers(by_name[first], by_name[second], on="place")


@pytest.mark.parametrize(
    ("dataset", "first", "second", "reading", "power"),
    [
        ("ROLE-1500", "albert-xxlarge-v2", "roberta-large", "first places", 0.722),
        ("ROLE-1500", "albert-xxlarge-v2", "roberta-large", "corrected", 0.069),
        ("NEG-1500-SIMP-TEMP", "gpt3_withoutprompt", "bert-large-uncased", "corrected", 0.043),
    ],
)
def test_published_power_comes_out_of_the_published_predictions(
    dataset: str, first: str, second: str, reading: str, power: float, published: Callable[[str], Path]
) -> None:
    pairs = pair_published(published(f"shivagunde2023/predictions/{dataset}"), first, second, reading)
    assert power_of_pairs(pairs, test="exact").power == pytest.approx(power, abs=5e-4)


@pytest.mark.parametrize(
    ("dataset", "first", "second", "p"),
    [
        ("ROLE-1500", "albert-xxlarge-v2", "roberta-large", 0.0109),
        ("NEG-1500-SIMP-TEMP", "gpt3_withoutprompt", "gpt2-xl", 0.2246),
    ],
)
def test_published_permutation_tests_come_out_exactly(
    dataset: str, first: str, second: str, p: float, published: Callable[[str], Path]
) -> None:
    pairs = pair_published(published(f"shivagunde2023/predictions/{dataset}"), first, second, "first places")
    found = permute_pairs(pairs)
    assert found.exact
    assert found.p == pytest.approx(p, abs=5e-5)


def test_a_regression_leaves_out_a_model_that_is_always_wrong_and_says_so() -> None:
    sets = {name: make_set(name, 40) for name in ("small", "large")}
    hits = {"good": range(32), "poor": range(20, 40), "none": range(0)}
    answers = {
        (name, model): make_answers(
            data, [1 if number in hits[model] else None for number in range(40)], [True] * 40
        )
        for name, data in sets.items()
        for model in hits
    }
    table, notes = fit_regressions(answers, sets, [("small", "large")])
    assert notes[0] == "small: none is always right or always wrong, so no regression has it."
    poor = table.filter(term="modelpoor")["estimate"][0]
    assert poor < 0
    assert table["formula"][0] == "passed ~ model * set + (1 | item)"


def test_two_impossible_words_are_level_and_not_preferred() -> None:
    """polars takes NaN, which minus infinity minus itself is, for larger than any number."""
    data = make_set()
    answers = make_answers(data, [1, 4, 15, None], [True] * 4).with_columns(
        pl.lit(-math.inf).alias("logprob"), pl.lit(-math.inf).alias("contrast_logprob")
    )
    row = describe_targets({("small", "lm"): answers}, {"small": data}).row(0, named=True)
    assert (row["preferred"], row["log_odds"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("0", "tool"), ("0", "bird")], "occurs twice"),
        ([("0", "tool"), ("1", None)], "empty cell"),
        ([("0", "tool"), ("99", "tool")], "name item '99', affirmative, of small, which it does not have"),
    ],
)
def test_human_answers_that_repeat_lack_or_invent_something_are_refused(
    rows: list[tuple[str, str | None]], told: str
) -> None:
    table = [("small", item, "affirmative", "ada", answer) for item, answer in rows]
    given = pl.DataFrame(table, schema=["dataset", "item", "condition", "annotator", "answer"], orient="row")
    with pytest.raises(BadInput, match=told):
        rate_humans(given, {"small": make_set()})


def test_changed_answers_are_refused_and_asked_for_again(
    tiny_model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    blanks = tmp_path / "blanks.csv"
    blanks.write_text("item,condition,context_text,text\n1,a,The cat saw the,dog\n2,a,The dog saw the,cat\n")
    cloze = study_function("cloze")
    study = cloze(blanks, models=str(tiny_model), out=tmp_path / "out")
    first = read_one(study, "blanks")
    path = tmp_path / "out" / "models" / "tiny-gpt2" / "blanks" / "target_words.parquet"
    pl.read_parquet(path).with_columns(pl.col("logprob") - 1.0).write_parquet(path)
    with pytest.raises(BadInput, match="target_words.parquet was changed"):
        study.run("tiny-gpt2/blanks")
    assert read_one(cloze(blanks, models=str(tiny_model), out=tmp_path / "out"), "blanks").equals(first)


def test_a_frame_is_asked_as_its_file_is(tiny_model: Path, tmp_path: Path) -> None:
    rows = {"item": [1, 2], "condition": "a", "context_text": ["The cat saw the", "The dog saw the"]}
    frame = pl.DataFrame(rows | {"text": ["dog", "cat"]})
    frame.write_csv(tmp_path / "frame.csv")
    cloze = study_function("cloze")
    one, two = (cloze([given], models=str(tiny_model)) for given in (frame, str(tmp_path / "frame.csv")))
    assert one["accuracy"].drop("dataset").equals(two["accuracy"].drop("dataset"))
    assert one["targets"].drop("dataset").equals(two["targets"].drop("dataset"))
