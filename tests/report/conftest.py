"""A synthetic run, built from a seed: real tables and real arithmetic, invented probabilities."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest

from felicity.core.schemas import AUDIT, CONTEXTS, ESTIMATES, ITEMS, JUDGEMENTS, REQUESTS, SCORES, TOKENS
from felicity.report import ReportInput

PHENOMENA = (
    "anaphor_agreement",
    "argument_structure",
    "binding",
    "control_raising",
    "determiner_noun_agreement",
    "ellipsis",
    "filler_gap_dependency",
    "irregular_forms",
    "island_effects",
    "npi_licensing",
    "quantifiers",
    "subject_verb_agreement",
)
SUBJECTS = (
    "The cats",
    "Some senators",
    "The old teachers",
    "Most of the guests",
    "These unlikely candidates",
)
VERBS = (("annoy", "annoys"), ("praise", "praises"), ("understand", "understands"), ("see", "sees"))
OBJECTS = ("Tim", "the committee that met on Tuesday", "a waiter", "every new neighbour", "themselves")
PIECE = re.compile(r" ?[A-Za-z]{1,8}| ?[^A-Za-z\s]|\s")
MANIFEST: dict[str, Any] = {
    "felicity": "0.1.0",
    "created": "2026-01-31T09:30:00+00:00",
    "command": ["felicity", "run", "starter", "-m", "smollm2", "-o", "runs/starter-smollm2"],
    "dataset": {
        "name": "starter",
        "items": 0,
        "sha": "9f2c5d6e7a8b9c0d1e2f30415263748596a7b8c9d0e1f2031425364758697a8b",
    },
    "model": {
        "name": "smollm2",
        "family": "llama",
        "kind": "left-to-right",
        "weights": "3b7e1c9a5d2f48606172839405a6b7c8",
        "tokenizer": "77aa01bc55de41a8b0c3d2e1f0a99887",
        "policy": {
            "bos": "<|endoftext|>",
            "eos": "none",
            "join": " ",
            "seam": "offsets",
            "first": "skip",
            "casing": "keep",
            "overflow": "error",
        },
        "dtype": "float32",
        "parameters": 134515008,
        "vocabulary": 49152,
        "window": 8192,
        "noise": 0.0001,
    },
    "measures": ["lp"],
    "seed": 0,
    "versions": {"python": "3.11.9", "torch": "2.13.0", "transformers": "5.22.2", "polars": "2.1.0"},
    "platform": "Linux-6.1-x86_64",
}
CHECKS = (
    ("tokens_unscored", "Tokens that have nothing before them and so no probability."),
    ("tokens_across_boundary", "Tokens that hold the end of a context and the start of a text."),
    ("unknown_tokens", "Tokens outside the model's vocabulary."),
    ("identical_pairs", "Pairs whose two sentences are the same; always a tie."),
    ("unequal_token_length", "Pairs whose sentences differ in number of tokens, which sums punish."),
    ("over_long_inputs", "Inputs longer than the model's window."),
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sentences, and their log-probabilities where a test wants to choose them."""

    item: str
    good: str
    bad: str
    suite: str = "agreement"
    phenomenon: str = "agreement"
    good_logprob: Sequence[float | None] | None = None
    bad_logprob: Sequence[float | None] | None = None
    context: str | None = None


def cut(text: str) -> list[tuple[str, int, int]]:
    """Tokens of a text with a byte-level tokenizer's looks: a space belongs to what follows it."""
    return [(found[0].replace(" ", "Ġ"), found.start(), found.end()) for found in PIECE.finditer(text)]


