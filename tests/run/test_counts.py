"""Counts are signed in every table, so that a difference of two of them may be negative."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.schemas import TOKENS
from felicity.run.surprisal import measure_surprisal, read_texts
from tests.conftest import Answer, make_tiny_model

Cli = Callable[..., Answer]
PAIRS = pl.DataFrame(
    {
        "good": ["The cats annoy Tim.", "No dog barks.", "She saw herself.", "The cat sleeps."],
        "bad": ["The cats annoys Tim here.", "No dog bark.", "She saw.", "The cat sleep."],
        "suite": ["a", "a", "b", "b"],
    }
)
# Lists of character offsets and the offsets of regions within an item: millions of numbers that are never
# negative and that felicity subtracts itself.
OFFSETS = ("start", "end", "regions")


def find_unsigned(table: pl.DataFrame) -> list[str]:
    """The columns that wrap around below 0."""
    return [name for name, dtype in table.schema.items() if "UInt" in str(dtype) and name not in OFFSETS]


def test_no_schema_counts_with_unsigned_numbers() -> None:
    found = [
        line.strip()
        for path in Path(fe.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pl.UInt" in line
    ]
    assert len(found) == 2, found
    assert all(line.startswith(("NUMBERS = ", "REGION = ")) for line in found), found


def test_the_bad_sentence_may_have_more_tokens_than_the_good_one(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    good, bad = (lm.score(PAIRS[side])["n_tokens"] for side in ("good", "bad"))
    sizes = [[len(row) for row in lm.tokens(PAIRS[side])["tokens"]] for side in ("good", "bad")]
    assert (good - bad).to_list() == [one - other for one, other in zip(*sizes, strict=True)]
    assert (good - bad).min() < 0  # type: ignore[operator]


def test_every_table_of_a_model_is_signed(tiny_model: Path, tmp_path: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    texts = PAIRS["good"].to_list()
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    tables = {
        "score": lm.score(texts),
        "tokens": lm.tokens(texts, rank=True, entropy=True, top=2),
        "words": lm.words(texts),
        "fill": lm.fill("The cat ___", k=3),
        "candidates": lm.score_candidates("The cat ___", ["sleeps"]),
        "generate": lm.generate("The cat", tokens=2),
    }
    for by in ("token", "word", "region", "sentence"):
        tables[by] = measure_surprisal(lm, read_texts(path), by=by, rank=by == "token")  # type: ignore[arg-type]
    assert {name: find_unsigned(table) for name, table in tables.items() if find_unsigned(table)} == {}


def test_every_table_of_a_run_is_signed_in_memory_and_on_disk(tiny_model: Path, tmp_path: Path) -> None:
    run = fe.evaluate(PAIRS, str(tiny_model), out=tmp_path / "run")
    assert {name: find_unsigned(table) for name, table in run.tables.items() if find_unsigned(table)} == {}
    for path in (tmp_path / "run").glob("*.parquet"):
        assert not find_unsigned(pl.read_parquet(path)), path


def test_a_run_of_an_older_version_is_read_with_signed_counts(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fe.evaluate(PAIRS, str(tiny_model), out=folder)
    items = pl.read_parquet(folder / "items.parquet")
    items.with_columns(pl.col("line").cast(pl.UInt32)).write_parquet(folder / "items.parquet")
    run = fe.read_run(folder, check=False)
    assert run["items"].schema["line"] == pl.Int64
    assert run["tokens"].schema["start"] == TOKENS["start"]


@pytest.mark.parametrize(
    "command",
    [
        (
            "context",
            "{pairs}",
            "-m",
            "{model}",
            "--lengths",
            "5",
            "--kind",
            "matched_acceptable",
            "--no-report",
        ),
        ("bias", "{pairs}", "-m", "{model}"),
        ("cloze", "{cloze}", "-m", "{model}"),
        ("acceptability", "{ratings}", "-m", "{model}"),
    ],
    ids=lambda command: command[0],
)
def test_every_table_of_a_study_is_signed(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    files = {
        "pairs": tmp_path / "pairs.csv",
        "cloze": tmp_path / "cloze.csv",
        "ratings": tmp_path / "rated.csv",
    }
    PAIRS.write_csv(files["pairs"])
    files["cloze"].write_text(
        "item,condition,context_text,text\n1,affirmative,A dog is a,dog\n1,negative,A dog is not a,dog\n"
    )
    rows = [
        f"{text},{rater},{1 + (place + len(rater)) % 4}\n"
        for place, text in enumerate(PAIRS["good"])
        for rater in ("a", "bb", "ccc")
    ]
    files["ratings"].write_text("text,rater,rating\n" + "".join(rows))
    out, model = tmp_path / "study", make_tiny_model(tmp_path / "tiny", seed=1, window=512)
    answer = cli(*(part.format(model=model, **files) for part in command), "-o", out, "-q")
    assert answer.code == 0, answer.err
    study = fe.read_study(out)
    assert study.tables
    assert {name: find_unsigned(table) for name, table in study.tables.items() if find_unsigned(table)} == {}
    for path in out.rglob("*.parquet"):
        assert not find_unsigned(pl.read_parquet(path)), path
