"""Direct and metalinguistic judgements: what is asked, how answers are scored, and how methods agree."""

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.data import read_dataset, take_frame
from felicity.engines.served import Serving
from felicity.run import open_model
from felicity.studies import study_function
from felicity.studies.methods import ask, compare, find_pairs, list_languages, read_wording, wording
from tests.conftest import Answer, make_tiny_model
from tests.engines.served.served_server import NAME, Served
from tests.engines.shapes import make_masked

PAIRS = pl.DataFrame(
    {
        "good": ["The cats annoy Tim.", "No dog barked.", "She saw herself."],
        "bad": ["The cats annoys Tim.", "Any dog barked.", "She saw himself."],
        "suite": ["agreement", "polarity", "anaphora"],
    }
)
FRAMES = pl.DataFrame(
    {
        "item": ["1", "1", "2", "2"],
        "condition": ["aff", "neg"] * 2,
        "context_text": ["A robin is a", "A robin is not an", "An oak is a", "An oak is not a"],
        "text": ["bird", "animal", "tree", "tree"],
    }
)
ENGLISH = read_wording("en")
BUILT_IN = Path(wording.__file__).parent / "prompts" / "en.toml"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with room for a prompt."""
    return make_tiny_model(tmp_path_factory.mktemp("methods") / "tiny", seed=1, window=256)


def asked(frame: pl.DataFrame, method: str) -> list[tuple[str, str | None, str]]:
    """Condition, context and text of the first item's requests."""
    data = take_frame(frame)
    rows = ask(find_pairs(data, data.items), method, ENGLISH)
    return list(rows.filter(item=rows["item"][0]).select("condition", "context_text", "text").iter_rows())


def test_direct_probabilities_need_no_prompt() -> None:
    good, bad = PAIRS.row(0)[:2]
    assert asked(PAIRS, "direct") == [("good", None, good), ("bad", None, bad)]


def test_a_template_stands_before_the_sentence() -> None:
    good, bad = PAIRS.row(0)[:2]
    before = "Here is a grammatical English sentence:"
    assert asked(PAIRS, "in_template") == [("good", before, good), ("bad", before, bad)]


def test_yes_is_compared_with_no_for_each_sentence() -> None:
    found = asked(PAIRS, "yes_no")
    assert [(condition, text) for condition, _, text in found] == [
        ("good", "Yes"),
        ("good@counter", "No"),
        ("bad", "Yes"),
        ("bad@counter", "No"),
    ]
    assert all(PAIRS["good"][0] in str(before) for _, before, _ in found[:2])
    assert all(PAIRS["bad"][0] in str(before) for _, before, _ in found[2:])


def test_a_question_names_both_sentences_in_either_order() -> None:
    good, bad = PAIRS.row(0)[:2]
    found = asked(PAIRS, "question")
    assert [(condition, text) for condition, _, text in found] == [
        ("good", "A"),
        ("good@swapped", "B"),
        ("bad", "B"),
        ("bad@swapped", "A"),
    ]
    assert f"A: {good}\nB: {bad}\n" in str(found[0][1])
    assert f"A: {bad}\nB: {good}\n" in str(found[1][1])


def test_a_target_of_a_cloze_frame_is_asked_about_beside_that_of_the_other_frame() -> None:
    found = asked(FRAMES, "question")
    # The article that changes with the word goes with it.
    assert [(condition, text) for condition, _, text in found] == [
        ("good", "a bird"),
        ("good@swapped", "a bird"),
        ("bad", "an animal"),
        ("bad@swapped", "an animal"),
    ]
    assert '"a bird" or "an animal"?\nSentence: A robin is\n' in str(found[0][1])
    assert '"an animal" or "a bird"?' in str(found[1][1])


def test_items_without_two_words_are_left_out() -> None:
    data = take_frame(FRAMES)
    pairs = find_pairs(data, data.items)
    assert (pairs.kind, pairs.left_out) == ("word", 1)
    assert pairs.rows["item"].str.slice(0, 2).unique().to_list() == ["1/"]


@pytest.mark.data
def test_words_of_one_frame_are_compared_where_a_set_has_them(published: Callable[[str], Path]) -> None:
    published("ettinger2020")
    data = read_dataset("cprag_102")
    rows = find_pairs(data, data.items).rows
    assert len(rows) == 68
    assert rows.select("good", "bad").rows()[:2] == [("chess", "monopoly"), ("chess", "football")]


@pytest.mark.parametrize("language", list_languages())
def test_every_language_has_every_prompt(language: str) -> None:
    prompts = read_wording(language)
    assert prompts.source == f"built-in, {language}"
    assert prompts.answers["yes"] != prompts.answers["no"]


