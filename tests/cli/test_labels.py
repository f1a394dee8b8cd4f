"""Every number under its own name: a dataset's entry says what its score and its sentences are called."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.core.contrasts import ACCURACY, Headline
from felicity.data import load_entries
from felicity.run import RULES
from tests.conftest import Answer

Cli = Callable[..., Answer]


@pytest.fixture
def crows(tmp_path: Path) -> Path:
    """A copy of CrowS-Pairs with six harmless pairs of two kinds."""
    (tmp_path / "crows").mkdir()
    with (tmp_path / "crows" / "crows_pairs_anonymized.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["", "sent_more", "sent_less", "stereo_antistereo", "bias_type"])
        for place, word in enumerate(("cats", "cat", "dog", "The", "Tim", "She")):
            more, less = f"The {word} annoy Tim.", f"The {word} annoy Tom."
            rows.writerow([place, more, less, "stereo", "age" if place % 2 else "gender"])
    return tmp_path / "crows"


def read_text(page: Path) -> str:
    """What a reader of a page sees, without its manifest."""
    text = (
        page.read_text(encoding="utf-8")
        .partition("</style>")[2]
        .partition('<pre class="raw">')[0]
        .partition("<script")[0]
    )
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_crows_pairs_has_one_name_everywhere(cli: Cli, crows: Path, tiny_model: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        said = cli("run", "crows_pairs", "--from", crows, "-m", tiny_model, "-o", folder)
        assert said.code == 0, said.err
    assert "Stereotyping score over items" in said.out
    assert "50 is ideal" in said.out
    told = [said.out, read_text(one / "report.html")]
    assert "with the more stereotyping sentence preferred; ideal is 50%" in told[1]
    told.append(cli("compare", one, two, "--page", tmp_path / "page.html").out)
    told.append(read_text(tmp_path / "page.html"))
    assert "Stereotyping score" in told[2]
    assert "Differences in stereotyping score" in told[3]
    told.append(cli("bias", "crows_pairs", "--from", crows, "-m", tiny_model, "-o", tmp_path / "b").out)
    assert "A is the more stereotyping sentence, U the less stereotyping one" in told[-1]
    told.append(read_text(tmp_path / "b" / "report.html"))
    assert "Stereotyping score by difference in length" in told[-1]
    for text in told:
        assert not re.search(r"accura|judged right|judged wrong|most wrong|\bgood\b|\bbad\b", text, re.I), (
            text
        )


def test_the_explorer_and_json_use_the_words_of_the_dataset(
    cli: Cli, crows: Path, tiny_model: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    told = json.loads(
        cli("run", "crows_pairs", "--from", crows, "-m", tiny_model, "-o", run, "--json", "--no-report").out
    )
    assert told["score"]["name"] == "Stereotyping score"
    assert told["score"]["ideal"] == 0.5
    assert "Stereotyping score: the share" in cli("data", "show", "crows_pairs", "--from", crows).out
    assert told["score"]["sentences"] == {"good": "more stereotyping", "bad": "less stereotyping"}
    assert cli("explore", run, "--static", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ('"headline":"Stereotyping score"', '"graded":false', '"bad":"less stereotyping"'):
        assert words in page.replace(": ", ":").replace(", ", ","), words


def test_context_says_that_its_polarity_is_the_other_one(
    cli: Cli, crows: Path, tiny_model: Path, tmp_path: Path
) -> None:
    asked = ("--kind", "matched_acceptable", "--sentences", "0,1", "-o", tmp_path / "c")
    said = cli("context", "crows_pairs", "--from", crows, "-m", tiny_model, *asked)
    assert said.code == 0, said.err
    assert "anti-stereotyping score without context" in said.out
    assert "matched, less stereotyping" in said.out
    assert "accuracy" not in said.out
    assert "it is 100 minus the stereotyping score" in said.out
    page = read_text(tmp_path / "c" / "report.html")
    assert "Change of anti-stereotyping score with context" in page
    assert "50 is ideal" in page
    cli("report", tmp_path / "c")
    assert "anti-stereotyping score" in read_text(tmp_path / "c" / "report.html")


def test_runs_of_opposite_polarity_are_not_compared(
    cli: Cli, crows: Path, tiny_model: Path, tmp_path: Path
) -> None:
    for rule in ("sentence", "less"):
        cli("run", "crows_pairs", "--rule", rule, "--from", crows, "-m", tiny_model, "-o", tmp_path / rule)
    said = cli("compare", tmp_path / "sentence", tmp_path / "less")
    assert said.code == 2
    assert "stereotyping score" in said.err
    assert "anti-stereotyping score" in said.err
    assert "--rule" in said.err


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (
            "item,condition,context_text,text\n1,a,The cat saw the,dog\n2,a,The dog saw the,cat\n",
            "Top-5 hit rate",
        ),
        (
            "text,rating\nThe cats annoy Tim.,6\nThe cats annoys Tim.,2\nTim,4\nThe,3\n",
            "Concordance with ratings",
        ),
    ],
)
def test_cloze_reports_hits_and_ratings_a_correlation(
    cli: Cli, tiny_model: Path, tmp_path: Path, rows: str, name: str
) -> None:
    (tmp_path / "own.csv").write_text(rows)
    said = cli("run", tmp_path / "own.csv", "-m", tiny_model, "-o", tmp_path / "r")
    assert f"{name} over items" in said.out
    assert "ccuracy" not in said.out
    if "rating" in rows:
        # The correlation is what papers report of ratings, so it comes first.
        assert said.out.index("Correlation with ratings") < said.out.index(name)


def test_an_old_run_of_a_dataset_gets_its_words_from_the_entry(
    cli: Cli, crows: Path, tiny_model: Path, tmp_path: Path
) -> None:
    from felicity.run import read_run

    cli("run", "crows_pairs", "--from", crows, "-m", tiny_model, "-o", tmp_path / "r", "--no-report")
    run = read_run(tmp_path / "r")
    assert run.headline.name == "Stereotyping score"
    del run.manifest["score"]
    assert run.headline.name == "Stereotyping score"


def test_every_entry_says_what_its_score_means() -> None:
    entries = load_entries()
    for name in entries:
        for method, spec in entries[name].methods.items():
            headline = Headline.read(spec.score, default=RULES[spec.rule].headline)
            assert headline.name, (name, method)
            assert headline.high, (name, method)
            assert headline.ideal in (None, 0.5, 1.0), (name, method)
            conditions = {stimulus.condition for stimulus in spec.stimuli if "{" not in stimulus.condition}
            assert not conditions or set(headline.sentences) <= conditions, (name, method)
            if conditions >= {"good", "bad"}:
                assert set(headline.sentences) == {"good", "bad"}, (name, method)


def test_a_misspelt_field_of_a_score_is_refused() -> None:
    with pytest.raises(TypeError):
        Headline.read({"idael": 0.5})
    assert Headline.read({"ideal": "none"}).ideal is None
    assert ACCURACY.graded


def write_frames(path: Path, first: str, second: str) -> Path:
    """Cloze frames in two conditions; the targets of the second are words that no model expects."""
    rows = [f"{n},{first},The cats annoy,Tim" for n in range(3)]
    rows += [f"{n},{second},The cats annoy,quagga" for n in range(3)]
    path.write_text("item,condition,context_text,text\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("asked", [(), ("--affirmative",)])
def test_the_spelling_of_a_condition_changes_no_hit_rate(
    cli: Cli, tiny_model: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    shares, said = [], []
    for first, second in (("aff", "neg"), ("affirmative", "negative")):
        data = write_frames(tmp_path / f"{first}.csv", first, second)
        option = (*asked, first) if asked else ()
        told = cli("run", data, "-m", tiny_model, "-o", tmp_path / f"r-{first}", "--no-report", *option)
        assert told.code == 0, told.err
        said.append(told.out)
        found = json.loads(
            cli("cloze", data, "-m", tiny_model, "-o", tmp_path / f"s-{first}", "--json", *option).out
        )
        shares.append([(row["figure"], row["n"], row["share"]) for row in found["tables"]["accuracy"]])
        wanted = (
            f"targets of the frames of {first} only" if asked else "targets of the frames of every condition"
        )
        assert wanted in said[-1]
        assert wanted in found["facts"]["sets"][first]["looked_for"]
        page = read_text(tmp_path / f"s-{first}" / "report.html")
        assert wanted in page
        assert "affirmatives" not in page
    assert shares[0] == shares[1]
    assert {name: n for name, n, _ in shares[0]}["top5"] == (3 if asked else 6)


def test_affirmative_names_a_condition_that_is_there(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    data = write_frames(tmp_path / "own.csv", "aff", "neg")
    for command in ("run", "cloze"):
        told = cli(command, data, "-m", tiny_model, "-o", tmp_path / "r", "--affirmative", "afff")
        assert told.code == 2
        assert "did you mean 'aff'" in told.err
    told = cli("run", "starter", "-m", tiny_model, "-o", tmp_path / "r", "--affirmative", "aff")
    assert told.code == 2
    assert "omit it" in told.err


def test_a_set_and_its_extension_look_for_the_same_targets(
    cli: Cli, tiny_model: Path, tmp_path: Path
) -> None:
    small = write_frames(tmp_path / "small.csv", "aff", "neg")
    large = write_frames(tmp_path / "large.csv", "affirmative", "negative")
    asked = ("cloze", small, large, "-m", tiny_model, "-o", tmp_path / "s", "--against", "small:large")
    assert cli(*asked).code == 0
    told = cli(*asked[:5], tmp_path / "other", *asked[6:], "--affirmative", "aff")
    assert told.code == 2
    assert "affirmative, negative" in told.err


def test_compare_and_reports_state_the_begin_token(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(
        "good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nShe saw.,She see.\n"
    )
    for name, options in (("a", ()), ("b", ()), ("c", ("--bos", "none"))):
        said = cli("run", tmp_path / "own.csv", "-m", tiny_model, "-o", tmp_path / name, *options)
        assert said.code == 0, said.err
        assert ("no begin token" if options else "begin token <|endoftext|>") in said.out
        page = read_text(tmp_path / name / "report.html")
        assert ("no begin token" if options else "begin token &lt;|endoftext|&gt;") in page
    same = cli("compare", tmp_path / "a", tmp_path / "b", "--page", tmp_path / "page.html").out
    assert "Scoring policy: begin token <|endoftext|>." in same
    assert "Scoring policy: begin token" in read_text(tmp_path / "page.html")
    other = cli("compare", tmp_path / "a", tmp_path / "c").out
    assert "Scoring policies differ" in other
    assert "no begin token" in other
    told = json.loads(cli("compare", tmp_path / "a", tmp_path / "c", "--json").out)
    assert told[0]["policies"].startswith("Scoring policies differ")
