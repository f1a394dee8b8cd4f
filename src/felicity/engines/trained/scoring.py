"""Log-probabilities of words under a trained model, batch by batch."""

import numpy as np
import torch

from felicity.engines.encoding import Encoded
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
    device: str,
) -> np.ndarray:
    """Nats of the wanted tokens of these sequences, flat, in their order.

    `documents` are content words, one array a sequence; an LSTM takes none.
    """
    batch = pad([encoded.ids[encoded.bounds[i] : encoded.bounds[i + 1]] for i in sequences])
    wanted = pad([encoded.wanted[encoded.bounds[i] : encoded.bounds[i + 1]] for i in sequences]).ids > 0
    rows, columns = np.nonzero(wanted)
    found = np.empty(len(rows), dtype=np.float32)
    with torch.inference_mode():
        topic = _topic_vectors(model, documents, device)
        hidden, _ = model.read(torch.from_numpy(batch.ids).to(device), None, topic)
        for begin in range(0, len(rows), SLICE_POSITIONS):
            part = slice(begin, begin + SLICE_POSITIONS)
            before = hidden[torch.from_numpy(rows[part]), torch.from_numpy(columns[part] - 1)]
            logits = model.predict(before)
            targets = torch.from_numpy(batch.ids[rows[part], columns[part]]).to(device)
            picked = logits.gather(1, targets[:, None])[:, 0]
            found[part] = (picked - logits.logsumexp(dim=1)).cpu().numpy()
    return found


def _topic_vectors(
    model: LstmModel | TdlmModel, documents: list[np.ndarray], device: str
) -> torch.Tensor | None:
    if not isinstance(model, TdlmModel):
        return None
    padded = pad(documents)
    ids = torch.from_numpy(padded.ids).to(device)
    return model.topic.read(ids, torch.from_numpy(padded.lengths).to(device))
