import gzip
from collections.abc import Callable
from math import log
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import TOKENS
from felicity.measures.sentence import check_measures, score_measures
from felicity.measures.unigram import UNSEEN_COUNT, Unigram, read_unigram, write_unigram

ROWS = {
    "request": ["a", "b"],
    "tokens": [["The", "Ġcat"], ["A", "Ġdog", "."]],
    "start": [[0, 4], [0, 2, 5]],
    "end": [[3, 7], [1, 5, 6]],
    "logprob": [[-1.0, -2.0], [None, -3.0, -1.0]],
}
STORED = pl.DataFrame(ROWS, schema=TOKENS)


def value(scores: pl.DataFrame, request: str, measure: str) -> float:
    return float(scores.filter(request=request, measure=measure)["value"].item())


def test_lp_is_the_sum_over_scored_tokens() -> None:
    scores = score_measures(STORED, ["lp", "mean_lp"], noise=0.0).scores
    assert value(scores, "a", "lp") == -3.0
    assert value(scores, "b", "lp") == -4.0
    assert value(scores, "b", "mean_lp") == -2.0  # two tokens were scored, not three


def test_error_is_what_the_noise_does_to_the_measure() -> None:
    scores = score_measures(STORED, ["lp", "mean_lp"], noise=1e-4).scores
    errors = dict(scores.filter(request="a").select("measure", "error").iter_rows())
    assert errors["lp"] == pytest.approx(1e-4)
    assert errors["mean_lp"] == pytest.approx(5e-5)


def test_slor_takes_unigram_counts_of_the_same_tokens() -> None:
    unigram = Unigram({"The": 50, "Ġcat": 25, "Ġdog": 20, ".": 5}, 100)
    scored = score_measures(STORED, ["slor"], noise=0.0, unigram=unigram)
    assert value(scored.scores, "a", "slor") == pytest.approx((-3 - log(0.5) - log(0.25)) / 2)
    assert value(scored.scores, "b", "slor") == pytest.approx((-4 - log(0.2) - log(0.05)) / 2)


def test_unseen_tokens_are_smoothed_and_counted() -> None:
    unigram = Unigram({"The": 90, "Ġdog": 10}, 100)
    scored = score_measures(STORED[:1], ["slor"], noise=0.0, unigram=unigram)
    assert scored.unseen == 1
    expected = (-3 - log(0.9) - log(UNSEEN_COUNT / 100)) / 2
    assert value(scored.scores, "a", "slor") == pytest.approx(expected)


def test_without_counts_the_command_that_builds_them_is_named() -> None:
    with pytest.raises(NotPossible, match=r"felicity measures count CORPUS.txt -m MODEL -o counts.tsv"):
        check_measures(["lp", "slor"], has_unigram=False)


def test_a_text_without_any_scored_token_is_refused_by_name() -> None:
    bare = STORED[:1].with_columns(pl.lit([None, None], dtype=pl.List(pl.Float32)).alias("logprob"))
    with pytest.raises(BadInput, match="No token of 'a'"):
        score_measures(bare, ["mean_lp"], noise=0.0)


@pytest.mark.parametrize("name", ["counts.tsv", "counts.tsv.gz"])
def test_counts_come_back_as_written(tmp_path: Path, name: str) -> None:
    counts = {"Ġthe": 10, "\\t": 2, "#": 1}
    write_unigram(counts, tmp_path / name)
    assert read_unigram(tmp_path / name) == Unigram(counts, 13)


@pytest.mark.parametrize("line", ["the", "the\tmany", "the\t-1", "the\t1.5"])
def test_a_line_that_is_no_count_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "counts.tsv"
    path.write_text(f"a\t1\n{line}\n")
    with pytest.raises(BadInput, match=r"counts.tsv, line 2"):
        read_unigram(path)


def test_a_cut_off_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "counts.tsv.gz"
    path.write_bytes(gzip.compress(b"a\t1\n" * 100)[:-9])
    with pytest.raises(BadInput, match="not a complete gzip file"):
        read_unigram(path)


@pytest.mark.data
def test_published_counts_of_gpt2_are_read_whole(published: Callable[[str], Path]) -> None:
    unigram = read_unigram(published("lau2020/unigram/gpt-openwebtext.tsv.gz"))
    assert len(unigram.counts) == 50_154  # lines of the file
    assert unigram.counts["Ġthe"] == 329_635_524
