"""One bit flipped in what felicity stores is found, healed or refused; no result changes in silence."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import FelicityError
from felicity.engines.sources.model_cache import cache_model, refuse_damaged
from felicity.run.folder import RunFolder
from tests.attack import size
from tests.conftest import make_tiny_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
TEXTS = [f"The cats annoy Tim {number} times." for number in range(60)]
CLOSE = 1e-4  # what another batch may change


def flip(path: Path, rng: random.Random) -> tuple[int, int]:
    """Flip one bit of a file; gives the byte and the bit."""
    content = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))
    return place, bit


def test_a_flipped_bit_in_the_score_cache_changes_no_score(
    tiny_model: Path, empty_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lm = fe.model(str(tiny_model))
    before = lm.score(TEXTS)["lp"].to_list()
    engine = lm.engine
    lm.store.close()
    (path,) = (empty_cache / "scores").glob("*.sqlite")
    whole = path.read_bytes()
    rng = random.Random(1)
    refused = healed = 0
    for _ in range(size(250)):
        path.write_bytes(whole)
        where = flip(path, rng)
        capsys.readouterr()
        try:
            again = fe.model(str(tiny_model))
            again.engine = engine
            found = again.score(TEXTS)["lp"].to_list()
            again.store.close()
        except FelicityError:
            refused += 1
            continue
        assert found == pytest.approx(before, abs=CLOSE), where
        healed += "scored again" in capsys.readouterr().err
    assert healed + refused > 0


def test_a_flipped_bit_in_a_stored_model_is_refused(empty_cache: Path, tmp_path: Path) -> None:
    source = make_tiny_model(tmp_path / "source", seed=4, width=8, layers=1)

    def make(folder: Path) -> dict[str, object]:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        return {}

    folder = cache_model("model", make, recipe=1)
    refuse_damaged(folder)
    rng = random.Random(2)
    files = sorted(path for path in folder.iterdir() if path.name != "felicity.json")
    for _ in range(size(150)):
        path = rng.choice(files)
        whole = path.read_bytes()
        where = flip(path, rng)
        with pytest.raises(FelicityError, match=f"{path.name} is damaged"):
            refuse_damaged(folder)
        path.write_bytes(whole)
        assert where
    refuse_damaged(folder)


def test_a_flipped_bit_in_a_run_folder_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("suite,good,bad\n" + "".join(f"s,{text},{text[4:]}\n" for text in TEXTS))
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run")
    before = dict(run.tables)
    files = [path for path in sorted((tmp_path / "run").iterdir()) if path.is_file()]
    rng = random.Random(3)
    for _ in range(size(200)):
        path = rng.choice(files)
        whole = path.read_bytes()
        where = flip(path, rng)
        assert_refused_or_same(
            lambda: fe.read_run(tmp_path / "run"), run.manifest, before, (path.name, where)
        )
        path.write_bytes(whole)
    assert RunFolder(tmp_path / "run").read_manifest() == run.manifest


def test_a_flipped_bit_in_a_remembered_fact_changes_no_score(tiny_model: Path, empty_cache: Path) -> None:
    """The family of a folder, its tokenizer and the check of its engine are remembered; no score is here."""
    before = fe.model(str(tiny_model), cache=False).score(TEXTS)["lp"].to_list()
    fe.model(str(tiny_model), cache=False).score(TEXTS)
    kept = {path: path.read_bytes() for path in sorted(empty_cache.rglob("*")) if path.is_file()}
    assert len({path.parent for path in kept}) > 1
    rng = random.Random(4)
    for _ in range(size(100)):
        path = rng.choice(list(kept))
        where = flip(path, rng)
        found = fe.model(str(tiny_model), cache=False).score(TEXTS)["lp"].to_list()
        assert found == pytest.approx(before, abs=CLOSE), (path, where)
        for each, content in kept.items():
            each.write_bytes(content)


def assert_refused_or_same(
    read: Callable[[], fe.Run],
    manifest: dict[str, object],
    tables: dict[str, pl.DataFrame],
    where: object,
) -> None:
    """A flipped bit may be one that means nothing, as in the white space of JSON; then all is as it was."""
    try:
        found = read()
    except FelicityError:
        return
    assert found.manifest == manifest, where
    assert all(found[name].equals(tables[name]) for name in tables), where
