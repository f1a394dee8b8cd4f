"""Half precision reaches the verdicts of float32, and says what that took."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.engines.runtime.devices import ISA, choose_dtype, prepare_dtype
from felicity.run.precision import draw_error_sample, fit_tail, measure_spreads, rescore_doubtful


class Simulated:
    """Margins that half precision shifts by known amounts; counts what is scored again."""

    def __init__(self, margin: np.ndarray, shift: np.ndarray) -> None:
        self.items = pl.Series("item", [f"i{place}" for place in range(len(margin))])
        self.spreads = pl.DataFrame({"item": self.items, "spread": 1.0, "group": "shared"})
        self.margin, self.shift = margin, shift
        self.exact: set[str] = set()

    def judge(self, exact_items: pl.Series, *, noise: float | np.ndarray) -> pl.DataFrame:
        exact = self.items.is_in(exact_items.implode()).to_numpy()
        margin = np.where(exact, self.margin, self.margin + self.shift)
        error = np.where(exact, 2e-4, 2 * noise)
        columns = {"item": self.items, "measure": "lp", "rule": "pair", "margin": margin, "error": error}
        return pl.DataFrame(columns).with_columns(stable=pl.Series(np.abs(margin) > error))

    def score_exactly(self, items: pl.Series, turn: int) -> None:
        assert not self.exact & set(items)
        self.exact |= set(items)

    def rescore_doubtful(self) -> pl.DataFrame:
        rescored = rescore_doubtful(self.spreads, self.judge, self.score_exactly, least=1e-4, seed=0)
        assert set(rescored.exact_items) == self.exact
        noise = dict(rescored.noise.iter_rows())
        assert noise.keys() == set(self.items) - self.exact
        return self.judge(rescored.exact_items, noise=np.array([noise.get(name, 0.0) for name in self.items]))


def test_verdicts_are_those_of_float32_on_every_item_though_hundreds_would_have_turned() -> None:
    rng = np.random.default_rng(1)
    run = Simulated(rng.normal(0, 8, 20_000), rng.normal(0, 0.3, 20_000))
    turned = ((run.margin + run.shift > 0) != (run.margin > 0)).sum()
    assert turned > 100
    judged = run.rescore_doubtful()
    assert ((judged["margin"].to_numpy() > 0) == (run.margin > 0)).all()
    assert len(run.exact) < 0.4 * len(run.items)


def test_a_rare_group_is_sampled_as_well_and_a_small_one_whole() -> None:
    groups = pl.Series("group", ["shared"] * 3_000 + ["apart"] * 200 + ["few"] * 7)
    spreads = pl.DataFrame({"item": [f"i{place}" for place in range(len(groups))], "group": groups})
    sample = draw_error_sample(spreads, seed=4)
    drawn = spreads.filter(pl.col("item").is_in(sample.implode()))
    assert drawn["item"].to_list() == sample.to_list()
    assert dict(drawn["group"].value_counts().iter_rows()) == {"shared": 30, "apart": 25, "few": 7}
    assert draw_error_sample(spreads, seed=4).to_list() == sample.to_list()
    assert draw_error_sample(spreads.clear(), seed=4).is_empty()


def draw_shifts(kind: str, margin: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shifts whose tail is the one fitted (laplace), a lighter one (normal), a heavier one (student), or
    normal ones of many widths, the wider the larger the margin (mixed): where the closest items say too
    little of the others.
    """
    if kind == "laplace":
        return rng.laplace(0, 0.2, len(margin))
    if kind == "normal":
        return rng.normal(0, 0.25, len(margin))
    if kind == "student":
        return 0.2 * rng.standard_t(5, len(margin))
    width = 0.1 * np.sqrt(rng.integers(1, 10, len(margin)) + np.minimum(np.abs(margin), 8))
    return rng.normal(0, width)


