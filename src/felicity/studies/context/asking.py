"""The context study as a Python program asks for it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felicity.run.model import Model, open_model
from felicity.studies.context.setting import Setting, find_text, refuse_drawing
from felicity.studies.context.study import Finished, plan_in, run_study
from felicity.studies.tokenizers import open_counter

PATHS = ("text", "source", "conditions")
LISTS = ("kinds", "from_suites", "perturbations")
LENGTHS = tuple(range(0, 1000, 100))


def study_context(
    dataset: str,
    models: str | Model | Sequence[str | Model] = "smollm2",
    *,
    out: str | Path,
    lengths: Sequence[int] | None = None,
    tokenizer: str | None = None,
    contexts: str | Path | None = None,
    report: bool = True,
    **asked: Any,
) -> Finished:
    """What contexts of growing length do to acceptability (Sinha et al. 2023), kept in the folder `out`.

    lengths: tokens of context, counted by the first model or by `tokenizer`; 0 is the baseline; by default
    0, 100 and so on to 900. contexts: another study's contexts.parquet, with which come its items and all
    that decided the two. Further options are the fields of Setting: kinds, unit, draws, contexts_per_suite,
    from_suites, perturbations, text, sample, seed, measure, rule, source, columns, conditions, parse.

    The tables found are `findings.curves`, `.terms`, `.links`, `.gains`, `.matrix`, `.regions`.
    """
    chosen = [models] if isinstance(models, (str, Model)) else list(models)
    specs = [one if isinstance(one, str) else one.spec for one in chosen]
    given = Path(contexts) if contexts else None
    if given is not None:
        refuse_drawing(asked | {"lengths": lengths, "tokenizer": tokenizer})
    setting = Setting(
        dataset=dataset,
        lengths=tuple(LENGTHS if lengths is None else lengths),
        tokenizer=tokenizer or specs[0],
        **{name: _settle(name, value) for name, value in asked.items()},
    )
    if given is None:
        setting = setting.but(text=find_text(setting.text, setting.kinds))
    planned = plan_in(Path(out), setting, lambda: open_counter(setting.tokenizer), given=given)
    opened = [partial(_open, one) for one in chosen]
    return run_study(planned, opened, Path(out), report=report)


def _open(one: str | Model) -> Model:
    return open_model(one) if isinstance(one, str) else one


def _settle(name: str, value: Any) -> Any:
    """Paths from strings, and tuples from lists or from a single name."""
    if name in PATHS and value is not None:
        return Path(value)
    if name in LISTS:
        return (value,) if isinstance(value, str) else tuple(value)
    return value
