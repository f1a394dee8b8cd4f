"""Runs of two models with different tokenizers on the same stimuli, some of them hard to show on a page."""

import csv
from pathlib import Path

import numpy as np
import polars as pl

import felicity as fe
from felicity.engines.ngram import train_ngram
from felicity.run import evaluate, open_model
from tests.conftest import make_tiny_model

SCRIPT = "She said <script>window.ran = true</script> to him."
CLOSING = '</script><img src="x" onerror="window.ran = true"> is here.'
NOUNS = ("cat", "dog", "child", "teacher", "baker", "singer", "farmer", "driver")
VERBS = (("sleeps", "sleep"), ("sings", "sing"), ("waits", "wait"))
ODD = (
    ("scripts", SCRIPT, SCRIPT.replace("She", "Her")),
    ("scripts", CLOSING, CLOSING.replace("is", "are")),
    ("writing", "猫が静かに眠る。", "猫を静かに眠る。"),
    ("writing", "The 👩‍👩‍👧 family is here.", "The 👩‍👩‍👧 family are here."),
    ("writing", "=cmd|' /C calc'!A0 is here", "=cmd|' /C calc'!A0 are here"),
    ("writing", "הילד ישן “כאן”, naïve.", "הילד ישנים “כאן”, naïve."),
)


def write_pairs(path: Path) -> Path:
    """A file of pairs in several suites: agreement, and texts that are hard to show."""
    rows = [
        ("agreement", f"agree_{verb}", f"The {noun} {verb} here.", f"The {noun} {plural} here.")
        for noun in NOUNS
        for verb, plural in VERBS
    ]
    rows += [("order", "order", f"The old {noun} sat down.", f"The {noun} old sat down.") for noun in NOUNS]
    rows += [("odd", suite, good, bad) for suite, good, bad in ODD]
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(("phenomenon", "suite", "good", "bad"))
        writer.writerows(rows)
    return path


def make_runs(folder: Path) -> tuple[Path, Path]:
    """Run folders of a random network and of an n-gram model on these pairs, by two measures."""
    pairs = write_pairs(folder / "pairs.csv")
    network = make_tiny_model(folder / "tiny", seed=1, window=256)
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"The {noun} {verb} here.\n" for noun in NOUNS for verb, _ in VERBS), "utf-8")
    train_ngram(corpus, folder / "words.arpa", order=3)
    runs = (folder / "run-tiny", folder / "run-words")
    for model, run in zip((network, folder / "words.arpa"), runs, strict=True):
        evaluate(pairs, open_model(str(model), cache=False), measures=["lp", "mean_lp"], out=run)
    return runs


def write_reading(folder: Path, *, models: tuple[str, ...] = ()) -> Path:
    """The folder of a study of reading: two texts of 400 words, two short ones, two sets of surprisals.

    The times rise with the surprisals `one`; the first word of a sentence has no potential.
    """
    rng = np.random.default_rng(8)
    sizes = {"a": 400, "b": 450, "c": 80, "d": 70}
    rows = [
        {"text": text, "sentence": f"{text}{place // 10}", "position": place % 10 + 1}
        for text, size in sizes.items()
        for place in range(size)
    ]
    words = [f"{NOUNS[number % 8]}{'.' * (row['position'] == 10)}" for number, row in enumerate(rows)]
    bits = rng.gamma(3, 2, len(rows))
    table = pl.DataFrame(rows).with_columns(
        word=pl.Series(words),
        frequency=pl.Series(rng.normal(4, 1, len(rows))),
        one=pl.Series(bits),
        two=pl.Series(bits + rng.gamma(2, 1, len(rows))),
        self_paced=pl.Series(300 + 4 * bits + rng.normal(0, 9, len(rows))),
    )
    potential = pl.Series(rng.normal(0, 1, len(rows)))
    table = table.with_columns(n400=pl.when(pl.col("position") > 1).then(potential - 0.1 * pl.col("one")))
    table.write_csv(folder / "times.csv")
    given = {"models": list(models)} if models else {}
    fe.reading(
        str(folder / "times.csv"),
        surprisal=("one", "two"),
        draws=100,
        out=folder / "reading",
        entropy=False,
        **given,
    )
    return folder / "reading"
