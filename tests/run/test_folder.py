"""A run folder is read only as it was finished; nothing outside it is taken for part of it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput
from felicity.core.files import clear_leftovers, replacing
from felicity.run.evaluate import read_run
from felicity.run.folder import RunFolder

PAIRS = "suite,good,bad\ns1,The cats annoy Tim.,The cats annoys Tim.\ns1,=1+1 left.,Him left.\n"


@pytest.fixture
def folder(tmp_path: Path, tiny_model: Path, empty_cache: Path) -> Path:
    """A finished run of two pairs."""
    (tmp_path / "pairs.csv").write_text(PAIRS)
    fe.evaluate(str(tmp_path / "pairs.csv"), fe.model(str(tiny_model)), out=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("name", ["openai:x", "http:/[x", "a[1]*?", "s3:/b"])
def test_the_folders_name_is_neither_an_address_nor_a_pattern(
    name: str, tmp_path: Path, tiny_model: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text(PAIRS)
    fe.evaluate("pairs.csv", fe.model(str(tiny_model)), out=name)
    assert fe.read_run(name)["judgements"].height == 2


def lower_first_score(path: Path) -> None:
    scores = pl.read_parquet(path / "scores.parquet")
    scores.with_columns(pl.col("value") - 1).write_parquet(path / "scores.parquet")


def edit_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"tiny-gpt2"', '"gpt2"'))


def unfinish(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"finished": None}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lower_first_score, "scores.parquet was changed"),
        (edit_manifest, "manifest.json was changed"),
        (unfinish, "was not finished"),
        (lambda path: (path / "audit.csv").unlink(), "audit.csv is missing"),
    ],
)
def test_an_altered_or_unfinished_run_is_refused_unless_told(
    folder: Path, change: Callable[[Path], None], said: str
) -> None:
    fe.read_run(folder)
    change(folder)
    with pytest.raises(BadInput, match=said):
        fe.read_run(folder)
    if "missing" not in said:
        assert fe.read_run(folder, check=False)["judgements"].height == 2


def test_a_finished_run_without_digests_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("digests", "digest"):
        del manifest[name]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match=r"manifest.json was changed since the run finished"):
        fe.read_run(folder)
    with pytest.raises(BadInput, match=r"manifest.json was changed since the run finished"):
        RunFolder(folder).refuse_changed_manifest(manifest)
    del manifest["finished"]
    RunFolder(folder).refuse_changed_manifest(manifest)


@pytest.mark.parametrize(
    "change", [{"model": []}, {"dataset": 3}, {"measures": "lp"}, {"measures": [1]}, {"options": None}]
)
def test_a_hand_edited_manifest_is_said(folder: Path, change: dict[str, object]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(BadInput, match="is damaged"):
        RunFolder(folder).read_manifest()


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.csv"
    (folder / "estimates.csv").rename(secret)
    (folder / "estimates.csv").symlink_to(secret)
    for use in (lambda: fe.read_run(folder), lambda: RunFolder(folder).prepare()):
        with pytest.raises(BadInput, match="a link out of the run folder"):
            use()


def test_a_run_that_is_linked_into_a_study_is_not_followed(folder: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    (study / "models").mkdir(parents=True)
    (study / "models" / "x").symlink_to(folder)
    for use in (
        lambda: RunFolder(study / "models" / "x").prepare(),
        lambda: fe.read_run(study / "models" / "x"),
    ):
        with pytest.raises(BadInput, match="a link out of the study folder"):
            use()
    (tmp_path / "linked").symlink_to(folder)
    assert fe.read_run(tmp_path / "linked")["judgements"].height == 2


def test_an_export_can_defuse_cells_that_a_spreadsheet_would_run(folder: Path, tmp_path: Path) -> None:
    read_run(folder).export(tmp_path / "safe", safe=True)
    read_run(folder).export(tmp_path / "plain")
    texts = {name: pl.read_csv(tmp_path / name / "items.csv")["text"].to_list() for name in ("safe", "plain")}
    assert texts["plain"][1] == "=1+1 left."
    assert texts["safe"][1] == "'=1+1 left."
    assert texts["safe"][0] == texts["plain"][0]


def test_what_a_killed_process_left_is_cleared_and_a_living_ones_file_is_not(tmp_path: Path) -> None:
    with replacing(tmp_path / "table.csv") as part:
        dead = part.with_name(part.name.replace(f"-{os.getpid()}.", "-4194305."))
        dead.write_text("half")
        clear_leftovers(tmp_path)
        assert part.exists()
        assert not dead.exists()


def test_a_resumed_run_tells_what_scheduler_scored_it(folder: Path, tmp_path: Path, tiny_model: Path) -> None:
    notes = fe.read_run(folder).manifest["model"]["notes"]
    assert notes["scheduler"] == "trie"
    again = fe.evaluate(str(tmp_path / "pairs.csv"), fe.model(str(tiny_model)), out=folder)
    assert again.manifest["scored"]["now"] == 0
    assert again.manifest["model"]["notes"] == notes


def test_a_run_is_not_taken_up_by_a_manifest_that_was_changed(
    folder: Path, tiny_model: Path, tmp_path: Path
) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"created": "2', '"created": "1'))
    with pytest.raises(BadInput, match=r"manifest\.json was changed since the run finished; remove it"):
        fe.evaluate(str(tmp_path / "pairs.csv"), fe.model(str(tiny_model)), out=folder)
    path.unlink()
    fe.evaluate(str(tmp_path / "pairs.csv"), fe.model(str(tiny_model)), out=folder)
    fe.read_run(folder)
