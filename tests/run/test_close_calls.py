"""Whether a verdict called stable in float32 is that of float64, in models whose rounding errors vary."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.data import read_dataset
from felicity.run.evaluate import read_run
from felicity.run.model import POSSIBLE_ERROR, Model, open_model
from felicity.run.prompts import build_text_prompts
from tests.conftest import Answer

Cli = Callable[..., Answer]
# SmolLM2 is off by ten times as much on these as on most sentences.
ILL_CONDITIONED = (
    "Universities figure out what those drivers that reunite arrive at.",
    "Universities figure out that those drivers that reunite arrive at.",
    "Roger had left the room.",
    "Roger have left the room.",
)


def sum_in_float64(lm: Model, texts: list[str]) -> np.ndarray:
    """The log-probabilities of texts as transformers computes them in float64, one text at a time."""
    import torch
    from transformers import AutoModelForCausalLM

    from felicity.engines.sources import resolve_source

    model = AutoModelForCausalLM.from_pretrained(resolve_source(lm.spec).folder, dtype=torch.float64).eval()
    encoded = lm.engine.encoder.encode(build_text_prompts(texts, None))  # type: ignore[attr-defined]
    sums = []
    with torch.inference_mode():
        for begin, end in zip(encoded.bounds[:-1], encoded.bounds[1:], strict=True):
            ids = torch.from_numpy(encoded.ids[begin:end].astype(np.int64))[None]
            logprobs = model(ids).logits[0].log_softmax(-1)
            each = logprobs[torch.arange(end - begin - 1), ids[0, 1:]].numpy()
            sums.append(each[encoded.wanted[begin + 1 : end]].sum())
    return np.array(sums)


def pair_neighbours(lm: Model, texts: list[str], path: Path) -> Path:
    """A file of pairs as close as these texts allow: each sentence with the next less probable one."""
    ordered = lm.score(texts).sort("lp")["text"].to_list()
    rows = {"good": ordered[1:], "bad": ordered[:-1]}
    pl.DataFrame(rows).write_csv(path)
    return path


def check_against_float64(cli: Cli, lm: Model, texts: list[str], folder: Path) -> int:
    """Run close pairs through the command line; returns how many were measured."""
    pairs = pair_neighbours(lm, texts, folder / "pairs.csv")
    answer = cli("run", pairs, "-m", lm.spec, "-o", folder / "run", "--no-report", "-q")
    assert answer.code == 0, answer.err
    run = read_run(folder / "run")
    sums = dict(zip(texts, sum_in_float64(lm, texts), strict=True))
    exact = run["items"].with_columns(pl.col("text").replace_strict(sums, return_dtype=pl.Float64))
    margins = dict(
        exact.pivot("condition", index="item", values="text")
        .select("item", pl.col("good") - pl.col("bad"))
        .iter_rows()
    )
    for row in run["judgements"].iter_rows(named=True):
        off = abs(row["margin"] - margins[row["item"]])
        assert off <= row["error"], row
        if row["stable"]:
            assert np.sign(row["margin"]) == np.sign(margins[row["item"]])
    return int(run.manifest["noise"]["measured"])


def test_errors_are_measured_where_a_verdict_could_turn(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    lm = open_model(str(tiny_model), cache=False)
    words = ("cat", "cats", "dog", "dogs", "Tim", "bark")
    texts = [f"The {one} sees {two} {three}." for one in words for two in words for three in words[:3]]
    assert check_against_float64(cli, lm, texts, tmp_path) > 0


@pytest.mark.slow
def test_what_smollm2_calls_stable_is_the_verdict_of_float64(
    cli: Cli, default_model: Model, tmp_path: Path
) -> None:
    texts = [*read_dataset("starter").items["text"].to_list()[::15], *ILL_CONDITIONED]
    assert check_against_float64(cli, default_model, texts, tmp_path) > 0


@pytest.mark.slow
def test_a_measured_error_covers_the_distance_from_float64(default_model: Model) -> None:
    texts = [*ILL_CONDITIONED, "The cats annoy Tim."]
    measured = default_model.measure_errors(build_text_prompts(texts, None))
    off = np.abs(default_model.score(texts)["lp"].to_numpy() - sum_in_float64(default_model, texts))
    # transformers normalizes and rotates in float32 even where the weights are float64: its sums of these
    # sentences were up to 1.1e-5 nats from felicity's in float64.
    assert np.all(off <= np.array(list(measured.values())) + 3e-5)
    assert off.max() < POSSIBLE_ERROR


def test_judge_measures_a_close_call(cli: Cli, tiny_model: Path) -> None:
    lm = open_model(str(tiny_model), cache=False)
    texts = [f"The {one} sees {two}." for one in ("cat", "dog", "Tim") for two in ("it", "her", "Tim", "me")]
    ordered = lm.score(texts).sort("lp")
    gap = ordered["lp"].diff().arg_min()
    assert gap is not None
    close = ordered["text"][gap], ordered["text"][gap - 1]
    told = json.loads(cli("judge", *close, "-m", tiny_model, "--json").out)
    exact = sum_in_float64(lm, list(close))
    assert told["stable"] == (abs(told["margin_nats"]) > 2e-5)
    assert np.sign(told["margin_nats"]) == np.sign(exact[0] - exact[1])
