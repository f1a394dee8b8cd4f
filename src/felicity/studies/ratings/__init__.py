"""Studies with people: from a dataset to a study file, from answers to raters kept and a report."""

from felicity.studies.ratings.power import describe_power, simulate_power_of_study
from felicity.studies.ratings.raters import choose_raters
from felicity.studies.ratings.report import write_ratings_report
from felicity.studies.ratings.start import start_study

__all__ = [
    "choose_raters",
    "describe_power",
    "simulate_power_of_study",
    "start_study",
    "write_ratings_report",
]