@pytest.mark.parametrize("kind", ["laplace", "normal", "student", "mixed"])
def test_the_expected_number_of_differing_verdicts_is_within_the_stated_risk(kind: str) -> None:
    """60 runs of 3,000 items; each is expected to have RISK differing verdicts at most.

    60 * 0.05 = 3 are expected; a Poisson variable of mean 3 exceeds 8 in four runs of a thousand.
    """
    rng = np.random.default_rng(7)
    differing, turned, rescored = 0, 0, []
    for _ in range(60):
        margin = rng.normal(0, 6, 3000)
        run = Simulated(margin, draw_shifts(kind, margin, rng))
        turned += int(((run.margin + run.shift > 0) != (run.margin > 0)).sum())
        judged = run.rescore_doubtful()
        differing += int(((judged["margin"].to_numpy() > 0) != (run.margin > 0)).sum())
        rescored.append(len(run.exact) / len(margin))
        assert judged["stable"].to_numpy()[~run.items.is_in(sorted(run.exact)).to_numpy()].all()
    assert turned > 60 * 20
    assert differing <= 8
    assert np.median(rescored) < 0.4


def test_items_are_scored_again_from_the_closest_outwards() -> None:
    rng = np.random.default_rng(2)
    run = Simulated(rng.normal(0, 8, 5000), rng.normal(0, 0.3, 5000))
    rounds: list[set[str]] = []
    score = run.score_exactly

    def keep_round(items: pl.Series, turn: int) -> None:
        assert turn == len(rounds)
        rounds.append(set(items))
        score(items, turn)

    run.score_exactly = keep_round  # type: ignore[method-assign]
    run.rescore_doubtful()
    size = np.abs(run.margin + run.shift)
    sizes = [[float(size[int(name[1:])]) for name in part] for part in rounds]
    assert len(rounds) > 2
    for closer, farther in pairwise(sizes[1:]):
        assert max(closer) <= min(farther)


def test_a_larger_shift_that_comes_to_light_widens_what_is_scored_again() -> None:
    rng = np.random.default_rng(4)
    margin, shift = rng.normal(0, 8, 4000), rng.normal(0, 0.1, 4000)
    calm = Simulated(margin, shift)
    calm.rescore_doubtful()
    close = np.abs(margin) < 0.3
    wild = Simulated(margin, np.where(close, 10 * shift, shift))
    wild.rescore_doubtful()
    assert len(wild.exact) > 1.5 * len(calm.exact)


def test_the_scale_of_the_tail_is_the_upper_limit_of_a_rate_of_events() -> None:
    """R: 2 * 20 * mean(x) / qchisq(0.05, 40) for 20 excesses of mean 1 is 1.508853."""
    sizes = np.concatenate([np.full(80, 0.5), 0.5 + np.linspace(0.05, 1.95, 20)])
    tail = fit_tail(sizes)
    assert tail.start == 0.5
    assert tail.scale == pytest.approx(40 / 26.50930, rel=1e-5)
    assert tail.exceed(np.array([0.4, 0.5])).tolist() == [1.0, 1.0]
    assert tail.exceed(np.array([0.5 + tail.scale]))[0] == pytest.approx(21 / 101 / np.e)


def test_too_few_shifts_say_nothing_of_a_tail() -> None:
    assert fit_tail(np.full(19, 0.1)).exceed(np.array([1e9])).tolist() == [1.0]


def test_a_group_of_wide_shifts_does_not_widen_what_is_scored_again_of_the_other() -> None:
    rng = np.random.default_rng(6)
    margin = rng.normal(0, 8, 6000)
    wide = np.arange(6000) % 10 == 0
    run = Simulated(margin, rng.normal(0, np.where(wide, 1.0, 0.1)))
    run.spreads = run.spreads.with_columns(group=pl.Series(np.where(wide, "apart", "shared")))
    judged = run.rescore_doubtful()
    assert ((judged["margin"].to_numpy() > 0) == (margin > 0)).all()
    exact = np.array([name in run.exact for name in run.items])
    assert exact[wide].mean() > 3 * exact[~wide].mean()