def test_verdicts_are_those_of_the_answers_log_probabilities(
    model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    study = study_function("methods")(PAIRS, models=[str(model)], out=tmp_path / "methods")
    lm = open_model(str(model), cache=False)
    name = study.models[0]
    for method in ("direct", "in_template", "question", "yes_no"):
        margins = study.run(f"{name}/{method}")["judgements"]["margin"]
        data = take_frame(PAIRS)
        rows = ask(find_pairs(data, data.items), method, ENGLISH)
        scores = [
            lm.score(text, context=before)["lp"].item()
            for before, text in rows.select("context_text", "text").iter_rows()
        ]
        # Good and bad in turn, or good, its further request, bad, its further request.
        half = [sum(scores[at : at + 2]) / 2 for at in range(0, len(scores), 2)]
        against = [scores[at] - scores[at + 1] for at in range(0, len(scores), 2)]
        values = {"question": half, "yes_no": against}.get(method, scores)
        expected = [values[at] - values[at + 1] for at in range(0, len(values), 2)]
        assert margins.to_list() == pytest.approx(expected, abs=1e-4)
    manifest = study.run(f"{name}/yes_no").manifest
    assert manifest["options"]["prompts"]["sentence"]["yes_no"].startswith("Is the following sentence")
    assert study["agreement"].height == 6
    assert "agree with the direct probabilities" in study.page.answer
    assert study.report().exists()


def test_a_served_model_answers_as_the_local_one(model: Path, tmp_path: Path, empty_cache: Path) -> None:
    # The server's window is small.
    short = re.sub(r"Is the following sentence.*Sentence: ", "Ok? ", BUILT_IN.read_text("utf-8"))
    (tmp_path / "short.toml").write_text(short, encoding="utf-8")
    given = {"methods": ["yes_no"], "prompts": tmp_path / "short.toml"}
    near = study_function("methods")(PAIRS, models=[str(model)], out=tmp_path / "near", **given)
    with Served(model, style="echo") as served:
        serving = Serving(url=served.url, backoff=0.02, patience=20.0, tokenizer=str(model))
        lm = open_model(f"openai:{NAME}", serving=serving, cache=False)
        far = study_function("methods")(PAIRS, models=[lm], out=tmp_path / "far", **given)
    margins = [
        study.run(f"{study.models[0]}/yes_no")["judgements"]["margin"].to_list() for study in (near, far)
    ]
    assert margins[1] == pytest.approx(margins[0], abs=1e-3)


def judgements(passed: list[float], margin: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"item": [str(at) for at in range(len(passed))], "passed": passed, "margin": margin})


def test_agreement_is_worked_by_hand() -> None:
    first = judgements([1.0, 1.0, 1.0, 0.0, 0.0, 0.5], [1.0, 2.0, 3.0, -1.0, -2.0, 0.0])
    second = judgements([1.0, 1.0, 0.0, 0.0, 0.0, 1.0], [1.0, 2.0, -1.0, -1.0, -2.0, 1.0])
    found = compare(first, second)
    # Four of five alike; by chance .6 * .4 + .4 * .6 = .48.
    assert (found["n"], found["agreement"]) == (5, pytest.approx(0.8))
    assert found["kappa"] == pytest.approx((0.8 - 0.48) / (1 - 0.48))


def test_a_method_with_one_verdict_has_agreement_but_no_kappa() -> None:
    same = judgements([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    found = compare(same, same)
    assert found["agreement"] == 1
    assert not {"kappa", "r"} & set(found)


def test_prompts_of_ones_own_are_used(cli: Callable[..., Answer], model: Path, tmp_path: Path) -> None:
    PAIRS.write_csv(tmp_path / "pairs.csv")
    text = BUILT_IN.read_text("utf-8")
    (tmp_path / "own.toml").write_text(text.replace('yes = "Yes"', 'yes = "Tim"'), encoding="utf-8")
    answer = cli(
        *("methods", tmp_path / "pairs.csv", "-m", model, "--method", "yes_no", "--no-report"),
        *("--prompts", tmp_path / "own.toml", "-o", tmp_path / "study"),
    )
    assert answer.code == 0, answer.err
    items = pl.read_parquet(next((tmp_path / "study").glob("models/*/yes_no/items.parquet")))
    assert set(items["text"]) == {"Tim", "No"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('no = "No"', "", "no text for answers.no"),
        ("{first}", "", r"sentence.question must contain \{first\}, \{second\}"),
        ("{sentence}", "{", "must contain"),
        ("[answers]", "[answers", "not a TOML file"),
        ("sentence: {sentence}", "sentence: {sentence}!", r"must end in \{sentence\}"),
    ],
)
def test_prompts_that_lack_something_are_refused(
    before: str, after: str, message: str, tmp_path: Path
) -> None:
    text = BUILT_IN.read_text("utf-8")
    (tmp_path / "own.toml").write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read_wording("en", tmp_path / "own.toml")


def test_a_language_without_prompts_is_named() -> None:
    with pytest.raises(BadInput, match="no prompts in 'xx', only in de, en"):
        read_wording("xx")
    with pytest.raises(BadInput, match="cannot be read"):
        read_wording("en", Path("missing.toml"))


def test_what_is_not_a_pair_and_a_masked_model_are_refused(tmp_path: Path) -> None:
    rated = take_frame(pl.DataFrame({"text": ["The cat sat.", "Cat the sat."], "rating": [4.0, 1.0]}))
    with pytest.raises(BadInput, match="has the rule rating"):
        find_pairs(rated, rated.items)
    same = FRAMES.filter(item="2")
    with pytest.raises(BadInput, match="two sentences or words"):
        find_pairs(take_frame(same), take_frame(same).items)
    with pytest.raises(FelicityError, match="left to right"):
        study_function("methods")(PAIRS, models=[str(make_masked("bert", tmp_path / "bert"))])
