"""Asking people: study files, lists, slots, stored answers and the tables that come out.

This room knows stimuli and random ids. It never learns who a rater is and never scores with a model.
"""

from felicity.humans.assignment import RaterRefused, find_rater_id
from felicity.humans.codebook import suggest_fit, write_codebook
from felicity.humans.database import POOL, StorageFailed
from felicity.humans.erasure import Eraser
from felicity.humans.export import build_rating_tables, payment_list, write_export
from felicity.humans.identity import (
    KEY_FILE,
    PLATFORM_FILE,
    PLATFORM_ID,
    ExpectedIds,
    Keys,
    PlatformIds,
    forget_platform_ids,
    hash_platform_id,
    load_keys,
    read_ids,
    sign_platform_id,
)
from felicity.humans.interface import INTERFACES
from felicity.humans.lists import StimulusList, Trial, build_lists, check_orders, draw_order
from felicity.humans.progress import Progress, describe_progress
from felicity.humans.results import Results, describe_rater, describe_results, preview_list
from felicity.humans.simulated import Population, draw_answer, draw_rater, find_truth
from felicity.humans.steps import Step, count_trials, plan_steps, read_step
from felicity.humans.stimuli import Origin, Stimulus
from felicity.humans.store import DATABASE_FILE, RaterPosition, Store, sqlite_url
from felicity.humans.study import PREFER_NOT, Platform, RatingStudy
from felicity.humans.study_file import STUDY_FILE, read_rating_study
from felicity.humans.tasks import BLANK, Answer, Task, Unanswered, maze_sides, read_answer
from felicity.humans.visits import Visit, send_raters

__all__ = [
    "BLANK",
    "DATABASE_FILE",
    "INTERFACES",
    "KEY_FILE",
    "PLATFORM_FILE",
    "PLATFORM_ID",
    "POOL",
    "PREFER_NOT",
    "STUDY_FILE",
    "Answer",
    "Eraser",
    "ExpectedIds",
    "Keys",
    "Origin",
    "Platform",
    "PlatformIds",
    "Population",
    "Progress",
    "RaterPosition",
    "RaterRefused",
    "RatingStudy",
    "Results",
    "Step",
    "Stimulus",
    "StimulusList",
    "StorageFailed",
    "Store",
    "Task",
    "Trial",
    "Unanswered",
    "Visit",
    "build_lists",
    "build_rating_tables",
    "check_orders",
    "count_trials",
    "describe_progress",
    "describe_rater",
    "describe_results",
    "draw_answer",
    "draw_order",
    "draw_rater",
    "find_rater_id",
    "find_truth",
    "forget_platform_ids",
    "hash_platform_id",
    "load_keys",
    "maze_sides",
    "payment_list",
    "plan_steps",
    "preview_list",
    "read_answer",
    "read_ids",
    "read_rating_study",
    "read_step",
    "send_raters",
    "sign_platform_id",
    "sqlite_url",
    "suggest_fit",
    "write_codebook",
    "write_export",
]
