"""Kept models are whole or absent: failures, kills, two makers at once, damage."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.engines.sources.model_cache import (
    cache_model,
    cached_models,
    is_complete,
    model_store,
    read_cache_record,
    refuse_damaged,
    verify_cached,
)

MAKER = """
import sys, time
from pathlib import Path
from felicity.engines.sources.model_cache import cache_model

def make(folder):
    (folder / "weights").write_text("half")
    print("halfway", flush=True)
    time.sleep(float(sys.argv[1]))
    (folder / "weights").write_text("whole")
    return {"maker": sys.argv[2]}

cache_model("model", make, recipe=1)
"""


def make_small(folder: Path) -> dict[str, Any]:
    (folder / "weights").write_text("whole")
    return {"maker": "here"}


def start_maker(seconds: float, name: str) -> subprocess.Popen[str]:
    """Another process that makes the model and is halfway when this returns."""
    command = [sys.executable, "-c", textwrap.dedent(MAKER), str(seconds), name]
    maker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    assert maker.stdout.readline() == "halfway\n"
    return maker


def test_a_model_is_made_once_and_remembered(empty_cache: Path) -> None:
    calls = []

    def make(folder: Path) -> dict[str, Any]:
        calls.append(folder)
        return make_small(folder)

    first = cache_model("model", make, recipe=1)
    second = cache_model("model", make, recipe=1)
    assert first == second == model_store() / "model"
    assert len(calls) == 1
    record = read_cache_record(first)
    # sha256 of "whole", from coreutils' sha256sum.
    digest = "5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099"
    assert record == {"maker": "here", "recipe": 1, "sizes": {"weights": 5}, "digests": {"weights": digest}}


def test_another_recipe_makes_it_again(empty_cache: Path) -> None:
    cache_model("model", make_small, recipe=1)
    cache_model("model", lambda folder: make_small(folder) | {"maker": "later"}, recipe=2)
    assert read_cache_record(model_store() / "model")["maker"] == "later"


def test_a_failure_leaves_nothing(empty_cache: Path) -> None:
    def fail(folder: Path) -> dict[str, Any]:
        (folder / "weights").write_text("half")
        raise FelicityError("the index gave another file")

    with pytest.raises(FelicityError, match="another file"):
        cache_model("model", fail, recipe=1)
    assert [path.name for path in model_store().iterdir()] == [".model.lock"]


@pytest.mark.parametrize("damage", ["truncated", "removed"])
def test_a_damaged_model_is_made_again(empty_cache: Path, damage: str) -> None:
    folder = cache_model("model", make_small, recipe=1)
    if damage == "truncated":
        (folder / "weights").write_text("who")
    else:
        (folder / "weights").unlink()
    assert not is_complete(folder)
    assert cached_models() == []
    cache_model("model", make_small, recipe=1)
    assert (folder / "weights").read_text() == "whole"


def test_a_model_with_one_flipped_bit_is_refused_and_named(empty_cache: Path) -> None:
    folder = cache_model("model", make_small, recipe=1)
    refuse_damaged(folder)
    (folder / "weights").write_text("whold")
    with pytest.raises(BadInput, match="weights is damaged"):
        refuse_damaged(folder)


def test_a_bit_that_the_disk_flipped_is_found_by_reading_again(empty_cache: Path) -> None:
    folder = cache_model("model", make_small, recipe=1)
    assert verify_cached(folder) == []
    (folder / "weights").write_text("whold")
    assert verify_cached(folder) == ["weights"]


def test_a_model_stored_without_digests_is_made_again(empty_cache: Path) -> None:
    folder = cache_model("model", make_small, recipe=1)
    record = read_cache_record(folder)
    (folder / "felicity.json").write_text(json.dumps({**record, "digests": None}))
    assert not is_complete(folder)
    cache_model("model", make_small, recipe=1)
    assert read_cache_record(folder) == record


def test_a_killed_maker_leaves_no_model_and_the_next_one_cleans_up(empty_cache: Path) -> None:
    maker = start_maker(60, "killed")
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    left = [path for path in model_store().iterdir() if path.is_dir()]
    assert len(left) == 1, "the dead maker's folder should still be there"
    assert left[0].name.startswith(".model.")
    assert cached_models() == []
    folder = cache_model("model", make_small, recipe=1)
    assert (folder / "weights").read_text() == "whole"
    assert sorted(path.name for path in model_store().iterdir()) == [".model.lock", "model"]


def test_the_second_of_two_makers_waits_and_takes_what_the_first_made(empty_cache: Path) -> None:
    maker = start_maker(1.0, "first")
    said = []

    def make(folder: Path) -> dict[str, Any]:
        raise AssertionError("made twice")

    folder = cache_model("model", make, recipe=1, progress=lambda step, done, total: said.append(step))
    assert maker.wait(timeout=10) == 0
    maker.communicate()
    assert read_cache_record(folder)["maker"] == "first"
    assert said == ["wait for the process that builds model"]


def test_threads_of_one_process_take_turns_too(empty_cache: Path) -> None:
    makers = []

    def make(folder: Path) -> dict[str, Any]:
        makers.append(threading.get_ident())
        time.sleep(0.2)
        return make_small(folder)

    threads = [
        threading.Thread(target=cache_model, args=("model", make), kwargs={"recipe": 1}) for _ in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(makers) == 1


def test_a_disk_without_room_is_said_before_the_work_begins(empty_cache: Path) -> None:
    def make(folder: Path) -> dict[str, Any]:
        raise AssertionError("began without room")

    with pytest.raises(FelicityError, match=r"needs 1,000,000,000 MB and .* MB are free"):
        cache_model("model", make, recipe=1, needs=10**15)


def test_a_cache_that_is_a_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "file"))
    with pytest.raises(FelicityError, match=r"Cannot write .*not a directory"):
        cache_model("model", make_small, recipe=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_may_not_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FelicityError, match="permission denied"):
        cache_model("model", make_small, recipe=1)


def test_files_are_readable_by_whoever_may_read_the_folder(empty_cache: Path) -> None:
    def make(folder: Path) -> dict[str, Any]:
        (folder / "weights").touch(mode=0o600)
        return {}

    folder = cache_model("model", make, recipe=1)
    assert (folder / "weights").stat().st_mode == (folder / "felicity.json").stat().st_mode


def test_a_record_that_is_no_json_object_counts_as_none(empty_cache: Path) -> None:
    folder = cache_model("model", make_small, recipe=1)
    for text in ("[]", "{", json.dumps({"recipe": 1, "sizes": 3})):
        (folder / "felicity.json").write_text(text)
        assert not is_complete(folder)
