"""The judging rules by name: how each turns token scores into judgements."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl

from felicity.core.contrasts import ACCURACY, PAIR, Contrast, Headline
from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput, NotPossible
from felicity.core.registry import BrokenPlugin, Registry
from felicity.core.schemas import CORRELATIONS, JUDGEMENTS, empty_table
from felicity.core.units import NATS_PER_BIT
from felicity.design import cross_targets
from felicity.judge import (
    ANSWER,
    CLOZE,
    MAIN,
    SURPRISAL,
    add_sampling_error,
    combine_answers,
    judge_cloze,
    judge_contrasts,
    judge_formulas,
    judge_ratings,
    keep_conditions,
)
from felicity.measures import (
    MEASURES,
    SHARED,
    SLLN_EXPONENT,
    MorcelaWeights,
    Unigram,
    WordPriors,
    score_measures,
    score_regions,
    score_shared,
)
from felicity.run.precision import Noise
from felicity.stats import correlate

METHODS = ("pearson", "spearman")
LEVELS = {"all": None, "phenomenon": "phenomenon", "suite": "suite"}


def correlate_scores(items: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """Rows of CORRELATIONS; r is null if nothing varies or there are fewer than four."""
    rated = items.select("item", "suite", "phenomenon", "condition", "rating")
    valued = requests.select("request", "item", "condition").join(scores, on="request")
    whole = rated.join(valued, on=["item", "condition"], maintain_order="left")
    rows: list[dict[str, object]] = []
    for (measure, condition), part in whole.group_by("measure", "condition", maintain_order=True):
        for level, column in LEVELS.items():
            groups = [("all", part)] if column is None else _split(part, column)
            if len(groups) == 1 and column is not None:
                continue
            for name, group in groups:
                shared = {"measure": measure, "condition": condition, "level": level, "name": name}
                rows += [shared | _correlate(group, method) for method in METHODS]
    return pl.DataFrame(rows, schema=CORRELATIONS)


def _split(part: pl.DataFrame, column: str) -> list[tuple[str, pl.DataFrame]]:
    return [(str(name), group) for (name,), group in part.group_by(column, maintain_order=True)]


def _correlate(group: pl.DataFrame, method: str) -> dict[str, object]:
    missing = {"method": method, "n": len(group), "r": None, "low": None, "high": None, "p": None}
    try:
        correlation = correlate(group["value"], group["rating"], method=method)  # type: ignore[arg-type]
    except BadInput:
        return missing
    return missing | correlation.row(0, named=True)


Parts = Iterable[pl.DataFrame]


@dataclass(frozen=True, kw_only=True)
class JudgingInput:
    """All that judging needs besides tokens.

    noise: the possible error of each sentence's sum, in nats. boundary: how tokens of a region are summed.
    priors: of the words that a measure compares. sampling: whether `stable` allows for their Monte Carlo
    error, besides numerical noise. weights, exponent: of morcela and slln_lp.
    """

    items: pl.DataFrame
    requests: pl.DataFrame
    measures: tuple[str, ...]
    noise: Noise
    contrasts: tuple[Contrast, ...] = (PAIR,)
    unigram: Unigram | None = None
    fillers: pl.DataFrame | None = None
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    boundary: str = "plain"
    priors: WordPriors | None = None
    weights: MorcelaWeights | None = None
    exponent: float = SLLN_EXPONENT
    sampling: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Judgements; those of every single prediction if an item has several; further tables by name."""

    judgements: pl.DataFrame
    predictions: pl.DataFrame | None = None
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How stimuli become judgements.

    measures: the defaults; fixed: no other measures are possible. needs: what the rule needs from an engine
    besides scores, such as `fill`. exact: a judgement depends on more than
    one margin, so that half precision cannot promise it. score: tokens, part by part, into scores.
    compares: whether whole sentences are compared, so that the audit can check their lengths. graded: a
    judgement is a share of many comparisons, not a verdict that a rounding error could turn. headline: how
    it is reported. regions: it sums the tokens of regions, for which the model gives word boundaries.
    judges: whether there is a verdict at all; a study of reading only scores.
    """

    meaning: str
    score: Callable[[JudgingInput, Parts], Iterator[pl.DataFrame]]
    judge: Callable[[JudgingInput, pl.DataFrame, Callable[[], Parts]], Verdicts]
    measures: tuple[str, ...] = ("lp",)
    fixed: bool = False
    exact: bool = False
    needs: tuple[str, ...] = ()
    compares: bool = False
    graded: bool = False
    regions: bool = False
    judges: bool = True
    headline: Headline = ACCURACY

    def choose_measures(self, name: str, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """The requested measures, or the rule's own.

        Raises NotPossible if the rule allows only one measure.
        """
        if asked and self.fixed and asked != self.measures:
            raise NotPossible(f"The rule '{name}' uses {self.measures[0]} only; omit --measure.")
        return asked or self.measures


def as_rule(given: object) -> Rule:
    """What an entry point provides.

    Raises TypeError for anything else.
    """
    if not isinstance(given, Rule):
        raise TypeError(f"a judging rule is a felicity.run.Rule, not {type(given).__name__}")
    return given


RULES: Registry[Rule] = Registry("rule", accept=as_rule)


def _score_measures(case: JudgingInput, parts: Parts) -> Iterator[pl.DataFrame]:
    texts = dict(case.requests.select("request", "text").iter_rows())
    for tokens in parts:
        yield score_measures(
            tokens,
            case.measures,
            noise=case.noise.of(tokens["request"]),
            unigram=case.unigram,
            priors=case.priors,
            texts=texts,
            exponent=case.exponent,
            weights=case.weights,
        ).scores


def _score_surprisal(case: JudgingInput, parts: Parts) -> Iterator[pl.DataFrame]:
    for tokens in parts:
        scores = score_measures(tokens, ("lp",), noise=case.noise.of(tokens["request"])).scores
        yield scores.with_columns(
            pl.lit(SURPRISAL).alias("measure"),
            (-pl.col("value") / NATS_PER_BIT).alias("value"),
            (pl.col("error") / NATS_PER_BIT).alias("error"),
        )


def _score_shared(case: JudgingInput, parts: Parts) -> Iterator[pl.DataFrame]:
    tokens = pl.concat(parts)
    errors = dict(zip(tokens["request"], case.noise.of(tokens["request"]), strict=True))
    yield score_shared(case.requests, tokens, errors=errors)


def _score_answers(case: JudgingInput, parts: Parts) -> Iterator[pl.DataFrame]:
    scores = [
        score_measures(tokens, ("lp",), noise=case.noise.of(tokens["request"])).scores for tokens in parts
    ]
    yield combine_answers(case.requests, pl.concat(scores))


def _judge_answers(case: JudgingInput, scores: pl.DataFrame, _: Callable[[], Parts]) -> Verdicts:
    requests = keep_conditions(case.requests)
    return Verdicts(judgements=judge_contrasts(case.items, requests, scores, case.contrasts))


def _score_targets(case: JudgingInput, parts: Parts) -> Iterator[pl.DataFrame]:
    for tokens in parts:
        scores = score_measures(tokens, ("lp",), noise=case.noise.of(tokens["request"])).scores
        yield scores.with_columns(pl.lit(CLOZE).alias("measure"))


def _judge_cloze(case: JudgingInput, _: pl.DataFrame, __: Callable[[], Parts]) -> Verdicts:
    if case.fillers is None:
        raise NotPossible("The rule 'cloze' judges words for blanks, but no blanks were filled.")
    single = judge_cloze(case.fillers, targets=case.targets, change=case.change)
    main = single.filter(pl.col("rule") == MAIN)
    return Verdicts(judgements=main, predictions=single, tables={"fillers": case.fillers})


def _judge_contrasts(case: JudgingInput, scores: pl.DataFrame, _: Callable[[], Parts]) -> Verdicts:
    judgements = judge_contrasts(case.items, case.requests, scores, case.contrasts)
    if case.sampling and case.priors is not None:
        judgements = add_sampling_error(
            judgements,
            case.requests,
            case.contrasts,
            left_out=case.priors.leave_out(case.requests["request"]),
            measures=[name for name in case.measures if MEASURES[name].prior],
        )
    return Verdicts(judgements=judgements, predictions=judgements if len(case.contrasts) > 1 else None)


def _judge_formulas(case: JudgingInput, _: pl.DataFrame, read: Callable[[], Parts]) -> Verdicts:
    regions = pl.concat(
        [score_regions(case.items, case.requests, tokens, boundary=case.boundary) for tokens in read()]
    )
    errors = case.requests.with_columns(pl.Series("error", case.noise.of(case.requests["request"])))
    largest = errors.group_by("item").agg(pl.col("error").max() / NATS_PER_BIT)
    judgements, predictions = judge_formulas(case.items, regions, noise_bits=dict(largest.iter_rows()))
    return Verdicts(judgements=judgements, predictions=predictions, tables={"regions": regions})


def _judge_ratings(case: JudgingInput, scores: pl.DataFrame, _: Callable[[], Parts]) -> Verdicts:
    judgements = judge_ratings(case.items, case.requests, scores)
    correlations = correlate_scores(case.items, case.requests, scores)
    several = judgements["rule"].n_unique() > 1
    return Verdicts(
        judgements=judgements,
        predictions=judgements if several else None,
        tables={"correlations": correlations},
    )


RULES.register(
    "contrast",
    Rule(
        meaning="one condition above others",
        score=_score_measures,
        judge=_judge_contrasts,
        compares=True,
    ),
)
RULES.register(
    "shared",
    Rule(
        meaning="the tokens two sentences share, given those that differ",
        score=_score_shared,
        judge=_judge_contrasts,
        measures=(SHARED,),
        fixed=True,
        compares=True,
    ),
)
RULES.register(
    "answers",
    Rule(
        meaning="answers to prompts about sentences or words",
        score=_score_answers,
        judge=_judge_answers,
        measures=(ANSWER,),
        fixed=True,
        exact=True,
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
        regions=True,
        headline=Headline(
            chance=None,
            margin="bits",
            passed="with every prediction met",
            high="the predictions of the suite hold for more items",
        ),
    ),
)
RULES.register(
    "rating",
    Rule(
        meaning="agreement with ratings",
        score=_score_measures,
        judge=_judge_ratings,
        exact=True,
        graded=True,
        headline=Headline(
            name="Concordance with ratings",
            kind="concordance",
            margin="",
            passed="that the model orders as people do",
            high="the model orders more pairs of sentences as people do",
        ),
    ),
)


RULES.register(
    "cloze",
    Rule(
        meaning="whether the target is among the most probable words",
        score=_score_targets,
        judge=_judge_cloze,
        measures=(CLOZE,),
        fixed=True,
        exact=True,
        needs=("fill",),
        headline=Headline(
            name="Top-5 hit rate",
            chance=None,
            margin="",
            passed="with the target among the 5 likeliest words",
            high="the target is among the 5 likeliest words more often",
        ),
    ),
)


RULES.register(
    "words",
    Rule(
        meaning="surprisal of every word, without a verdict",
        score=_score_surprisal,
        judge=lambda *_: Verdicts(judgements=empty_table(JUDGEMENTS)),
        measures=(SURPRISAL,),
        fixed=True,
        exact=True,
        graded=True,
        regions=True,
        judges=False,
    ),
)


def impossible_rules(can: Collection[str]) -> list[str]:
    """Rules that an engine with these abilities cannot serve, and those that cannot be loaded."""
    refused = []
    for name in RULES:
        try:
            served = set(RULES[name].needs) <= set(can)
        except BrokenPlugin:
            served = False
        if not served:
            refused.append(name)
    return refused


def refuse_impossible(rule: str, info: EngineInfo, *, exact: bool) -> None:
    """Refuse a rule that the model does not support; `exact` says that it runs in float32.

    Raises NotPossible.
    """
    if not exact and RULES[rule].exact:
        raise NotPossible(
            f"The rule '{rule}' cannot guarantee the judgements of float32 in {info.dtype}; omit --dtype."
        )
    missing = [ability for ability in RULES[rule].needs if ability not in info.can]
    if missing:
        raise NotPossible(
            f"'{info.name}' cannot {missing[0]} frames, which the rule '{rule}' needs; omit --rule to use "
            "one that needs only scores."
        )


def prepare_items(items: pl.DataFrame, *, cross: bool) -> pl.DataFrame:
    """Stimuli to score: those of the dataset, and frames crossed with targets if the rule needs them."""
    return cross_targets(items) if cross else items
