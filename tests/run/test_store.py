import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.engine import EngineInfo
from felicity.core.errors import FelicityError, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.core.schemas import FILLERS, TOKENS
from felicity.run.store import DamagedRows, ScoreStore, _checksum, frame_keys, prompt_keys


def info(**changes: object) -> EngineInfo:
    fields: dict[str, object] = {
        "name": "m",
        "family": "causal",
        "kind": "left-to-right",
        "weights": "w",
        "tokenizer": "t",
        "policy": Policy().as_dict(),
        "dtype": "float32",
        "parameters": 1,
        "vocabulary": 1,
        "window": 8,
        "noise": 1e-4,
    }
    return EngineInfo(**(fields | changes))  # type: ignore[arg-type]


def prompts(*texts: str, context: str | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "request": [f"r{i}" for i in range(len(texts))],
            "context_text": [context] * len(texts),
            "text": texts,
        },
        schema_overrides={"context_text": pl.String},
    )


def tokens(*rows: tuple[str, list[str], list[float | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "request": [row[0] for row in rows],
            "tokens": [row[1] for row in rows],
            "start": [list(range(len(row[1]))) for row in rows],
            "end": [list(range(1, len(row[1]) + 1)) for row in rows],
            "logprob": [row[2] for row in rows],
        },
        schema=TOKENS,
    )


def test_what_is_added_comes_back_in_the_order_asked(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "s.sqlite", info())
    asked = prompts("one", "two")
    scored = tokens(("r0", ["o", "ne"], [-1.5, -2.25]), ("r1", ['"', "\n", "🙂"], [None, -1.0, -0.5]))
    store.add(prompt_keys(asked), scored)
    assert store.read(["r0", "r1"], prompt_keys(asked)).equals(scored)
    back = store.read(["x", "y", "z"], prompt_keys(asked)[::-1] + prompt_keys(asked)[:1])
    assert back["tokens"].to_list() == [['"', "\n", "🙂"], ["o", "ne"], ["o", "ne"]]


def test_the_first_score_of_a_text_stays(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "s.sqlite", info())
    key = prompt_keys(prompts("one"))
    store.add(key, tokens(("r0", ["one"], [-1.0])))
    store.add(key, tokens(("r0", ["one"], [-9.0])))
    assert store.read(["r0"], key)["logprob"].to_list() == [[-1.0]]


def test_the_context_is_part_of_the_key_and_no_context_is_an_empty_one() -> None:
    keys = {prompt_keys(prompts("one"))[0], prompt_keys(prompts("one", context="Before."))[0]}
    assert len(keys) == 2
    assert prompt_keys(prompts("one", context=""))[0] in keys
    assert prompt_keys(prompts("b", context="a")) != prompt_keys(prompts("", context="ab"))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": "other"},
        {"tokenizer": "other"},
        {"policy": Policy(bos="none").as_dict()},
        {"dtype": "bfloat16"},
    ],
)
def test_another_model_policy_or_dtype_never_shares_scores(
    own_cache: Path, change: dict[str, object]
) -> None:
    key = prompt_keys(prompts(str(change)))
    ScoreStore.shared(info()).add(key, tokens(("r0", ["one"], [-1.0])))
    assert ScoreStore.shared(info()).has(key) == set(key)
    assert ScoreStore.shared(info(**change)).has(key) == set()


def test_scores_of_another_version_of_the_scoring_code_are_not_shared() -> None:
    assert info(scoring=2).key != info().key
    # The key of version 1 is that of releases which had no version, so their scores stay readable.
    assert info().key == fingerprint(["causal", "left-to-right", "w", "t", Policy().as_dict(), "float32"])


def test_the_name_alone_does_not_part_two_models() -> None:
    assert info(name="a").key == info(name="b").key


def test_words_for_a_frame_come_back_as_they_were_and_by_their_number(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "s.sqlite", info())
    frames = ["A ___.", 'Say "\u2026" ___.']
    rows = [(frames[0], 1, "cat", "\u0120cat", -0.1 - 0.2, 0), (frames[0], 2, "dog", "\u0120dog", -2.5, 3)]
    rows += [(frames[1], 1, "\U0001f642", '"', -1e-17, 1)]
    fillers = pl.DataFrame(rows, schema=FILLERS, orient="row")
    keys = frame_keys(frames, k=2)
    store.add_fillers(keys, frames, fillers)
    store.close()
    again = ScoreStore(tmp_path / "s.sqlite", info())
    assert again.read_fillers(keys, frames).equals(fillers)
    assert again.read_fillers(keys[::-1], frames[::-1])["filler"].to_list() == ["\U0001f642", "cat", "dog"]
    assert again.has_fillers([*keys, *frame_keys(frames, k=3)]) == set(keys)


