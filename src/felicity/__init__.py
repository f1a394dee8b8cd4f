"""felicity: what language models find acceptable, measured and defended.

>>> import felicity as fe
>>> lm = fe.model("smollm2")
>>> lm.score("The cats annoy Tim.").columns
['text', 'lp', 'n_tokens']
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from lazy_loader import attach_stub

# Loaded on first use, so that `import felicity` and `felicity --help` start quickly.
_load, _, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("felicity")
    if name not in __all__ and not name.startswith("_"):
        studies = import_module("felicity.studies")
        if name in studies.STUDIES:
            return studies.study_function(name)
    return _load(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *import_module("felicity.studies").STUDIES, "__version__"])


class _Face(ModuleType):
    """Keeps the functions whose names are also rooms: `fe.run` is the function, `felicity.run` the room.

    Importing a room would set it as an attribute here; `from felicity.run import Run` does not need that.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
