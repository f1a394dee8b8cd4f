"""What the engines for transformers models share: loading, model facts, token counts and refusals."""

import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.core.watched import WatchedFiles
from felicity.engines.runtime.backend_tokenizer import (
    identify_tokenizer,
    recall_tokenizer,
    remember_tokenizer,
)
from felicity.engines.runtime.devices import Compute, choose_device, prepare_processor
from felicity.engines.sources import (
    ModelDescription,
    ModelSource,
    cached_digest,
    find_version,
    fingerprint_tokenizer,
    fingerprint_weights,
    reading_privately,
    refuse_larger_model,
    tokenizer_files,
)
from felicity.engines.tokenizing import Encoded, describe_unknown_id

# Nats by which a sentence's sum may change with its batch. A property test checks the value for float32; in
# half precision it is an estimate, and a run measures its own.
NOISE = {"float64": 1e-6, "float32": 1e-4, "float16": 0.1, "bfloat16": 1.0}
# Positions start after the padding id, so the first entries of the position table are unused.
PADDED_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "mpnet")
LAYER_NUMBER = re.compile(r"\.\d+\.")
PROBE = "The keys to the cabinet are on the table."
# Relative positions: there is no limit, whatever the configuration says.
NO_WINDOW = ("t5", "mt5", "umt5", "xlnet")


