"""Loading models of transformers: what is refused."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from felicity.core.errors import NotPossible
from felicity.engines.runtime import Compute, load_weights
from felicity.engines.sources import resolve_source


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_not_a_number_is_refused_by_name(folder: Path, value: float) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["transformer.h.0.attn.c_attn.weight"][3, 5] = value
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(NotPossible, match=r"not a number \(transformer.h.0.attn.c_attn.weight\)"):
        load_weights(resolve_source(str(folder)), "AutoModelForCausalLM", compute=Compute())


def test_code_that_comes_with_a_model_is_not_run_and_nothing_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "evil.py").write_text("raise SystemExit('it was run')\n")
    config = json.loads((folder / "config.json").read_text())
    auto = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "evil", "auto_map": auto}))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question was asked"))
    with pytest.raises(NotPossible, match="which felicity never runs"):
        load_weights(resolve_source(str(folder)), "AutoModelForCausalLM", compute=Compute())
