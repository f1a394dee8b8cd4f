"""Make a set of minimal pairs: open the tokenizers, read the paradigms, generate, and account for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import write_frame
from felicity.core.progress import Progress
from felicity.data import open_frequency
from felicity.engines import open_counter
from felicity.report import render_result
from felicity.stimuli.pairs import (
    METHODS,
    CountTokens,
    Matching,
    PairGenerator,
    Paradigm,
    describe_suites,
    read_language,
    read_paradigms,
)

ALL = "all"
MATCHES = ("length", "frequency", "none")
ENDINGS = (".parquet", ".csv", ".tsv", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class PairsPlan:
    """What is to be made.

    paradigms: UIDs, phenomena or collections of built-in paradigms, or `all`. files: the user's own paradigm
    files. tokenizers: what counts tokens, each a model, a hub name or a folder. match: what is matched
    (`none` makes the unmatched twin of the set that the same plan would make matched). language: a built-in
    language, or a folder.
    """

    paradigms: Sequence[str] = ()
    files: Sequence[Path] = ()
    n: int = 1000
    tokenizers: Sequence[str] = ("smollm2",)
    match: Sequence[str] = ("length", "frequency")
    band: float = 0.5
    method: str = "signatures"
    seed: int = 0
    language: str = "english"


@dataclass(frozen=True, kw_only=True)
class PairSet:
    """The pairs, and per suite how many were begun, dropped for their length, or thrown away as repeats."""

    pairs: pl.DataFrame
    account: pl.DataFrame
    unequal: dict[str, str] = field(default_factory=dict)
    language: str = "english"

    def __repr__(self) -> str:
        return f"PairSet({self.pairs.height:,} pairs of {self.account.height} paradigms)"

    def _repr_html_(self) -> str:
        return render_result(
            f"{self.pairs.height:,} minimal pairs of {self.account.height} paradigms",
            table=self.pairs.select("suite", "good", "bad"),
        )


def pairs(
    paradigms: str | Sequence[str] = (),
    *,
    files: Sequence[str | Path] = (),
    n: int = 1000,
    tokenizers: str | Sequence[str] = "smollm2",
    match: str | Sequence[str] = ("length", "frequency"),
    band: float = 0.5,
    method: str = "signatures",
    seed: int = 0,
    language: str = "english",
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> PairSet:
    """Generate minimal pairs whose two sentences have the same number of tokens.

    paradigms: UIDs of built-in paradigms, or `all`. files: paradigm files of your own. n: pairs per paradigm.
    tokenizers: what counts tokens, each a model, a hub name or a folder. match: length and frequency, one of
    them, or none. band: the largest difference in Zipf frequency. out: a .parquet, .csv, .tsv or .jsonl file.

    Raises BadInput, UnknownName or NotPossible for a paradigm, tokenizer or language that cannot be used.

    >>> import felicity as fe
    >>> made = fe.pairs("causative", n=3, match="length")
    >>> fe.run(made.pairs, "smollm2").runs["smollm2"].accuracy()["n"].item()
    3
    """
    if out is not None:
        check_pairs_file(Path(out))
    plan = PairsPlan(
        paradigms=[paradigms] if isinstance(paradigms, str) else paradigms,
        files=[Path(file) for file in files],
        n=n,
        tokenizers=[tokenizers] if isinstance(tokenizers, str) else tokenizers,
        match=[match] if isinstance(match, str) else match,
        band=band,
        method=method,
        seed=seed,
        language=language,
    )
    made = make_pairs(plan, progress=progress)
    if out is not None:
        write_pairs(made.pairs, Path(out))
    return made


def make_pairs(
    plan: PairsPlan,
    *,
    counters: Mapping[str, CountTokens] | None = None,
    progress: Progress | None = None,
) -> PairSet:
    """Generate the pairs of a plan. counters: token counters that are open already, by name.

    Raises BadInput, UnknownName or NotPossible for an error in the plan or a paradigm file.
    """
    matching = _read_matching(plan)
    language = read_language(plan.language)
    own = [paradigm for file in plan.files for paradigm in read_paradigms(file, language.grammar)]
    paradigms = _choose(plan, language.read_paradigms(), own)
    generator = PairGenerator(
        language.lexicon,
        language.grammar,
        counters if counters is not None else open_counters(plan.tokenizers),
        matching=matching,
        frequency=open_frequency(language.lexicon.language) if matching.frequency else None,
    )
    parts, rows = [], []
    for place, paradigm in enumerate(paradigms):
        made = generator.make(paradigm, plan.n, seed=plan.seed)
        parts.append(made.pairs)
        rows.append(
            {
                "suite": paradigm.uid,
                "phenomenon": paradigm.phenomenon,
                "n": len(made.pairs),
                "begun": made.begun,
                "dropped": made.dropped,
                "duplicates": made.duplicates,
                "seconds": made.seconds,
            }
        )
        if progress:
            progress("Generating", place + 1, len(paradigms))
    return PairSet(
        # In a suite that exchanges no words all frequencies are null.
        pairs=pl.concat(parts, how="vertical_relaxed"),
        account=pl.DataFrame(rows),
        unequal={paradigm.uid: paradigm.unequal for paradigm in paradigms if paradigm.unequal},
        language=plan.language,
    )


def describe_pairs(pairs: pl.DataFrame, language: str = "english") -> pl.DataFrame:
    """The quality of a set by suite; the function words are those of the lexicon."""
    words = read_language(language).lexicon.function_words
    return describe_suites(pairs, function_words=words)


def list_paradigms(language: str = "english") -> list[Paradigm]:
    """The paradigms of a language."""
    return list(read_language(language).read_paradigms().values())


def open_counters(specs: Sequence[str]) -> dict[str, CountTokens]:
    """What counts tokens, by the name of the model or folder.

    Raises BadInput if two have the same name or one cannot be opened.
    """
    counters: dict[str, CountTokens] = {}
    for spec in dict.fromkeys(specs):
        name = Path(spec).expanduser().name if Path(spec).expanduser().is_dir() else spec
        if name in counters:
            raise BadInput(f"Two tokenizers are called '{name}'; rename one of the folders.")
        counters[name] = open_counter(spec)
    return counters


def check_pairs_file(path: Path) -> None:
    """Refuse a file that `write_pairs` could not write, before anything is drawn for it.

    Raises BadInput for another ending.
    """
    if path.suffix not in ENDINGS:
        raise BadInput(f"Cannot write {path}: name a file that ends in {', '.join(ENDINGS)}.")


def write_pairs(pairs: pl.DataFrame, path: Path) -> Path:
    """Write pairs by the ending of the path.

    Raises BadInput for another ending.
    """
    check_pairs_file(path)
    write_frame(pairs, path)
    return path


def _read_matching(plan: PairsPlan) -> Matching:
    for name in plan.match:
        if name not in MATCHES:
            raise UnknownName("match", name, MATCHES)
    if plan.method not in METHODS:
        raise UnknownName("method", plan.method, METHODS)
    if "none" in plan.match and len(set(plan.match)) > 1:
        raise BadInput("--match none goes with no other --match.")
    twin = "none" in plan.match
    return Matching(
        length=not twin, frequency=twin or "frequency" in plan.match, band=plan.band, method=plan.method
    )


def _choose(plan: PairsPlan, known: Mapping[str, Paradigm], own: Sequence[Paradigm]) -> list[Paradigm]:
    chosen: list[Paradigm] = []
    for name in plan.paradigms:
        named = [one for one in known.values() if name in (ALL, one.uid, one.phenomenon, one.collection)]
        if not named:
            listed = f"`felicity stimuli pairs --list --language {plan.language}` lists them"
            designs = "factorial designs are made with `felicity stimuli design`"
            raise UnknownName("paradigm", name, known, hint=f"{listed}; {designs}")
        chosen += [one for one in named if one not in chosen]
    chosen += own
    if not chosen:
        raise BadInput("Name a paradigm (--paradigm UID or all), or a paradigm file.")
    uids = [paradigm.uid for paradigm in chosen]
    for uid in uids:
        if uids.count(uid) > 1:
            raise BadInput(f"Two paradigms are called '{uid}'; rename one.")
    return chosen
