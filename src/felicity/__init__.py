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
    from felicity.engines.served.settings import Serving as Serving
    from felicity.run.evaluate import Run as Run
    from felicity.run.evaluate import evaluate as evaluate
    from felicity.run.evaluate import read_run as read_run
    from felicity.run.model import Model as Model
    from felicity.run.model import open_model as model
    from felicity.run.ray_pool import Workers as Workers
    from felicity.studies.context.asking import study_context as study_context

# Loaded when first used, so that `import felicity` and `felicity --help` answer at once.
_PUBLIC = {
    "FelicityError": ("felicity.core.errors", "FelicityError"),
    "Model": ("felicity.run.model", "Model"),
    "Policy": ("felicity.core.policy", "Policy"),
    "Run": ("felicity.run.evaluate", "Run"),
    "Serving": ("felicity.engines.served.settings", "Serving"),
    "Workers": ("felicity.run.ray_pool", "Workers"),
    "evaluate": ("felicity.run.evaluate", "evaluate"),
    "model": ("felicity.run.model", "open_model"),
    "read_run": ("felicity.run.evaluate", "read_run"),
    "study_context": ("felicity.studies.context.asking", "study_context"),
}
__all__ = [
    "FelicityError",
    "Model",
    "Policy",
    "Run",
    "Serving",
    "Workers",
    "evaluate",
    "model",
    "read_run",
    "study_context",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("felicity")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'felicity' has no attribute '{name}'")
    module, attribute = _PUBLIC[name]
    return getattr(import_module(module), attribute)
