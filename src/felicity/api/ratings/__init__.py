"""Studies with people: from a dataset to a study file, from answers to raters kept and a report."""

from felicity.api.ratings.power import describe_rating_power, simulate_power_of_study
from felicity.api.ratings.raters import choose_raters
from felicity.api.ratings.report import write_ratings_report
from felicity.api.ratings.start import has_continuations, start_study
from felicity.api.ratings.timed import analyse_timed

__all__ = [
    "analyse_timed",
    "choose_raters",
    "describe_rating_power",
    "has_continuations",
    "simulate_power_of_study",
    "start_study",
    "write_ratings_report",
]
