"""SmolLM2, a 5-gram, word frequency and length on every paradigm and every design, in English and German.

    python docs/studies/pairs/paradigms.py FOLDER wiki.test.raw.gz

makes the sets (20 pairs of each paradigm and 20 items of each design, seed 1), trains the 5-gram on the text
(WikiText, or any other with one paragraph per line), runs both models below FOLDER, and writes two files
beside this one: paradigms.csv, one row per paradigm and per prediction of a design, and paradigms.md.

The 5-gram is interpolated Kneser-Ney, in lower case, trained on sentences. By frequency a sentence scores the
sum of its words' log frequencies, and a region has that sum, negated, as its surprisal; by length a sentence
scores its characters, negated, and a region has their number as its surprisal. A tie counts half. There is no
5-gram of German, for want of a German text.
"""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

import felicity as fe
from felicity.api.pairs import list_designs, list_paradigms, make_designs, write_designs
from felicity.core.files import read_text
from felicity.core.formulas import Region, RegionNumber, RegionOperation, parse_prediction
from felicity.data import open_frequency
from felicity.engines.ngram import train_ngram
from felicity.stats import wilson_interval
from felicity.stimuli.designs import Design

FOLDER = Path(__file__).parent
LANGUAGES = {"english": "en", "german": "de"}
N, SEED = 20, 1
TIE = 1e-6
COLUMNS = ("smollm2", "ngram", "frequency", "length")
WORD = {"smollm2": "SmolLM2", "ngram": "5-gram", "frequency": "frequency", "length": "length"}
TITLES = {
    "blimp": "BLiMP's phenomena",
    "beyond": "Beyond BLiMP",
    "english designs": "English designs",
    "german": "German",
    "german designs": "German designs",
}
# Above and below these a baseline decides a paradigm, whatever a model knows about the construction.
HIGHEST, LOWEST = 0.9, 0.1

INTRODUCTION = f"""\
Twenty pairs of each paradigm and twenty items of each design (seed {SEED}): the share (%) judged right by
SmolLM2, with its 95% interval, and by what knows no grammar: a 5-gram trained on the test part of
WikiText-103 (229,051 words, lower case), the sum of the words' log frequencies, and length in characters. A
tie counts half. For designs it is the share of items for which a prediction holds. Twenty pairs settle
little: an observed 85 has a 95% interval from 64 to 95. No German text was at hand for a 5-gram of German,
and SmolLM2 was trained mostly on English. `docs/studies/pairs/paradigms.py` makes the sets and both files
again; `docs/studies/pairs/paradigms.csv` has the same rows."""
DECIDED = """\
Paradigms and predictions of which the 5-gram or frequency alone is right in more than 90% or in fewer than
10%. In these a preference for frequent words or word sequences helps or hurts, whatever a model knows about
the construction: compare a model with the baseline, not with 50%."""

Weigh = Callable[[str], float]


def main() -> None:
    """Write both files."""
    folder, corpus = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    models = {"smollm2": "smollm2", "ngram": str(train(corpus, folder))}
    rows: list[dict[str, object]] = []
    for language, code in LANGUAGES.items():
        used = models if code == "en" else {"smollm2": models["smollm2"]}
        rows += judge_pairs(language, folder, used, weighers(code))
        rows += judge_designs(language, folder, used, weighers(code))
    table = pl.DataFrame(rows, infer_schema_length=None)
    table.write_csv(FOLDER / "paradigms.csv", float_precision=3)
    (FOLDER / "paradigms.md").write_text("\n".join(write_page(table)) + "\n", encoding="utf-8")


def train(corpus: Path, folder: Path) -> Path:
    """The 5-gram, trained on the sentences of a text whose punctuation may stand apart, as in WikiText."""
    model, sentences = folder / "fivegram.arpa", folder / "sentences.txt"
    lines = read_text(corpus).splitlines()
    sentences.write_text("\n".join(clean(lines)) + "\n", encoding="utf-8")
    report = train_ngram(sentences, model, order=5, casing="lower")
    sys.stdout.write(f"5-gram: {report.tokens:,} tokens in {report.lines:,} sentences\n")
    return model


