"""felicity: what language models find acceptable, measured and defended.

>>> import felicity as fe
>>> lm = fe.model("smollm2")
>>> lm.score("The cats annoy Tim.").columns
['text', 'lp', 'n_tokens']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicity.core.errors import FelicityError as FelicityError
    from felicity.core.policy import Policy as Policy
    from felicity.engines.served import Serving as Serving
    from felicity.run import Model as Model
    from felicity.run import Run as Run
    from felicity.run import Study as Study
    from felicity.run import Workers as Workers
    from felicity.run import evaluate as evaluate
    from felicity.run import open_model as model
    from felicity.run import read_run as read_run
    from felicity.run import read_study as read_study
    from felicity.studies import report_study as report_study
    from felicity.studies.context import study_context as study_context

# Loaded on first use, so that `import felicity` and `felicity --help` start quickly.
_PUBLIC = {
    "FelicityError": ("felicity.core.errors", "FelicityError"),
    "Model": ("felicity.run", "Model"),
    "Policy": ("felicity.core.policy", "Policy"),
    "Run": ("felicity.run", "Run"),
    "Serving": ("felicity.engines.served", "Serving"),
    "Study": ("felicity.run", "Study"),
    "Workers": ("felicity.run", "Workers"),
    "evaluate": ("felicity.run", "evaluate"),
    "model": ("felicity.run", "open_model"),
    "read_run": ("felicity.run", "read_run"),
    "read_study": ("felicity.run", "read_study"),
    "report_study": ("felicity.studies", "report_study"),
    "study_context": ("felicity.studies.context", "study_context"),
}
__all__ = [
    "FelicityError",
    "Model",
    "Policy",
    "Run",
    "Serving",
    "Study",
    "Workers",
    "evaluate",
    "model",
    "read_run",
    "read_study",
    "report_study",
    "study_context",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("felicity")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'felicity' has no attribute '{name}'")
    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
