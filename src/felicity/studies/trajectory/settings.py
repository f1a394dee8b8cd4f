"""The settings of the study of learning curves."""

from dataclasses import dataclass

from felicity.core.settings import option
from felicity.studies.data_settings import DataSettings
from felicity.studies.definition import StudyDefinition


@dataclass(frozen=True, kw_only=True)
class TrajectorySettings(DataSettings):
    """Accuracy over the checkpoints of a training, suite by suite: learning curves.

    A model names a training: revisions of a hub model (org/model@step1,step10), a folder of checkpoints, a
    pattern ('out/checkpoint-*'), or the folder `checkpoints` that `felicity train lstm --checkpoints` keeps.
    DATASET may be a benchmark, whose accuracy tasks are then scored. The page shows one curve per suite with
    intervals, the step at which each suite is reached and held, falls with a recovery, sigmoid fits, and how
    alike two trainings order the suites. Run it again with more checkpoints: only they are scored.

    \b
    Examples:
      felicity trajectory starter -m lstm/checkpoints -o runs/curve
      felicity trajectory babylm -m org/model@chck_1M,chck_10M,chck_100M
      felicity trajectory blimp --sample 50 -m 'out/checkpoint-*' --criterion 0.8
    """

    criterion: float = option(
        0.75, "Accuracy at which a suite counts as reached.", least=0, most=1, analysis=True
    )
    draws: int = option(1_000, "Draws of items for intervals.", least=100, analysis=True)


STUDY = StudyDefinition(
    name="trajectory",
    title="Learning curves",
    settings=TrajectorySettings,
    code="felicity.studies.trajectory",
    default_model=None,
    checkpoints=True,
)
