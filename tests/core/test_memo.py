"""Facts in the cache are found again under their key only, and a damaged file is no fact."""

import random
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


def test_every_flipped_bit_is_found_and_the_file_forgotten(empty_cache: Path) -> None:
    key, fact = {"weights": "a"}, {"ratio": 2.5, "note": "é", "trie": True}
    remember("trials", key, fact)
    (file,) = (empty_cache / "trials").iterdir()
    whole = file.read_bytes()
    for place in range(8 * len(whole)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        file.write_bytes(bytes(content))
        assert recall("trials", key) is None, place
        assert not file.exists()
    remember("trials", key, fact)
    assert recall("trials", key) == fact


def test_bytes_cut_off_or_put_elsewhere_are_found(empty_cache: Path) -> None:
    remember("trials", 1, {"text": "ab" * 400})
    (file,) = (empty_cache / "trials").iterdir()
    whole, rng = file.read_bytes(), random.Random(5)
    for _ in range(200):
        first, second = sorted(rng.sample(range(len(whole) + 1), 2))
        file.write_bytes(whole[:first] + whole[second:])
        assert recall("trials", 1) is None


def test_a_fact_in_a_file_of_another_name_is_not_believed(empty_cache: Path) -> None:
    remember("trials", 1, {"ratio": 2.5})
    (file,) = (empty_cache / "trials").iterdir()
    content = file.read_bytes()
    remember("trials", 2, {"ratio": 7.0})
    (other,) = set((empty_cache / "trials").iterdir()) - {file}
    other.write_bytes(content)
    assert recall("trials", 2) is None
    assert recall("trials", 1) == {"ratio": 2.5}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "a file"
    place.write_text("", encoding="utf-8")
    monkeypatch.setenv("FELICITY_CACHE", str(place))
    remember("trials", 1, {"ratio": 2.5})
    assert recall("trials", 1) is None


def test_a_package_that_is_not_installed_has_an_empty_version() -> None:
    assert versions("no-such-package") == {"no-such-package": ""}
    assert versions("polars")["polars"]
