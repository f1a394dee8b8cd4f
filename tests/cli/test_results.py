"""Results that could be misread, each through the command line: one test per way in which they once were."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Answer, make_tiny_model

Cli = Callable[..., Answer]
WORDS = ("cats", "dogs", "birds", "boys")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    rows = [f"s{i % 2},The {word} annoy Tim.,The {word} annoys Tim." for i, word in enumerate(WORDS)]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def ngram(cli: Cli, tmp_path: Path) -> Path:
    """A bigram model that knows a few words."""
    (tmp_path / "corpus.txt").write_text("the cat sleeps .\nthe dog sleeps .\na cat sees a dog .\n" * 3)
    cli("train", "ngram", tmp_path / "corpus.txt", "-n", 2, "-o", tmp_path / "small.arpa", "-q")
    return tmp_path / "small.arpa"


def run(cli: Cli, data: Path, model: Path, out: Path, *options: object) -> Path:
    answer = cli("run", data, "-m", model, "-o", out, "-q", *options)
    assert answer.code == 0, answer.err
    return out


def test_an_added_measure_does_not_change_what_is_compared_fitted_or_reported(
    cli: Cli, pairs: Path, tiny_model: Path
) -> None:
    one, two = (run(cli, pairs, tiny_model, pairs.parent / name) for name in ("one", "two"))
    headline = (one / "report.html").read_text(encoding="utf-8").count("<code>lp</code>")
    run(cli, pairs, tiny_model, one, "--measure", "mean_lp")
    (row,) = json.loads(cli("compare", one, two, "--json").out)
    assert (row["measure"], row["difference"], row["p"]) == ("lp", 0.0, 1.0)
    assert (one / "report.html").read_text(encoding="utf-8").count("<code>lp</code>") >= headline > 0
    fitted = [
        json.loads(cli("fit", "margin ~ suite", folder, "--json").out)["fixed"] for folder in (one, two)
    ]
    assert fitted[0] == fitted[1]


def test_a_tie_counts_the_same_in_run_and_compare_and_is_said(
    cli: Cli, ngram: Path, tiny_model: Path, tmp_path: Path
) -> None:
    data = tmp_path / "ties.csv"
    # Both members of the second pair are the same unknown words to the n-gram model.
    data.write_text("good,bad\nthe cat sleeps .,the sleeps cat .\nzebra runs,quagga walks\na dog,dog a\n")
    one, two = run(cli, data, ngram, tmp_path / "n"), run(cli, data, tiny_model, tmp_path / "t")
    accuracy = pl.read_csv(one / "estimates.csv").filter(pl.col("level") == "overall")["accuracy"].item()
    (row,) = json.loads(cli("compare", one, two, "--json").out)
    assert row["accuracy_first"] == pytest.approx(accuracy)
    assert accuracy * 3 % 1 == pytest.approx(0.5)
    assert "ties count half (up to 1 tied answers" in cli("compare", one, two).out
    assert "1 ties" in cli("run", data, "-m", ngram, "-o", one).out


def test_unrelated_sentences_under_the_same_ids_are_not_compared(
    cli: Cli, pairs: Path, tiny_model: Path
) -> None:
    one = run(cli, pairs, tiny_model, pairs.parent / "one")
    pairs.write_text(pairs.read_text().replace("birds", "horses"))
    two = run(cli, pairs, tiny_model, pairs.parent / "two")
    answer = cli("compare", one, two)
    assert answer.code == 2
    assert "Item 's0/2' is not the same" in answer.err


def test_cloze_failures_are_listed_and_ratings_are_reported_as_concordance(
    cli: Cli, tiny_model: Path, tmp_path: Path
) -> None:
    blanks, rated = tmp_path / "blanks.csv", tmp_path / "rated.csv"
    blanks.write_text(
        "item,condition,context_text,text\n1,a,The cat saw the,zebra\n2,a,The dog saw a,quagga\n"
    )
    page = (run(cli, blanks, tiny_model, tmp_path / "c") / "report.html").read_text(encoding="utf-8")
    assert "Missed targets" in page
    assert "zebra" in page
    assert "No item was judged wrong" not in page
    rated.write_text(
        "text,rating\nThe cat sleeps.,6\nThe cat sleep.,2\nThe dogs bark.,5\nThe dogs barks.,1\n"
    )
    page = (run(cli, rated, tiny_model, tmp_path / "r") / "report.html").read_text(encoding="utf-8")
    assert "Concordance with ratings" in page
    assert 'id="margins"' not in page
    assert "Score and rating" in page


def test_the_audit_checks_every_contrast_or_says_that_it_did_not(
    cli: Cli, tiny_model: Path, tmp_path: Path
) -> None:
    choice, suite = tmp_path / "choice.csv", tmp_path / "suite.toml"
    rows = ("good,I like,the cat", "near,I like,the cat that barked", "far,I like,the cat")
    choice.write_text("item,condition,context,text\n" + "".join(f"1,{row}\n" for row in rows))
    said = cli("run", choice, "-m", tiny_model, "-o", tmp_path / "c", "--no-report").err
    assert "good shorter than near: 1 of 1" in said
    assert "good identical to far: 1 of 1" in said
    suite.write_text('name = "s"\npredictions = ["(1;%a%) < (1;%b%)"]\n[[items]]\na = ["It"]\nb = ["Its"]\n')
    said = cli("run", suite, "-m", tiny_model, "-o", tmp_path / "s", "--no-report").err
    assert "not checked: 1 of 1" in said


def test_a_unigram_table_of_another_tokenizer_is_refused(cli: Cli, pairs: Path, tiny_model: Path) -> None:
    counts = pairs.parent / "counts.tsv"
    counts.write_text("zebra\t5\nquagga\t3\n")
    options = ("-m", tiny_model, "--measure", "slor", "--unigram", counts, "-o", pairs.parent / "r")
    answer = cli("run", pairs, *options)
    assert answer.code == 2
    assert "counted with another tokenizer" in answer.err


def test_judge_names_no_winner_between_the_same_tokens_and_keeps_to_one_unit(cli: Cli, ngram: Path) -> None:
    told = json.loads(cli("judge", "zebra runs", "quagga walks", "-m", ngram, "--json").out)
    assert (told["verdict"], told["same_tokens"]) == ("tie", True)
    assert told["unknown"] == [["zebra", "runs"], ["quagga", "walks"]]
    shown = cli("judge", "the cat sleeps", "zebra runs", "-m", ngram, "--unit", "nats").out
    assert "bits" not in shown
    assert "zebra (<unk>)" in shown


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.csv", "item,good,bad\n1,He left.,Him left.\n1,She left.,Her left.\n"),
        ("long.csv", "item,condition,text\n1,good,He left.\n1,bad,Him left.\n2,good,She left.\n"),
        (
            "suite.toml",
            'name = "s"\npredictions = ["(3;%a%) < (1;%b%)"]\n[[items]]\na = ["It"]\nb = ["Its"]\n',
        ),
        ("rated.csv", "text,rating\nHe left.,6\nHim left.,low\n"),
    ],
)
def test_what_a_run_refuses_data_check_does_not_pass(
    cli: Cli, tiny_model: Path, tmp_path: Path, name: str, content: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert cli("run", path, "-m", tiny_model, "-o", tmp_path / "run").code == 2
    assert cli("stimuli", "check", path).code in (1, 2)


def test_what_data_check_finds_is_in_the_audit_of_a_run(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("good,bad\nHe left.,Him left.\nHe left.,Him left.\nShe  left.,She  left.\n")
    assert cli("stimuli", "check", path).code == 1
    said = cli("run", path, "-m", tiny_model, "-o", tmp_path / "run", "--no-report").err
    for finding in ("duplicate items: 1 of 3", "stray spaces: 2 of 6", "identical pairs: 1 of 3"):
        assert finding in said


def test_n_tokens_counts_what_was_scored(cli: Cli, pairs: Path, tiny_model: Path) -> None:
    texts = pairs.parent / "texts.txt"
    texts.write_text("The cats annoy Tim.\n")
    found = json.loads(
        cli(
            "surprisal",
            texts,
            "-m",
            tiny_model,
            "--by",
            "sentence",
            "--unit",
            "nats",
            "--bos",
            "none",
            "--json",
        ).out
    )
    out = run(cli, pairs, tiny_model, pairs.parent / "r", "--bos", "none", "--measure", "mean_lp")
    mean = pl.read_parquet(out / "scores.parquet")["value"][0]
    assert -found[0]["surprisal"] / found[0]["n_tokens"] == pytest.approx(mean, abs=1e-5)


@pytest.mark.slow
def test_the_context_regression_is_fitted_with_items_too(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "pairs.csv"
    rows = [
        f"{suite},The {noun}s {verb} it.,The {noun}s {verb}s it."
        for suite in ("one", "two")
        for noun in ("cat", "dog", "bird")
        for verb in ("see", "want")
    ]
    data.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    model = make_tiny_model(tmp_path / "wide", seed=1, window=1024)
    answer = cli("context", data, "-m", model, "--lengths", "0,20,40", "-o", tmp_path / "study", "-q")
    assert answer.code == 0, answer.err
    terms = pl.read_csv(tmp_path / "study" / "regressions.csv")
    assert {"context", "context (items repeated)"} <= set(terms["analysis"])
    repeated = terms.filter(analysis="context (items repeated)")
    assert all("item" in formula for formula in repeated["formula"])