def clean(lines: Iterable[str]) -> Iterator[str]:
    """Sentences, without headings and with punctuation where it belongs."""
    for line in lines:
        text = re.sub(r" @([-,.])@ ", r"\1", line.strip())
        text = re.sub(r" ([.,;:?!)]|'s\b|'t\b)", r"\1", text)
        if text and not text.startswith("="):
            yield from re.split(r"(?<=[.?!]) (?=[A-Z])", text)


def weighers(code: str) -> dict[str, Weigh]:
    """What frequency and length alone give a text; more is better."""
    zipf = open_frequency(code)
    return {
        "frequency": lambda text: sum(zipf(word.strip(".,?!")) for word in text.split()) * math.log(10),
        "length": lambda text: -float(len(text)),
    }


def judge_pairs(
    language: str, folder: Path, models: Mapping[str, str], weigh: Mapping[str, Weigh]
) -> list[dict[str, object]]:
    """One row per paradigm."""
    made = fe.pairs("all", n=N, seed=SEED, language=language)
    runs = {name: folder / language / name for name in models}
    for name, model in models.items():
        fe.run(made.pairs, model, out=runs[name], overwrite=True, report=False)
    collections = {one.uid: one.collection for one in list_paradigms(language)}
    accuracies = {name: estimates(run, "suite") for name, run in runs.items()}
    rows = []
    for (suite,), part in made.pairs.group_by("suite", maintain_order=True):
        pairs = list(part.select("good", "bad").iter_rows())
        chance = {
            name: sum(half(one(good) - one(bad)) for good, bad in pairs) / len(pairs)
            for name, one in weigh.items()
        }
        found = {name: known[str(suite)] for name, known in accuracies.items()}
        kind = collections[str(suite)] or language
        rows.append(describe(kind, str(suite), "good > bad", len(pairs), found, chance))
    return rows


def judge_designs(
    language: str, folder: Path, models: Mapping[str, str], weigh: Mapping[str, Weigh]
) -> list[dict[str, object]]:
    """One row per prediction."""
    made = make_designs(["all"], N, seed=SEED, language=language)
    place = folder / language / "designs"
    write_designs(made, place)
    rows = []
    for design in list_designs(language):
        runs = {name: place / name / design.name for name in models}
        for name, model in models.items():
            fe.run(place / f"{design.name}.json", model, out=runs[name], overwrite=True, report=False)
        items = pl.read_parquet(next(iter(runs.values())) / "items.parquet")
        for number, formula in enumerate(design.predictions, 1):
            found = {name: estimate_prediction(run, number, design) for name, run in runs.items()}
            chance = {name: hold(formula, items, weigh_one) for name, weigh_one in weigh.items()}
            rows.append(describe(f"{language} designs", design.name, formula, N, found, chance))
    return rows


def estimates(run: Path, level: str) -> dict[str, dict[str, float]]:
    """Accuracy and its interval by name."""
    table = pl.read_csv(run / "estimates.csv").filter(pl.col("level") == level)
    return {row["name"]: row for row in table.iter_rows(named=True)}


def estimate_prediction(run: Path, number: int, design: Design) -> dict[str, float]:
    """The share of items for which a prediction holds, with its interval; equal surprisals count half."""
    several = len(design.predictions) > 1
    table = pl.read_parquet(run / ("predictions.parquet" if several else "judgements.parquet"))
    if several:
        table = table.filter(pl.col("rule") == f"{design.name}/{number}")
    passed = sum(half(margin) for margin in table["margin"])
    low, high = wilson_interval(passed, table.height)
    return {"accuracy": passed / table.height, "low": low, "high": high}


