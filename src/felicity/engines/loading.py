"""Tokenizer and weights from a folder, without noise on the terminal."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.engines.devices import Compute, choose_device, prepare_processor


@contextmanager
def quiet_transformers(name: str, part: str) -> Iterator[None]:
    """No progress bars or advice from transformers; its failures in one sentence.

    Raises BadInput naming the model and the part that could not be loaded.
    """
    from transformers.utils import logging as transformers_logging

    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.CRITICAL)
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FelicityError:
        raise
    except Exception as error:  # transformers raises whatever its parts raise
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"Cannot load the {part} of '{name}': {reason}") from error
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def load_tokenizer(folder: Path, *, name: str) -> Any:
    """The tokenizer in `folder`."""
    from transformers import AutoTokenizer

    with quiet_transformers(name, "tokenizer"):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def load_weights(folder: Path, auto: str, *, name: str, compute: Compute) -> Any:
    """The model in `folder` as the Auto class named `auto` makes it, in evaluation mode.

    With a `device_map` it is spread as transformers does.

    Raises NotPossible where weights are missing from the files: a half-random model is no model.
    """
    import torch
    import transformers

    prepare_processor()
    with quiet_transformers(name, "weights"):
        model, report = getattr(transformers, auto).from_pretrained(
            folder,
            dtype=getattr(torch, compute.dtype),
            device_map=compute.device_map,
            local_files_only=True,
            output_loading_info=True,
        )
        missing = sorted(report["missing_keys"])
        if missing:
            raise NotPossible(
                f"The files of '{name}' lack {len(missing)} weights ({missing[0]}, ...), which would be "
                "random; was it trained to predict words?"
            )
        return model.eval() if compute.device_map else model.eval().to(choose_device(compute.device))
