"""What a study of reading refuses before anything is scored."""

from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.run import StudyFolder
from felicity.studies.reading.reading_plan import plan
from felicity.studies.reading.settings import ReadingSettings

WORDS = pl.DataFrame(
    {
        "word": ["The", "cat", "slept."] * 2,
        "sentence": ["1"] * 3 + ["2"] * 3,
        "position": [1, 2, 3] * 2,
        "self_paced": [300.0, 310.0, 340.0, 305.0, 320.0, 330.0],
        "frequency": [7.0, 5.0, 4.0] * 2,
        "bits": [3.0, 9.0, 7.0] * 2,
        "marked": [0, 1, 0] * 2,
    }
)


def plan_words(tmp_path: Path, **given: object) -> None:
    settings = ReadingSettings(words=WORDS, surprisal=("bits",), **given)  # type: ignore[arg-type]
    plan(settings, (), StudyFolder(tmp_path, {}))


def test_critical_words_without_conditions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--condition"):
        plan_words(tmp_path, critical="marked")


def test_fillers_of_words_without_effects_by_item_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such effects"):
        plan_words(tmp_path, fillers=WORDS.with_columns(reader=pl.lit("r1")))