def change(path: Path, statement: str, *values: object) -> None:
    """What damage does to a file, done with SQL."""
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement, values).rowcount


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("logprob", np.array([-1.5, -2.375], "<f4").tobytes()),
        ("logprob", np.array([-1.5], "<f4").tobytes()),
        ("start", np.array([0, 2], "<u4").tobytes()),
        ("tokens", '["o", "n"]'),
        ("tokens", '["o", '),
        ("tokens", b"\xff\xfe"),
        ("tokens", 3),
    ],
)
def test_a_changed_row_is_found_when_it_is_read(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "s.sqlite"
    keys = prompt_keys(prompts("one", "two"))
    store = ScoreStore(path, info())
    store.add(keys, tokens(("r0", ["o", "ne"], [-1.5, -2.25]), ("r1", ["two"], [-1.0])))
    change(path, f"UPDATE score SET {column} = ? WHERE key = ?", value, keys[0])
    with pytest.raises(DamagedRows) as found:
        store.read(["r0", "r1"], keys)
    assert found.value.keys == {keys[0]}
    store.remove(found.value.keys)
    assert store.has(keys) == {keys[1]}


def test_a_row_that_is_there_already_stays_and_keeps_its_checksum(tmp_path: Path) -> None:
    keys = prompt_keys(prompts("one"))
    store, other = ScoreStore(tmp_path / "s.sqlite", info()), ScoreStore(tmp_path / "s.sqlite", info())
    store.add(keys, tokens(("r0", ["one"], [-1.0])))
    # Scored again in another batch, it differs by rounding in float32, so that its checksum would differ.
    near = float(np.nextafter(np.float32(-1.0), np.float32(-2.0)))
    assert near != -1.0
    other.add(keys, tokens(("r0", ["one"], [near])))
    assert other.read(["r0"], keys)["logprob"].to_list() == [[-1.0]]


def test_a_row_without_a_checksum_is_damage(tmp_path: Path) -> None:
    keys = prompt_keys(prompts("one"))
    store = ScoreStore(tmp_path / "s.sqlite", info())
    store.add(keys, tokens(("r0", ["one"], [-1.0])))
    change(tmp_path / "s.sqlite", "DELETE FROM checksum")
    with pytest.raises(DamagedRows):
        store.read(["r0"], keys)


@pytest.mark.parametrize("value", [0.5, 3e38])
def test_a_log_probability_above_zero_is_damage_even_with_its_checksum(tmp_path: Path, value: float) -> None:
    keys = prompt_keys(prompts("one"))
    store = ScoreStore(tmp_path / "s.sqlite", info())
    store.add(keys, tokens(("r0", ["one"], [-1.0])))
    change(tmp_path / "s.sqlite", "UPDATE score SET logprob = ?", np.array([value], "<f4").tobytes())
    with sqlite3.connect(tmp_path / "s.sqlite") as database:
        row = database.execute("SELECT key, tokens, start, end, logprob FROM score").fetchone()
        database.execute("UPDATE checksum SET digest = ?", [_checksum(row)])
    database.close()
    with pytest.raises(DamagedRows):
        store.read(["r0"], keys)


def test_a_model_that_gives_a_log_probability_above_zero_is_not_believed(tmp_path: Path) -> None:
    store = ScoreStore(tmp_path / "s.sqlite", info())
    with pytest.raises(NotPossible, match="above 0"):
        store.add(prompt_keys(prompts("one")), tokens(("r0", ["one"], [0.5])))


def test_changed_words_for_a_frame_are_found_when_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = ScoreStore(path, info())
    fillers = pl.DataFrame([("A ___.", 1, "cat", "cat", -1.0, 0)], schema=FILLERS, orient="row")
    keys = frame_keys(["A ___."], k=1)
    store.add_fillers(keys, ["A ___."], fillers)
    change(path, "UPDATE filler SET fillers = replace(fillers, 'cat', 'cap')")
    with pytest.raises(DamagedRows):
        store.read_fillers(keys, ["A ___."])


def test_damaged_scores_are_scored_again_and_that_is_said_once(
    tiny_model: Path, empty_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["The cats annoy Tim.", "She saw herself."]
    before = fe.model(str(tiny_model)).score(texts)
    (path,) = (empty_cache / "scores").iterdir()
    change(path, "UPDATE score SET logprob = zeroblob(length(logprob))")
    lm = fe.model(str(tiny_model))
    capsys.readouterr()
    for _ in range(2):
        assert lm.score(texts)["lp"].to_list() == pytest.approx(before["lp"].to_list(), abs=1e-4)
    assert capsys.readouterr().err.count("scored again") == 1


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(FelicityError, match=r"Cannot use the score cache .*s.sqlite"):
        ScoreStore(path, info())
