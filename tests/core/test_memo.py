"""Facts in the cache are found again under their key only, and a damaged file is no fact."""

from pathlib import Path

import pytest

from felicity.core.memo import recall, remember, versions


def test_a_fact_is_found_under_its_key_and_no_other(empty_cache: Path) -> None:
    remember("trials", {"weights": "a"}, {"ratio": 2.5})
    assert recall("trials", {"weights": "a"}) == {"ratio": 2.5}
    assert recall("trials", {"weights": "b"}) is None
    assert recall("others", {"weights": "a"}) is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"key": 1, "fact": {"ratio": 9}}', '{"key": {"weights": "a"}}']
)
def test_a_damaged_file_is_as_if_it_were_not_there(empty_cache: Path, content: str) -> None:
    remember("trials", {"weights": "a"}, {"ratio": 2.5})
    (file,) = (empty_cache / "trials").iterdir()
    file.write_text(content, encoding="utf-8")
    assert recall("trials", {"weights": "a"}) is None
    remember("trials", {"weights": "a"}, {"ratio": 3.0})
    assert recall("trials", {"weights": "a"}) == {"ratio": 3.0}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "a file"
    place.write_text("", encoding="utf-8")
    monkeypatch.setenv("FELICITY_CACHE", str(place))
    remember("trials", 1, {"ratio": 2.5})
    assert recall("trials", 1) is None


def test_a_package_that_is_not_installed_has_an_empty_version() -> None:
    assert versions("no-such-package") == {"no-such-package": ""}
    assert versions("polars")["polars"]
