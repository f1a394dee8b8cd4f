"""Loading models of transformers: what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.engines.runtime import Compute, load_tokenizer, load_weights
from felicity.engines.sources import find_version, resolve_source
from felicity.run import open_model
from tests.conftest import Answer


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
    with pytest.raises(
        NotPossible,
        match=r"does not run unasked; read it, and if you trust it, allow it with --allow-code [0-9a-f]{64},",
    ):
        load_weights(resolve_source(str(folder)), "AutoModelForCausalLM", compute=Compute())


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n_embd": 10_000_000}, "much larger than its weights"),
        ({"n_positions": 1_000_000}, "much larger than its weights"),
        ({"n_embd": 64}, "asks for .* of .* values, but its files have"),
        ({"n_layer": 1}, "layers that config.json does not ask for"),
        ({"n_layer": 3}, "lack 12 weights"),
    ],
)
def test_sizes_that_the_files_cannot_fill_are_refused_before_a_model_is_built(
    folder: Path, fields: dict[str, int], said: str
) -> None:
    change(folder / "config.json", **fields)
    with pytest.raises(FelicityError, match=said):
        load_weights(resolve_source(str(folder)), "AutoModelForCausalLM", compute=Compute())


def test_a_longest_length_that_is_a_text_is_refused(folder: Path) -> None:
    change(folder / "tokenizer_config.json", model_max_length="512")
    with pytest.raises(BadInput, match="'model_max_length' is not a number"):
        load_tokenizer(folder, name="model")


def test_a_token_without_an_embedding_is_refused(folder: Path, cli: Callable[..., Answer]) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"] = {token: number + 1000 for token, number in content["model"]["vocab"].items()}
    path.write_text(json.dumps(content))
    for command in (("judge", "The cats annoy Tim.", "The cats annoys Tim."), ("fill", "The cats ___")):
        answer = cli(*command, "-m", folder)
        assert answer.code == 2, answer
        assert "but the model has 300 embeddings" in answer.err


OWN_CODE = """
from transformers import GPT2Config, GPT2LMHeadModel


class OwnConfig(GPT2Config):
    model_type = "own"


class OwnForCausalLM(GPT2LMHeadModel):
    config_class = OwnConfig
"""


@pytest.fixture
def own_code(folder: Path) -> Path:
    """A GPT-2 whose classes are in a module of its own."""
    (folder / "modeling_own.py").write_text(OWN_CODE)
    auto = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    change(folder / "config.json", model_type="own", architectures=["OwnForCausalLM"], auto_map=auto)
    return folder


def test_code_of_a_model_runs_if_its_very_version_is_allowed(own_code: Path, tiny_model: Path) -> None:
    texts = ["The cats annoy Tim.", "The cats annoys Tim."]
    version = find_version(resolve_source(str(own_code)))
    lm = open_model(str(own_code), allow_code=version, cache=False)
    expected = open_model(str(tiny_model), cache=False)
    assert lm.score(texts)["lp"].to_list() == pytest.approx(expected.score(texts)["lp"].to_list(), abs=1e-4)
    assert lm.info.notes["code"] == version
    assert lm.info.weights != expected.info.weights


def test_code_of_another_version_or_place_is_refused(own_code: Path, tiny_model: Path) -> None:
    version = find_version(resolve_source(str(own_code)))
    with pytest.raises(BadInput, match=f"is version {version}, not 0123"):
        open_model(str(own_code), allow_code="0123")
    (own_code / "modeling_own.py").write_text(OWN_CODE + "# changed\n")
    with pytest.raises(BadInput, match=f"not {version}; read it in"):
        open_model(str(own_code), allow_code=version)
    change(own_code / "config.json", auto_map={"AutoModelForCausalLM": "org/other--modeling_own.Own"})
    with pytest.raises(NotPossible, match="is in another repository, org/other"):
        open_model(str(own_code), allow_code=find_version(resolve_source(str(own_code))))
    with pytest.raises(BadInput, match="has no Python code of its own; omit --allow-code"):
        open_model(str(tiny_model), allow_code="0123")