def hold(formula: str, items: pl.DataFrame, weigh: Weigh) -> float:
    """The share of items for which a prediction would hold by frequency or length."""
    regions: dict[str, dict[tuple[str, str], float]] = {}
    for item, condition, text, spans in items.select("item", "condition", "text", "regions").iter_rows():
        values = regions.setdefault(item, {})
        for span in spans:
            value = -weigh(text[span["start"] : span["end"]])
            values[span["name"], condition] = value
            values["*", condition] = values.get(("*", condition), 0.0) + value
    held = [half(evaluate(parse_prediction(formula), values)) for values in regions.values()]
    return sum(held) / len(held)


def evaluate(part: Region | RegionNumber | RegionOperation, values: Mapping[tuple[str, str], float]) -> float:
    """The value of a sum, or the margin of a comparison in the direction that it claims."""
    if isinstance(part, Region):
        return values[part.region, part.condition]
    if isinstance(part, RegionNumber):
        return part.value
    left, right = evaluate(part.left, values), evaluate(part.right, values)
    if part.mark == "+":
        return left + right
    return right - left if part.mark == "<" else left - right


def half(margin: float) -> float:
    """A verdict by a margin: right, wrong, or a tie."""
    return 0.5 if abs(margin) < TIE else float(margin > 0)


def describe(
    kind: str,
    suite: str,
    claim: str,
    n: int,
    found: Mapping[str, Mapping[str, float]],
    chance: Mapping[str, float],
) -> dict[str, object]:
    """One row of the table."""
    model = found["smollm2"]
    ngram = found["ngram"]["accuracy"] if "ngram" in found else None
    return {
        "set": kind,
        "suite": suite,
        "claim": claim,
        "n": n,
        "smollm2": model["accuracy"],
        "low": model["low"],
        "high": model["high"],
        "ngram": ngram,
        **chance,
    }


def write_page(table: pl.DataFrame) -> list[str]:
    """The page: means, what a baseline decides, and every row."""
    lines = ["# Every paradigm and design: SmolLM2 beside what needs no model", ""]
    lines += [
        *INTRODUCTION.splitlines(),
        "",
        "| set | rows | " + " | ".join(WORD[name] for name in COLUMNS) + " |",
        "|---|---|" + "---|" * len(COLUMNS),
    ]
    for (kind,), part in table.group_by("set", maintain_order=True):
        means = " | ".join(percent(part[name].mean()) for name in COLUMNS)
        lines.append(f"| {TITLES[str(kind)]} | {part.height} | {means} |")
    lines += ["", "## What a baseline decides", ""]
    lines += [*DECIDED.splitlines(), ""]
    for name in ("ngram", "frequency"):
        for sign, chosen in (
            ("above 90", pl.col(name) > HIGHEST),
            ("below 10", pl.col(name) < LOWEST),
        ):
            named = dict.fromkeys(
                f"`{suite}` ({percent(value)})"
                for suite, value in table.filter(chosen).select("suite", name).iter_rows()
            )
            lines.append(f"- {WORD[name]} {sign}: {', '.join(named) or 'none'}.")
    for (kind,), part in table.group_by("set", maintain_order=True):
        lines += ["", f"## {TITLES[str(kind)]}", ""]
        claim = "designs" in str(kind)
        lines.append(
            f"| {'design | prediction' if claim else 'paradigm'} | " + " | ".join(WORD.values()) + " |"
        )
        lines.append("|---|" + "---|" * (len(COLUMNS) + claim))
        for row in part.iter_rows(named=True):
            first = f"`{row['suite']}` | `{row['claim']}`" if claim else f"`{row['suite']}`"
            model = f"{percent(row['smollm2'])} ({percent(row['low'])} to {percent(row['high'])})"
            rest = " | ".join(percent(row[name]) for name in COLUMNS[1:])
            lines.append(f"| {first} | {model} | {rest} |")
    return lines


def percent(share: float | None) -> str:
    """A share in percent, or a dash."""
    return "–" if share is None else f"{100 * share:.0f}"


if __name__ == "__main__":
    main()
