"""Models by their name on a hub: a small real server stands for the hub."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.sources.hub_server import COMMIT, GATED, Hub, serve_hub

# The hub's library reads its settings when it is imported, so each resolution is a process of its own.
RESOLVE = """
import json, sys
from felicity.core.errors import FelicityError
from felicity.engines.sources import list_models, resolve_source

steps = []
try:
    source = resolve_source(
        sys.argv[1],
        download=sys.argv[2] == "download",
        progress=lambda step, done, total: steps.append([step, done, total]),
    )
    answer = {
        "name": source.name,
        "folder": str(source.folder),
        "origin": source.origin,
        "details": source.details,
        "steps": steps,
        "listed": [[entry.spec, entry.origin] for entry in list_models()],
    }
except FelicityError as error:
    answer = {"error": str(error), "kind": type(error).__name__}
print(json.dumps(answer))
"""

Resolve = Callable[..., dict[str, Any]]


@pytest.fixture
def hub(tiny_model: Path, tmp_path: Path) -> Iterator[Hub]:
    """A hub with one model, among files that nobody needs."""
    folder = shutil.copytree(tiny_model, tmp_path / "hub" / "lab" / "tiny")
    for useless in ("onnx/model.onnx", "tf_model.h5", "model.fp16.safetensors", "pytorch_model.bin"):
        (folder / useless).parent.mkdir(exist_ok=True)
        (folder / useless).write_bytes(b"useless")
    with serve_hub(tmp_path / "hub") as server:
        yield server


@pytest.fixture
def resolve(hub: Hub, tmp_path: Path) -> Resolve:
    def call(
        spec: str, *, endpoint: str = hub.url, download: bool = True, **variables: str
    ) -> dict[str, Any]:
        unset = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "HTTP_PROXY", "http_proxy")
        environment = {name: value for name, value in os.environ.items() if name not in unset}
        environment |= {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
            "FELICITY_CACHE": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", RESOLVE, spec, "download" if download else "stay"],
            capture_output=True,
            text=True,
            env=environment | variables,
            check=True,
        )
        assert done.stderr == ""
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return call


def test_only_the_needed_files_are_fetched_once(hub: Hub, resolve: Resolve) -> None:
    first = resolve("lab/tiny")
    assert (first["name"], first["origin"]) == ("tiny", "hub")
    assert first["details"] == {"source": "lab/tiny", "revision": "main", "commit": COMMIT}
    assert sorted(set(hub.fetched)) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert first["listed"] == [["smollm2", "default"], ["lab/tiny", "hub"]]
    fetched = list(hub.fetched)
    assert resolve("lab/tiny")["folder"] == first["folder"]
    assert hub.fetched == fetched


def test_progress_ends_where_the_weights_end(resolve: Resolve, tiny_model: Path) -> None:
    steps = resolve("lab/tiny")["steps"]
    assert steps[-1][0] == "download lab/tiny"
    assert steps[-1][1] == steps[-1][2] >= (tiny_model / "model.safetensors").stat().st_size


def test_bin_weights_are_taken_where_there_are_no_safetensors(hub: Hub, resolve: Resolve) -> None:
    (hub.root / "lab" / "tiny" / "model.safetensors").unlink()
    assert "error" not in resolve("lab/tiny")
    assert "pytorch_model.bin" in hub.fetched


def test_what_was_fetched_serves_without_a_network(resolve: Resolve) -> None:
    there = resolve("lab/tiny")["folder"]
    assert resolve("lab/tiny", endpoint="http://127.0.0.1:9")["folder"] == there
    assert resolve("lab/tiny", HF_HUB_OFFLINE="1")["folder"] == there
    assert resolve("lab/tiny", download=False)["folder"] == there


@pytest.mark.parametrize("offline", [{"endpoint": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}])
def test_without_a_network_one_sentence_says_so(resolve: Resolve, offline: dict[str, str]) -> None:
    answer = resolve("lab/tiny", **offline)
    assert answer["error"].startswith("Cannot download the model 'lab/tiny' from the hub: ")
    assert answer["error"].count("\n") == 0


def test_nothing_is_fetched_where_the_caller_forbids_it(hub: Hub, resolve: Resolve) -> None:
    answer = resolve("lab/tiny", download=False)
    assert answer["error"].endswith("download it: felicity models get lab/tiny")
    assert hub.fetched == []


def test_a_name_the_hub_lacks_suggests_one_that_is_here(resolve: Resolve) -> None:
    resolve("lab/tiny")
    answer = resolve("lab/tinny")
    assert answer == {
        "error": "There is no model 'lab/tinny'; did you mean 'lab/tiny'?",
        "kind": "UnknownName",
    }


def test_a_name_no_hub_would_give_is_refused(resolve: Resolve) -> None:
    assert resolve("odd--name..git")["kind"] == "UnknownName"


def test_a_revision_can_be_asked_for(resolve: Resolve) -> None:
    assert resolve(f"lab/tiny@{COMMIT}")["details"]["revision"] == COMMIT
    assert "has no revision 'step7'" in resolve("lab/tiny@step7")["error"]


def test_a_gated_model_is_told_from_a_missing_one(resolve: Resolve) -> None:
    answer = resolve(GATED)
    assert "accepted its terms" in answer["error"]
    assert answer["kind"] == "NotPossible"


def test_a_repository_without_a_model_is_refused(hub: Hub, resolve: Resolve) -> None:
    (hub.root / "lab" / "data").mkdir()
    (hub.root / "lab" / "data" / "config.json").write_text("{}")
    assert "has no weights" in resolve("lab/data")["error"]


def test_a_fetch_that_was_cut_short_is_made_good_the_next_time(resolve: Resolve) -> None:
    folder = Path(resolve("lab/tiny")["folder"])
    (folder / "model.safetensors").unlink()
    assert "error" not in resolve("lab/tiny")
    assert (folder / "model.safetensors").is_file()
