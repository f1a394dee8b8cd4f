"""Settings: one declaration for command, Python and record; every value checked."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.core.settings import (
    Data,
    argument,
    check_settings,
    find_other,
    list_options,
    option,
    record_settings,
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A toy."""

    dataset: Data = argument("What is scored.")
    size: int | None = option(None, "How many.", least=1)
    share: float = option(0.5, "How much.", least=0, most=1)
    names: tuple[str, ...] = option((), "Which; repeatable.", flag="--name")
    file: Path | None = option(None, "Where from.")
    kind: str = option("short", "How.", choices=("short", "long"))
    formula: str | None = option(None, "A regression.", analysis=True)


def test_values_become_those_of_the_fields() -> None:
    made = check_settings(Settings, {"dataset": "blimp", "names": "one", "file": "a.csv", "share": 1})
    assert (made.names, made.file, made.share, made.size) == (("one",), Path("a.csv"), 1.0, None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "The setting 'dataset' is missing; give it."),
        ({"dataset": "d", "size": 0}, "The setting 'size' is 0; it must be at least 1."),
        ({"dataset": "d", "share": 2}, "The setting 'share' is 2; it must be at most 1."),
        ({"dataset": "d", "size": "many"}, "The setting 'size' is 'many': input should be a valid integer"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        check_settings(Settings, given)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"dataset": "d", "sise": 3}, "did you mean 'size'"),
        ({"dataset": "d", "kind": "lang"}, "did you mean 'long'"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(given: dict[str, object], match: str) -> None:
    with pytest.raises(UnknownName, match=match):
        check_settings(Settings, given)


def test_a_record_can_be_read_back_and_a_frame_is_described() -> None:
    made = check_settings(Settings, {"dataset": "blimp", "names": ["one", "two"], "file": Path("a.csv")})
    assert check_settings(Settings, record_settings(made)) == made
    frame = check_settings(Settings, {"dataset": pl.DataFrame({"good": ["a"], "bad": ["b"]})})
    assert record_settings(frame)["dataset"] == "a frame of 1 rows"


def test_only_settings_that_affect_scores_make_another_study() -> None:
    old = record_settings(check_settings(Settings, {"dataset": "blimp"}))
    assert find_other(Settings, old, old | {"formula": "y ~ x"}) is None
    assert find_other(Settings, old, old | {"share": 0.25}) == "share"


def test_help_and_bounds_stand_with_the_field() -> None:
    _, about, kind = list_options(Settings)["size"]
    assert (about.help, about.least, kind) == ("How many.", 1, int | None)
