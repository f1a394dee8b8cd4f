"""A trained model from its folder."""

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from felicity.core.errors import BadInput
from felicity.engines.trained.folder import find_weights, read_record, read_words
from felicity.engines.trained.learning import build_network
from felicity.engines.trained.lstm_model import LstmModel
from felicity.engines.trained.tdlm_model import TdlmModel


def load_trained(folder: Path, *, device: str) -> LstmModel | TdlmModel:
    """The model in evaluation mode.

    Raises BadInput where the weights are damaged or are those of another model.
    """
    path = find_weights(folder)
    settings, table = read_record(folder).settings, read_words(folder)
    with torch.random.fork_rng(devices=[]):
        model = build_network(len(table), settings)
    try:
        model.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError, KeyError) as error:
        raise BadInput(
            f"{path} is damaged or does not go with its vocabulary; train the model again."
        ) from error
    return model.to(device).eval()
