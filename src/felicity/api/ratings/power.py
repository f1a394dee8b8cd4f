"""Power of a rating study by simulation: the same design answered again and again by simulated raters."""

import random
from dataclasses import replace

import polars as pl

from felicity.core.errors import NotPossible
from felicity.core.wording import decimal, format_interval
from felicity.humans import (
    Population,
    RatingStudy,
    build_lists,
    draw_answer,
    draw_rater,
    find_truth,
    read_answer,
)
from felicity.stats import clopper_pearson, fit_model

ALPHA = 0.05


def simulate_power_of_study(study: RatingStudy, population: Population, *, repeats: int) -> pl.DataFrame:
    """One row per repeat: the estimate of the condition, its standard error and p; and `significant`.

    Answers are drawn from the simulated raters directly, without the site, since hundreds of studies are
    needed; the model is a mixed model with rater and item intercepts. Of several conditions, the last is
    compared with the first.

    Raises NotPossible for tasks without numbers or studies with one condition.
    """
    levels = list(dict.fromkeys(one.condition for one in study.stimuli if one.role == "target"))
    if not study.task.numeric:
        raise NotPossible(f"A study of the task '{study.task.kind}' has no ratings to fit a model to.")
    if len(levels) < 2:
        raise NotPossible("All targets have the same condition, so there is no effect to find.")
    family = "binomial" if study.task.kind in ("binary", "choice") else "gaussian"
    rows = []
    for repeat in range(repeats):
        frame = draw_ratings(study, replace(population, seed=population.seed + 1 + repeat))
        chosen = frame.filter(pl.col("condition").is_in([levels[0], levels[-1]]))
        data = chosen.with_columns((pl.col("condition") == levels[0]).cast(pl.Float64).alias("better"))
        found = fit_model("rating ~ better + (1|rater) + (1|item)", data, family=family).as_dict()  # type: ignore[arg-type]
        effect = next(row for row in found["fixed"] if row["term"] == "better")
        significant = effect["p"] <= ALPHA and effect["estimate"] > 0
        rows.append({key: effect[key] for key in ("estimate", "se", "p")} | {"significant": significant})
    return pl.DataFrame(rows)


def draw_ratings(study: RatingStudy, population: Population) -> pl.DataFrame:
    """The ratings of a simulated study in which raters take the lists in turn and drop-outs are replaced."""
    lists = build_lists(study)
    truth = find_truth(study, population)
    rows = []
    number = 0
    for turn in range(population.raters):
        drawn = lists[turn % len(lists)]
        habits = draw_rater(population, number)
        while habits.leaves_at is not None:
            number += 1
            habits = draw_rater(population, number)
        rng = random.Random(f"{population.seed} power {number}")
        number += 1
        order = list(drawn.rows)
        rng.shuffle(order)
        for place, row in enumerate(order):
            stimulus = study.stimuli[row]
            form = draw_answer(study, stimulus, truth[row], habits, place / len(order), rng)
            if stimulus.role == "target":
                value = read_answer(study.task, stimulus, form, flipped=False).value
                rows.append(
                    {
                        "rater": str(turn),
                        "item": stimulus.item,
                        "condition": stimulus.condition,
                        "rating": value,
                    }
                )
    return pl.DataFrame(rows)


def describe_rating_power(found: pl.DataFrame) -> str:
    """The power with its exact interval, in a sentence."""
    hits, n = int(found["significant"].sum()), found.height
    low, high = clopper_pearson(hits, n)
    return (
        f"power {decimal(hits / n)} {format_interval(low, high)} in {n} simulated studies, "
        f"two-sided p <= {ALPHA:g}"
    )