def test_the_spread_is_the_root_of_the_surprisal_that_sentences_do_not_share() -> None:
    requests = pl.DataFrame({"request": list("abcdef"), "item": list("111223")})
    prompts = pl.DataFrame({"request": list("abcdef"), "context_text": [None, None, None, "x", "y", None]})
    tokens = pl.DataFrame(
        {
            "request": list("abcdef"),
            "tokens": [["A", "B", "C"], ["A", "B", "D"], ["A", "E"], ["A", "B"], ["A", "C"], ["A"]],
            "logprob": [
                [-9.0, -1.0, -3.0],
                [-9.0, -1.0, -7.0],
                [-9.0, -4.0],
                [None, -2.0],
                [None, -2.0],
                [-5.0],
            ],
        }
    )
    found = measure_spreads(requests, prompts, [tokens[:2], tokens[2:]])
    assert found["item"].to_list() == ["1", "2", "3"]
    # 1 + 3, 1 + 7 and 4 behind the common A; everything behind different contexts; nothing of one sentence.
    assert found["spread"].to_list() == [4.0, 2.0, 1.0]
    assert found["group"].to_list() == ["shared", "apart", "shared"]


def test_pairs_of_equal_texts_do_not_make_the_others_look_safer() -> None:
    rng = np.random.default_rng(5)
    margin, shift = rng.normal(0, 8, 2000), rng.normal(0, 0.3, 2000)
    equal = np.zeros(2000)
    alone, among = Simulated(margin, shift), Simulated(np.r_[margin, equal], np.r_[shift, equal])
    alone.rescore_doubtful()
    judged = among.rescore_doubtful()
    assert ((judged["margin"].to_numpy()[:2000] > 0) == (margin > 0)).all()
    assert len([name for name in among.exact if int(name[1:]) < 2000]) > 0.8 * len(alone.exact)


def test_a_small_run_is_scored_twice_as_a_whole() -> None:
    run = Simulated(np.linspace(-9, 9, 20), np.full(20, 0.1))
    run.rescore_doubtful()
    assert len(run.exact) == 20


