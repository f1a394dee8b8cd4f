"""From logits to what is kept of a token: its log-probability, and more where that is asked for."""

from typing import Any

import numpy as np

# Rows of logits normalized at once, so that what is between stays in the processor's cache.
ROWS = 32


def read_logprobs(logits: Any, row: np.ndarray, target: np.ndarray) -> np.ndarray:
    """log p(target) under each named row of logits, normalized in float32 over the whole vocabulary."""
    import torch

    with torch.inference_mode():
        total = torch.cat([part.float().logsumexp(dim=1) for part in logits.split(ROWS)])
        rows = torch.from_numpy(row).to(logits.device)
        picked = logits[rows, torch.from_numpy(target).to(logits.device)].float()
        return np.asarray((picked - total[rows]).cpu().numpy())
