"""The judging rules by name: what each reads from tokens, and what it says of them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.engine import EngineInfo
from felicity.core.errors import NotPossible
from felicity.core.registry import Registry
from felicity.core.units import NATS_PER_BIT
from felicity.design.crossing import cross_targets
from felicity.judge.cloze import MAIN, judge_cloze
from felicity.judge.cloze import MEASURE as CLOZE
from felicity.judge.contrasts import judge_contrasts
from felicity.judge.formulas import MEASURE as SURPRISAL
from felicity.judge.formulas import judge_formulas
from felicity.judge.ratings import judge_ratings
from felicity.measures.regions import score_regions
from felicity.measures.scoring import score_measures
from felicity.measures.shared import MEASURE as SHARED
from felicity.measures.shared import score_shared
from felicity.measures.unigram import Unigram
from felicity.run.correlations import correlate_ratings
from felicity.run.precision import Noise

Parts = Iterable[pl.DataFrame]
# What a rule needs of an engine beyond scores.
NEEDS = {"cloze": "fill"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that judging needs besides tokens. noise: by how many nats each sentence's sum may be off."""

    items: pl.DataFrame
    requests: pl.DataFrame
    measures: tuple[str, ...]
    noise: Noise
    contrasts: tuple[Contrast, ...] = (PAIR,)
    unigram: Unigram | None = None
    fillers: pl.DataFrame | None = None
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Judgements; those of every single prediction where an item has several; further tables by name."""

    judgements: pl.DataFrame
    predictions: pl.DataFrame | None = None
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How stimuli become judgements.

    measures: what is computed when nothing is asked for; fixed: nothing else can be asked for. prepare:
    further stimuli that the rule needs. exact: a judgement hangs on more than one margin, so that
    half precision cannot promise it. score: tokens, part by part, into scores.
    """

    meaning: str
    score: Callable[[Case, Parts], Iterator[pl.DataFrame]]
    judge: Callable[[Case, pl.DataFrame, Callable[[], Parts]], Verdicts]
    measures: tuple[str, ...] = ("lp",)
    fixed: bool = False
    exact: bool = False

    def choose_measures(self, name: str, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """The measures asked for, or the rule's own.

        Raises NotPossible where the rule reads one thing only.
        """
        if asked and self.fixed and asked != self.measures:
            raise NotPossible(f"The rule '{name}' reads {self.measures[0]} only; leave --measure out.")
        return asked or self.measures


RULES: Registry[Rule] = Registry("rule")


def _score_measures(case: Case, parts: Parts) -> Iterator[pl.DataFrame]:
    for tokens in parts:
        yield score_measures(
            tokens, case.measures, noise=case.noise.of(tokens["request"]), unigram=case.unigram
        ).scores


def _score_surprisal(case: Case, parts: Parts) -> Iterator[pl.DataFrame]:
    for tokens in parts:
        scores = score_measures(tokens, ("lp",), noise=case.noise.of(tokens["request"])).scores
        yield scores.with_columns(
            pl.lit(SURPRISAL).alias("measure"),
            (-pl.col("value") / NATS_PER_BIT).alias("value"),
            (pl.col("error") / NATS_PER_BIT).alias("error"),
        )


def _score_shared(case: Case, parts: Parts) -> Iterator[pl.DataFrame]:
    tokens = pl.concat(parts)
    errors = dict(zip(tokens["request"], case.noise.of(tokens["request"]), strict=True))
    yield score_shared(case.requests, tokens, errors=errors)


def _score_targets(case: Case, parts: Parts) -> Iterator[pl.DataFrame]:
    for tokens in parts:
        scores = score_measures(tokens, ("lp",), noise=case.noise.of(tokens["request"])).scores
        yield scores.with_columns(pl.lit(CLOZE).alias("measure"))


def _judge_cloze(case: Case, _: pl.DataFrame, __: Callable[[], Parts]) -> Verdicts:
    if case.fillers is None:
        raise NotPossible("The rule 'cloze' judges words for blanks; none were asked for.")
    single = judge_cloze(case.fillers, targets=case.targets, change=case.change)
    main = single.filter(pl.col("rule") == MAIN)
    return Verdicts(judgements=main, predictions=single, tables={"fillers": case.fillers})


def _judge_contrasts(case: Case, scores: pl.DataFrame, _: Callable[[], Parts]) -> Verdicts:
    judgements = judge_contrasts(case.items, case.requests, scores, case.contrasts)
    return Verdicts(judgements=judgements, predictions=judgements if len(case.contrasts) > 1 else None)


def _judge_formulas(case: Case, _: pl.DataFrame, read: Callable[[], Parts]) -> Verdicts:
    regions = pl.concat([score_regions(case.items, case.requests, tokens) for tokens in read()])
    judgements, predictions = judge_formulas(case.items, regions, noise_bits=case.noise.rough / NATS_PER_BIT)
    return Verdicts(judgements=judgements, predictions=predictions, tables={"regions": regions})


def _judge_ratings(case: Case, scores: pl.DataFrame, _: Callable[[], Parts]) -> Verdicts:
    judgements = judge_ratings(case.items, case.requests, scores)
    correlations = correlate_ratings(case.items, case.requests, scores)
    several = judgements["rule"].n_unique() > 1
    return Verdicts(
        judgements=judgements,
        predictions=judgements if several else None,
        tables={"correlations": correlations},
    )


RULES.register(
    "contrast",
    Rule(meaning="one condition above others", score=_score_measures, judge=_judge_contrasts),
)
RULES.register(
    "shared",
    Rule(
        meaning="the tokens two sentences share, given those that differ",
        score=_score_shared,
        judge=_judge_contrasts,
        measures=(SHARED,),
        fixed=True,
    ),
)
RULES.register(
    "formula",
    Rule(
        meaning="formulas over region surprisals",
        score=_score_surprisal,
        judge=_judge_formulas,
        measures=(SURPRISAL,),
        fixed=True,
        exact=True,
    ),
)
RULES.register(
    "rating",
    Rule(meaning="agreement with ratings", score=_score_measures, judge=_judge_ratings, exact=True),
)


RULES.register(
    "cloze",
    Rule(
        meaning="whether the target is among the likeliest words",
        score=_score_targets,
        judge=_judge_cloze,
        measures=(CLOZE,),
        fixed=True,
        exact=True,
    ),
)


def needs(rule: str) -> tuple[str, ...]:
    """What a rule asks of an engine beyond scores."""
    return (NEEDS[rule],) if rule in NEEDS else ()


def impossible_rules(can: Collection[str]) -> list[str]:
    """Rules that an engine with these abilities cannot serve."""
    return [rule for rule, ability in NEEDS.items() if ability not in can]


def refuse_impossible(rule: str, info: EngineInfo, *, exact: bool) -> None:
    """Stop before a rule that the model cannot serve; `exact` says that it is read in float32.

    Raises NotPossible.
    """
    if not exact and RULES[rule].exact:
        raise NotPossible(
            f"The rule '{rule}' cannot promise float32's verdicts in {info.dtype}; leave --dtype out."
        )
    if rule in impossible_rules(info.can):
        raise NotPossible(
            f"'{info.name}' cannot {NEEDS[rule]} frames, which the rule '{rule}' needs; leave --rule out for "
            "one that scores are enough for."
        )


def prepare_items(items: pl.DataFrame, *, cross: bool) -> pl.DataFrame:
    """Stimuli to be scored: those of the dataset, and frames crossed with targets where the rule asks so."""
    return cross_targets(items) if cross else items
