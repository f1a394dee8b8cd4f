"""The context study as a Python program asks for it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felicity.run.model import Model, open_model
from felicity.studies.context.setting import Setting, find_text
from felicity.studies.context.study import Finished, plan_in, run_study
from felicity.studies.tokenizers import open_counter

LENGTHS = tuple(range(0, 1000, 100))


def study_context(
    dataset: str,
    models: str | Model | Sequence[str | Model] = "smollm2",
    *,
    out: str | Path,
    lengths: Sequence[int] = LENGTHS,
    tokenizer: str | None = None,
    contexts: str | Path | None = None,
    report: bool = True,
    **asked: Any,
) -> Finished:
    """What contexts of growing length do to acceptability (Sinha et al. 2023), kept in the folder `out`.

    lengths: tokens of context, counted by the first model or by `tokenizer`; 0 is the baseline. contexts:
    another study's contexts.parquet. Further options are the fields of Setting: kinds, unit, draws,
    contexts_per_suite, from_suites, perturbations, text, sample, seed, measure, rule, source, columns,
    parse. The tables found are `findings.curves`, `.terms`, `.links`, `.gains`, `.matrix`, `.regions`.
    """
    chosen = [models] if isinstance(models, (str, Model)) else list(models)
    specs = [one if isinstance(one, str) else one.spec for one in chosen]
    several = {name: tuple(value) for name, value in asked.items() if isinstance(value, (list, tuple))}
    setting = Setting(
        dataset=dataset, lengths=tuple(lengths), tokenizer=tokenizer or specs[0], **(asked | several)
    )
    given = Path(contexts) if contexts else None
    if given is None:
        asked_text = Path(setting.text) if setting.text else None
        setting = setting.but(text=find_text(asked_text, setting.kinds))
    planned = plan_in(Path(out), setting, lambda: open_counter(setting.tokenizer), given=given)
    opened = [partial(_open, one) for one in chosen]
    return run_study(setting, planned, opened, Path(out), report=report)


def _open(one: str | Model) -> Model:
    return open_model(one) if isinstance(one, str) else one