@pytest.mark.slow
def test_a_run_in_bfloat16_has_the_verdicts_of_float32(tiny_model: Path, tmp_path: Path) -> None:
    """In a process of its own, as a user would; torch is not there yet when the processor is tried."""
    table = tmp_path / "three.csv"
    names = ("cat", "dog", "Tim", "cats", "bird", "she")
    verbs = {"good": "annoys", "bare": "annoy", "past": "annoyed"}
    rows = [
        f"{one} {two},{condition},The {one} {verb} {two}."
        for one in names
        for two in names
        for condition, verb in verbs.items()
    ]
    rows += [f"level,{condition},She saw." for condition in verbs]
    table.write_text("\n".join(["item,condition,text", *rows]) + "\n", encoding="utf-8")
    # Few items and tiny margins: with the risk as it is, all of them would be scored again.
    few = "import sys; from felicity.run import precision as p; "
    few += "p.SAMPLE_LEAST, p.TAIL_LEAST, p.RISK = 20, 10, 2.0"
    program = [
        sys.executable,
        "-c",
        f"{few}; sys.argv[0] = 'felicity'; from felicity.cli.app import main; main()",
    ]
    program += ["run", str(table), "-m", str(tiny_model)]
    judged = {}
    for dtype in ("bfloat16", "float32"):
        folder = tmp_path / dtype
        options = ["--dtype", dtype, "-o", str(folder), "--measure", "lp", "--measure", "mean_lp"]
        done = subprocess.run(
            [*program, *options, "--no-report", "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        judged[dtype] = fe.read_run(folder)
        told = json.loads(done.stdout)["manifest"]
        assert told["model"]["dtype"] == dtype
        assert ("precision" in told) == (dtype == "bfloat16")
    both = judged["bfloat16"]["judgements"].join(
        judged["float32"]["judgements"], on=["item", "measure"], suffix="_exact"
    )
    assert both.height == judged["float32"]["judgements"].height
    assert both["passed"].to_list() == both["passed_exact"].to_list()
    precision = judged["bfloat16"].manifest["precision"]
    assert 20 == precision["sampled"] <= precision["rescored"] < precision["items"] == 37
    errors = judged["bfloat16"]["scores"].filter(pl.col("measure") == "lp")["error"]
    assert errors.min() == pytest.approx(1e-4)
    assert errors.max() == pytest.approx(precision["error_bound"])
    assert not list((tmp_path / "bfloat16").glob("pending*"))


def test_a_processor_that_dies_at_half_precision_is_noticed_before_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The child is asked for an operation that kills it, as an announced but missing instruction does."""
    import torch  # noqa: F401

    from felicity.core.errors import NotPossible

    monkeypatch.setattr(
        "felicity.engines.runtime.devices.PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    )
    with pytest.raises(NotPossible, match=f"torch crashes on bfloat16 products .* set {ISA}="):
        prepare_dtype("bfloat16", "cpu")


def test_float32_asks_nothing_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", "raise SystemExit(1)")
    before = os.environ.get(ISA)
    prepare_dtype("float32", "cpu")
    assert os.environ.get(ISA) == before


@pytest.mark.slow
def test_a_pair_too_close_to_call_is_judged_in_float32(tiny_model: Path, cli: Callable[..., object]) -> None:
    command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", str(tiny_model), "--json"]
    code = (
        f"import sys; sys.argv = ['felicity', *{[*command, '--dtype', 'bfloat16']!r}]; "
        "from felicity.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dtype"] == "float32"


class TestAuto:
    """`--dtype auto` takes half precision where its products are fast enough, and says why."""

    @pytest.mark.parametrize(("speedup", "taken"), [(2.4, "bfloat16"), (1.5, "bfloat16"), (1.2, "float32")])
    def test_the_speed_of_products_decides(
        self, monkeypatch: pytest.MonkeyPatch, empty_cache: Path, speedup: float, taken: str
    ) -> None:
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", f"print({speedup})")
        choice = choose_dtype("auto", "cpu")
        assert (choice.asked, choice.taken, choice.speedup) == ("auto", taken, speedup)
        assert f"{speedup:.2f} times as fast" in choice.why

    def test_the_machine_is_measured_once(self, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
        count = empty_cache.parent / "count"
        program = f"open({str(count)!r}, 'a').write('x'); print(2.0)"
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", program)
        assert [choose_dtype("auto", "cpu").speedup for _ in range(3)] == [2.0] * 3
        assert count.read_text() == "x"

    def test_a_processor_that_cannot_is_given_float32(
        self, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
    ) -> None:
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", "raise SystemExit(1)")
        choice = choose_dtype("auto", "cpu")
        assert choice.taken == "float32"
        assert "crashes on bfloat16" in choice.why or "do not run" in choice.why

    @pytest.mark.parametrize(("speedup", "dtype"), [(2.4, "bfloat16"), (0.5, "float32")])
    def test_a_run_tells_what_was_chosen_and_why(
        self,
        tiny_model: Path,
        monkeypatch: pytest.MonkeyPatch,
        empty_cache: Path,
        tmp_path: Path,
        speedup: float,
        dtype: str,
    ) -> None:
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", f"print({speedup})")
        lm = fe.model(str(tiny_model), dtype="auto")
        assert lm.info.dtype == "float32"
        pairs = tmp_path / "pairs.csv"
        pairs.write_text("good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nShe saw.,She see.\n")
        run = fe.evaluate(str(pairs), lm, out=tmp_path / "run")
        assert run.manifest["model"]["dtype"] == dtype
        assert run.manifest["dtype"]["taken"] == dtype
        assert f"{speedup:.2f} times as fast" in run.manifest["dtype"]["why"]
        assert ("precision" in run.manifest) == (dtype == "bfloat16")

    def test_a_rule_that_half_precision_cannot_serve_is_judged_in_float32(
        self, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
    ) -> None:
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", "print(3.0)")
        lm = fe.model(str(tiny_model), dtype="auto")
        exact = lm.choose_precision(exact=True)
        assert exact.info.dtype == "float32"
        assert exact.dtype is not None
        assert "more than one margin" in exact.dtype.why

    def test_half_precision_that_saves_nothing_says_so(
        self,
        tiny_model: Path,
        monkeypatch: pytest.MonkeyPatch,
        empty_cache: Path,
        cli: Callable[..., Any],
    ) -> None:
        monkeypatch.setattr("felicity.engines.runtime.devices.PROBE", "print(0.5)")
        command = ["judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", tiny_model, "--dtype"]
        assert "0.50 times the speed of float32's" in cli(*command, "bfloat16").err
        assert "times the speed" not in cli(*command, "auto").err
