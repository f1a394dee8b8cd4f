"""The settings of the study of larger probes."""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.settings import Data, argument, option
from felicity.studies.definition import StudyDefinition

FIGURES = ("top1", "top5", "top10", "top20", "sensitivity")


@dataclass(frozen=True, kw_only=True)
class ClozeSettings:
    """Ask models to complete sentences, on small probes and on their extensions.

    Top-1/5/10/20 hit rate and sensitivity of every model on every dataset; the probability, rank and
    log-odds of targets; and whether what a small set says about two models holds on its extension, with
    paired tests and power at both sizes. After Shivagunde et al. (2023).

    A file has the columns item, condition, context_text (the sentence up to the blank) and text (the target);
    the targets of all its conditions are looked for, or with --affirmative those of one.

    \b
    Examples:
      felicity cloze neg_136_simp role_88
      felicity cloze neg_136_simp neg_1500_simp_temp role_88 role_1500 -m smollm2 -m gpt2 -o runs/probes
      felicity cloze role_88 role_extended/ --against role_88:role_extended
      felicity cloze my_frames.csv --affirmative aff --sample 20
    """

    datasets: tuple[Data, ...] = argument(
        "Cloze datasets, files, or folders of `felicity stimuli extend`.", metavar="DATASET..."
    )
    against: tuple[str, ...] = option(
        (), "A small set and its extension, as SMALL:LARGE; repeatable.", analysis=True
    )
    human: Path | None = option(
        None,
        "People's answers: a table with dataset, item, condition, annotator, answer.",
        analysis=True,
    )
    affirmative: str | None = option(
        None,
        "Condition of a cloze file whose targets are looked for.  [default: all conditions]",
        metavar="CONDITION",
    )
    figures: tuple[str, ...] = option(
        ("top1", "top5", "sensitivity"),
        "A figure that models are compared by; repeatable.  [default: top1, top5, sensitivity]",
        flag="--figure",
        analysis=True,
        choices=FIGURES,
    )
    sample: int | None = option(None, "Use only this many items per suite.", least=1)
    seed: int = option(0, "Seed of the sample.", least=0)


STUDY = StudyDefinition(
    name="cloze", title="Cloze probes", settings=ClozeSettings, code="felicity.studies.cloze"
)
