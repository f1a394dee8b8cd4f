"""What a run in half precision scores again, and that the rest has the verdicts of float32."""

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.contrasts import Contrast
from felicity.core.engine import NO_EXTRAS, EngineInfo, TokenExtras
from felicity.core.schemas import TOKENS
from felicity.design.requests import build_prompts, build_requests
from felicity.judge.contrasts import judge_contrasts
from felicity.measures.sentence import score_measures
from felicity.run import precision
from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.precision import RISK, Noise, Rescored
from felicity.run.rules import RULES, JudgingInput
from felicity.run.scoring import read_mixed
from felicity.run.steps import rescore_close_calls

FINE = 1e-4
CHOICE = Contrast(name="choice", better="c0", worse=tuple(f"c{place}" for place in range(1, 9)))
FIRST = Contrast(name="first", better="c0", worse=("c1",))
SECOND = Contrast(name="second", better="c2", worse=("c3",))


class Known:
    """An engine whose log-probabilities are known: one token a text, looked up."""

    def __init__(self, texts: list[str], values: np.ndarray, dtype: str) -> None:
        self.value = dict(zip(texts, values.ravel().tolist(), strict=True))
        self.info = EngineInfo(
            name=dtype,
            family="known",
            kind="left-to-right",
            weights=dtype,
            tokenizer="",
            policy={},
            dtype=dtype,
            parameters=0,
            vocabulary=1,
            window=None,
            noise=FINE,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        raise NotImplementedError

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        lists = {
            "tokens": [[text] for text in prompts["text"]],
            "start": [[0] for _ in prompts["text"]],
            "end": [[len(text)] for text in prompts["text"]],
            "logprob": [[self.value[text]] for text in prompts["text"]],
        }
        yield pl.DataFrame({"request": prompts["request"]} | lists, schema=TOKENS)


class Settling:
    """A run whose exact values, and what half precision adds to them, are arrays of items by conditions."""

    def __init__(self, exact: np.ndarray, shift: np.ndarray, contrasts: tuple[Contrast, ...]) -> None:
        self.exact, self.contrasts = exact.astype(np.float32), contrasts
        self.rough = (exact + shift).astype(np.float32)
        names = [(f"i{item}", f"c{place}") for item, place in np.ndindex(exact.shape)]
        texts = [f"{item} {condition}" for item, condition in names]
        columns = {"item": [n[0] for n in names], "condition": [n[1] for n in names], "text": texts}
        self.items = pl.DataFrame(columns).with_columns(suite=pl.lit("s"), phenomenon=pl.lit("p"))
        fine = Model(Known(texts, self.exact, "float32"), spec="", cache=False)
        rough = Known(texts, self.rough, "bfloat16")
        self.lm = Model(rough, spec="", cache=False, open_float32=lambda: fine)

    def rescore_doubtful(self, folder: Path) -> tuple[Rescored, pl.DataFrame]:
        """What was rescored, and the judgements of the run."""
        requests, contexts = build_requests(self.items)
        prompts = build_prompts(requests, contexts)
        self.lm.score_all(prompts)
        case = JudgingInput(
            items=self.items,
            requests=requests,
            measures=("lp",),
            noise=Noise(rough=1.0),
            contrasts=self.contrasts,
        )
        rule = RULES["contrast"]
        rescored, noise = rescore_close_calls(self.lm, RunFolder(folder), prompts, case, rule, seed=0)
        parts = list(read_mixed(self.lm.read, prompts, self.lm.in_float32.read, noise.exact))
        scores = score_measures(pl.concat(parts), ("lp",), noise=noise.of(requests["request"])).scores
        return rescored, judge_contrasts(self.items, requests, scores, self.contrasts)

    def margins(self, values: np.ndarray, contrast: Contrast) -> np.ndarray:
        """The better condition less the best of the worse ones, worked out here."""
        worse = [int(name[1:]) for name in contrast.worse]
        return np.asarray(values[:, int(contrast.better[1:])] - values[:, worse].max(axis=1), dtype=float)


@pytest.mark.parametrize(
    ("contrasts", "means"),
    [((CHOICE,), [2.0] + [0.0] * 8), ((FIRST, SECOND), [0.0, 0.0, 60.0, 0.0])],
    ids=["nine conditions", "two contrasts"],
)
def test_verdicts_are_those_of_float32_where_many_would_have_turned(
    contrasts: tuple[Contrast, ...], means: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "SAMPLE_LEAST", 20)
    rng = np.random.default_rng(3)
    # Log-probabilities are below 0.
    exact = rng.normal(means, 4.0, (300, len(means))) - 100
    run = Settling(exact, rng.normal(0, 0.3, exact.shape), contrasts)
    rescored, judged = run.rescore_doubtful(tmp_path)
    known = np.array([int(item[1:]) for item in rescored.exact_items])
    largest, turned = 0.0, 0
    for contrast in contrasts:
        rough, fine = run.margins(run.rough, contrast), run.margins(run.exact, contrast)
        largest = max(largest, float(np.abs(rough - fine)[known].max()))
        turned += int(((rough > 0) != (fine > 0)).sum())
        found = judged.filter(rule=contrast.name)
        assert found["item"].to_list() == [f"i{place}" for place in range(len(exact))]
        assert (found["passed"].to_numpy() == (fine > 0)).all()
    # A margin has two sentences, each of which may be off by the noise.
    assert 2 * rescored.largest == pytest.approx(largest, rel=1e-4)
    assert rescored.noise["noise"].max() > rescored.largest
    assert rescored.expected <= RISK
    assert turned > 0
    assert 20 < len(known) < 0.6 * len(exact)