@contextmanager
def quiet_transformers(name: str, part: str, *, code: str | None = None) -> Iterator[None]:
    """Silence transformers' progress bars and advice; report its failures in one sentence.

    code: the version of the Python code that comes with the model.

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
    except BaseException as error:
        # transformers raises whatever its parts raise; the panics of tokenizers are no Exceptions.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if "trust_remote_code" in str(error):
            allowed = f"read it, and if you trust it, allow it with --allow-code {code}, or " if code else ""
            raise NotPossible(
                f"'{name}' comes with Python code of its own for its {part}, which felicity does not run "
                f"unasked; {allowed}use a version of the model that transformers itself can load."
            ) from error
        reason = " ".join(str(error).split())[:200].rstrip(".:;, ") or type(error).__name__
        raise BadInput(
            f"Cannot load the {part} of '{name}' ({reason}); correct its files, or save or download it again."
        ) from error
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def load_tokenizer(folder: Path, *, name: str) -> Any:
    """The tokenizer in `folder`; without transformers if that has loaded it before.

    Raises BadInput if its files change meanwhile.
    """
    files = WatchedFiles(partial(tokenizer_files, folder), digest=cached_digest)
    key = identify_tokenizer(folder, files.digest)
    whole = partial(_load_whole_tokenizer, folder, name, files)
    recalled = recall_tokenizer(key, whole)
    if recalled is not None:
        return recalled
    tokenizer = whole()
    with quiet_transformers(name, "tokenizer"):
        remember_tokenizer(key, tokenizer)
    return tokenizer


def _load_whole_tokenizer(folder: Path, name: str, files: WatchedFiles) -> Any:
    from transformers import AutoTokenizer

    with files.reading(), quiet_transformers(name, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if not isinstance(tokenizer.model_max_length, int | float):
            raise BadInput(
                f"{folder / 'tokenizer_config.json'}: 'model_max_length' is not a number; correct it, or "
                "download the model again."
            )
        # What breaks at the first text is said here.
        tokenizer(PROBE, verbose=False)
        return tokenizer


def load_weights(source: ModelSource, auto: str, *, compute: Compute) -> Any:
    """The model, loaded by the Auto class named `auto`, in evaluation mode.

    With a `device_map`, transformers distributes it over the devices.

    Raises NotPossible if weights are missing from the files and would be random, BadInput if a file has
    changed since the model was opened.
    """
    import torch
    import transformers

    prepare_processor()
    name, folder = source.name, source.folder
    with (
        source.files.reading(),
        quiet_transformers(name, "weights", code=find_version(source)),
        reading_privately(),
        refuse_larger_model(folder),
    ):
        model, report = getattr(transformers, auto).from_pretrained(
            source.folder,
            dtype=getattr(torch, compute.dtype),
            device_map=compute.device_map,
            local_files_only=True,
            trust_remote_code="code" in source.details,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        for weight, stored, promised in sorted(report["mismatched_keys"]):
            raise BadInput(
                f"The configuration of '{name}' asks for {weight} of {_spell(promised)} values, but its "
                f"files have {_spell(stored)}; correct config.json, or save or download the model again."
            )
        missing = sorted(report["missing_keys"])
        if missing:
            raise NotPossible(
                f"The files of '{name}' lack {len(missing)} weights ({missing[0]}, ...), which would be "
                "random; check that the model was trained as a language model."
            )
        refuse_left_layers(report["unexpected_keys"], model.state_dict(), folder)
        refuse_broken_weights(model.named_parameters(), name)
        refuse_unknown_ids(model)
        return model.eval() if compute.device_map else model.eval().to(choose_device(compute.device))


def _spell(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape)) or "1"


def refuse_left_layers(unused: Iterable[str], used: Iterable[str], folder: Path) -> None:
    """Refuse a configuration with fewer layers than the files have: the rest would be left out in silence.

    Raises BadInput.
    """
    kinds = {LAYER_NUMBER.sub(".*.", weight) for weight in used}
    left = sorted(weight for weight in unused if LAYER_NUMBER.sub(".*.", weight) in kinds)
    if left:
        raise BadInput(
            f"The weight files of {folder} have layers that config.json does not ask for ({left[0]}, ...); "
            "correct its number of layers, or save the model again."
        )


def refuse_unknown_ids(model: Any) -> None:
    """Have the model refuse token ids that it has no embedding for.

    Raises BadInput when such a token is read.
    """

    def check(embedding: Any, inputs: tuple[Any, ...]) -> None:
        if not inputs or not inputs[0].numel():
            return
        rows = embedding.num_embeddings
        low, high = (int(bound) for bound in inputs[0].aminmax())
        if low < 0 or high >= rows:
            raise BadInput(describe_unknown_id(low if low < 0 else high, rows))

    table = getattr(model.get_input_embeddings(), "weight", None)
    for part in model.modules():
        # Encoder and decoder may each have an embedding of their own, with one table.
        if hasattr(part, "num_embeddings") and part.weight is table:
            part.register_forward_pre_hook(check)


def refuse_broken_weights(weights: Iterable[tuple[str, Any]], name: str) -> None:
    """Refuse weights that are NaN or infinite: attention may mask them, and the scores be finite but wrong.

    Raises NotPossible naming the tensor.
    """
    for part, weight in weights:
        # The minimum and maximum are finite only if all values are, and nothing is copied.
        if weight.is_floating_point() and weight.numel() and weight.device.type != "meta":
            low, high = weight.detach().aminmax()
            if not bool(low.isfinite()) or not bool(high.isfinite()):
                raise NotPossible(
                    f"The weights of '{name}' contain a value that is not a number ({part}); fetch or save "
                    "it again."
                )


def find_window(description: ModelDescription, tokenizer: Any) -> int | None:
    """The most tokens the model can take; None if there is no limit."""
    if description.model_type in NO_WINDOW or description.window is None:
        return None
    if description.model_type in PADDED_POSITIONS:
        return description.window - int(tokenizer.pad_token_id or 0) - 1
    return description.window


def build_info(
    source: ModelSource,
    description: ModelDescription,
    *,
    family: str,
    kind: str,
    policy: Policy,
    tokenizer: Any,
    can: tuple[str, ...],
    dtype: str,
    scoring: int = 1,
) -> EngineInfo:
    """What is known about the model in a folder without loading its weights.

    Raises BadInput if a file has changed since the model was opened.
    """
    weights = fingerprint_weights(source.folder, source.files.digest)
    if "code" in source.details:
        weights = fingerprint([weights, source.details["code"]])
    tokens = fingerprint_tokenizer(source.folder, source.files.digest)
    source.files.confirm()
    return EngineInfo(
        name=source.name,
        family=family,
        kind=kind,
        weights=weights,
        tokenizer=tokens,
        policy=policy.as_dict(),
        dtype=dtype,
        parameters=description.parameters,
        vocabulary=len(tokenizer),
        window=find_window(description, tokenizer),
        noise=NOISE[dtype],
        can=can,
        notes=source.details,
        scoring=scoring,
    )


def build_encodings(
    encoded: Encoded, tokenizer: Any, *, window: int, before: int | np.ndarray = 0
) -> pl.DataFrame:
    """Rows of ENCODINGS; the first `before` tokens of a sequence are neither context nor text."""
    n_own = encoded.count(encoded.of_text)
    unknown = -1 if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    added = np.isin(encoded.ids, tokenizer.all_special_ids) & ~encoded.of_text
    columns = {
        "n_tokens": n_own,
        "n_unscored": n_own - encoded.count(encoded.wanted),
        "n_across": encoded.n_across,
        "n_unknown": encoded.count(encoded.of_text & (encoded.ids == unknown)),
        "n_context": np.maximum(encoded.lengths - n_own - encoded.count(added) - before, 0),
        "n_dropped": encoded.n_dropped,
        "n_over": np.maximum(encoded.lengths - window, 0),
    }
    return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)


def refuse_long_sequences(encodings: pl.DataFrame, *, window: int, name: str) -> None:
    """Refuse texts that do not fit into the window.

    Raises BadInput naming the first one.
    """
    over = encodings.filter(pl.col("n_over") > 0)
    if over.is_empty():
        return
    first = over.row(0, named=True)
    step = "drop old context with --overflow drop" if first["n_context"] else "shorten it"
    raise BadInput(
        f"The text of '{first['request']}' is {first['n_over']} token{'s' * (first['n_over'] > 1)} too long "
        f"for '{name}', which reads at most {window}; {step} ({len(over)} such text{'s' * (len(over) > 1)})."
    )


def refuse_nonfinite(logprobs: np.ndarray, *, name: str) -> None:
    """Refuse log-probabilities that are not finite.

    Raises NotPossible.
    """
    if not np.isfinite(logprobs).all():
        raise NotPossible(f"'{name}' gave a log-probability that is not a finite number; check its weights.")