def draw_pairs(*, suites: int, per_suite: int, seed: int = 0) -> list[Pair]:
    """Pairs of varied sentences whose suites differ in difficulty."""
    rng = np.random.default_rng(seed)
    pairs = []
    for suite in range(suites):
        phenomenon = PHENOMENA[suite * len(PHENOMENA) // max(suites, len(PHENOMENA)) % len(PHENOMENA)]
        lift = rng.normal(2.2, 2.0)
        for place in range(per_suite):
            subject, object_ = rng.choice(SUBJECTS), rng.choice(OBJECTS)
            right, wrong = VERBS[rng.integers(len(VERBS))]
            good, bad = f"{subject} {right} {object_}.", f"{subject} {wrong} {object_}."
            good_logprob = -rng.gamma(1.2, 2.2, len(cut(good)))
            bad_logprob = np.resize(good_logprob, len(cut(bad)))
            differs = next(
                place
                for place, (one, other) in enumerate(zip(cut(good), cut(bad), strict=False))
                if one[0] != other[0]
            )
            bad_logprob[differs] -= lift + rng.normal(0, 3.0)
            bad_logprob[differs + 1 :] += rng.normal(0, 0.3, len(bad_logprob) - differs - 1)
            pairs.append(
                Pair(
                    item=f"{phenomenon}_{suite}/{place}",
                    good=good,
                    bad=bad,
                    suite=f"{phenomenon}_{suite}",
                    phenomenon=phenomenon,
                    good_logprob=np.minimum(good_logprob, -0.001).tolist(),
                    bad_logprob=np.minimum(bad_logprob, -0.001).tolist(),
                )
            )
    return pairs


def build_run(
    pairs: Sequence[Pair],
    *,
    measures: Sequence[str] = ("lp",),
    audit: bool = True,
    manifest: dict[str, Any] | None = None,
    seed: int = 0,
) -> ReportInput:
    """All tables of a run over these pairs."""
    rng = np.random.default_rng(seed)
    items, requests, tokens, scores, judgements = [], [], [], [], []
    for pair in pairs:
        values: dict[str, tuple[float, int]] = {}
        for condition in ("good", "bad"):
            text = getattr(pair, condition)
            request = f"{pair.item}#{condition}"
            pieces = cut(text)
            given = getattr(pair, f"{condition}_logprob")
            logprob = given if given is not None else (-rng.gamma(1.2, 2.2, len(pieces))).tolist()
            items.append((pair.item, pair.suite, pair.phenomenon, condition, text))
            requests.append((request, pair.item, condition, pair.context and f"c-{pair.item}", text))
            tokens.append(
                (
                    request,
                    *([list(column) for column in zip(*pieces, strict=True)] or [[], [], []]),
                    list(logprob),
                )
            )
            values[condition] = (sum(value for value in logprob if value is not None), len(pieces))
        for measure in measures:
            good, bad = (
                total / length if measure == "mean_lp" else total for total, length in values.values()
            )
            scores += [(f"{pair.item}#good", measure, good, 1e-4), (f"{pair.item}#bad", measure, bad, 1e-4)]
            margin = good - bad
            passed = 1.0 if margin > 0 else 0.0 if margin < 0 else 0.5
            judgements.append(
                (
                    pair.item,
                    pair.suite,
                    pair.phenomenon,
                    measure,
                    "good > bad",
                    passed,
                    margin,
                    abs(margin) > 2e-4,
                )
            )
    judged = pl.DataFrame(judgements, schema=JUDGEMENTS, orient="row")
    contexts = [(f"c-{pair.item}", pair.context) for pair in pairs if pair.context]
    return ReportInput(
        manifest=MANIFEST | {"measures": list(measures)} if manifest is None else manifest,
        items=pl.DataFrame(items, schema=ITEMS, orient="row"),
        requests=pl.DataFrame(requests, schema=REQUESTS, orient="row"),
        tokens=pl.DataFrame(tokens, schema=TOKENS, orient="row"),
        scores=pl.DataFrame(scores, schema=SCORES, orient="row"),
        judgements=judged,
        estimates=estimate(judged),
        audit=_audit(len(pairs)) if audit else pl.DataFrame(schema=AUDIT),
        contexts=pl.DataFrame(contexts, schema=CONTEXTS, orient="row"),
    )


def estimate(judged: pl.DataFrame) -> pl.DataFrame:
    """Means with plausible intervals: the report prints what it is given, whatever made it."""
    rows = []
    for measure in judged["measure"].unique(maintain_order=True):
        chosen = judged.filter(pl.col("measure") == measure)
        groups = [("overall", "all", chosen)]
        for level in ("phenomenon", "suite"):
            groups += [(level, name, part) for (name,), part in chosen.group_by(level, maintain_order=True)]
        for level, name, part in groups:
            rows.append(
                (
                    measure,
                    level,
                    name,
                    *_spread(part),
                    "Wilson over items" if level == "suite" else "Wilson over suites",
                )
            )
        means = [row[5] for row in rows if row[0] == measure and row[1] == "suite"]
        whole = rows[[row[:2] for row in rows].index((measure, "overall"))]
        middle, half = float(np.mean(means)), (whole[7] - whole[6]) / 2
        rows.append(
            (
                measure,
                "macro",
                "all",
                *whole[3:5],
                middle,
                max(0.0, middle - half),
                min(1.0, middle + half),
                *whole[8:],
            )
        )
    order = [name for name in ESTIMATES if name not in ("interval",)] + ["interval"]
    return pl.DataFrame(rows, schema={name: ESTIMATES[name] for name in order}, orient="row").select(
        *ESTIMATES
    )


def _spread(part: pl.DataFrame) -> tuple[int, int, float, float, float, int, int]:
    n, mean = part.height, float(part["passed"].mean())  # type: ignore[arg-type]
    half = 1.96 * float(np.sqrt(mean * (1 - mean) / n + 1 / (4 * n * n)))
    ties, unstable = int((part["passed"] == 0.5).sum()), int((~part["stable"]).sum())
    return n, part["suite"].n_unique(), mean, max(0.0, mean - half), min(1.0, mean + half), ties, unstable


def _audit(pairs: int) -> pl.DataFrame:
    counts = (0, 0, 0, 2, max(pairs // 7, 1), 0)
    rows = [
        (check, found, pairs, meaning, "agreement/3, agreement/9" if found else "")
        for (check, meaning), found in zip(CHECKS, counts, strict=True)
    ]
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


@pytest.fixture(scope="session")
def make_pair() -> type[Pair]:
    return Pair


@pytest.fixture(scope="session")
def make_run() -> Callable[..., ReportInput]:
    return build_run


@pytest.fixture(scope="session")
def starter_run() -> ReportInput:
    """Twelve phenomena of one suite each, 50 pairs in a suite, two measures."""
    return build_run(draw_pairs(suites=12, per_suite=50), measures=("lp", "mean_lp"))


@pytest.fixture(scope="session")
def large_run() -> ReportInput:
    """As many suites as BLiMP has."""
    return build_run(draw_pairs(suites=67, per_suite=40, seed=1))
