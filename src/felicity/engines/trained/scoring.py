"""Log-probabilities of words under a trained model, batch by batch."""

import numpy as np
import torch

from felicity.engines.encoding import Encoded
from felicity.engines.reading import Reader
from felicity.engines.trained.batches import pad
from felicity.engines.trained.lstm_model import LstmModel
from felicity.engines.trained.tdlm_model import TdlmModel

# Positions projected onto the vocabulary at once: memory stays bounded.
SLICE_POSITIONS = 512


def score_batch(
    model: LstmModel | TdlmModel,
    encoded: Encoded,
    sequences: np.ndarray,
    documents: list[np.ndarray],
    reader: Reader,
) -> np.ndarray:
    """Records of the wanted tokens of these sequences, flat, in their order.

    `documents` are content words, one array a sequence; an LSTM takes none.
    """
    spans = [slice(encoded.bounds[i], encoded.bounds[i + 1]) for i in sequences]
    ids = pad([encoded.ids[span] for span in spans]).ids
    rows, columns = np.nonzero(pad([encoded.wanted[span] for span in spans]).ids)
    targets = ids[rows, columns]
    found = np.empty(len(rows), dtype=reader.record)
    with torch.inference_mode():
        device = next(model.parameters()).device
        hidden, _ = model.read(
            torch.from_numpy(ids).to(device), None, _topic_vectors(model, documents, device)
        )
        for begin in range(0, len(rows), SLICE_POSITIONS):
            part = slice(begin, begin + SLICE_POSITIONS)
            before = hidden[torch.from_numpy(rows[part]), torch.from_numpy(columns[part] - 1)]
            found[part] = reader.read(model.predict(before), np.arange(len(before)), targets[part])
    return found


def _topic_vectors(
    model: LstmModel | TdlmModel, documents: list[np.ndarray], device: torch.device
) -> torch.Tensor | None:
    if not isinstance(model, TdlmModel):
        return None
    padded = pad(documents)
    ids = torch.from_numpy(padded.ids).to(device)
    return model.topic.read(ids, torch.from_numpy(padded.lengths).to(device))
