"""From logits to what is kept of a token: its log-probability, and more where that is asked for."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from felicity.core.engine import NOTHING_MORE, More

# Rows of logits worked on at once, so that what is between stays in the processor's cache.
ROWS = 32


@dataclass(frozen=True)
class Reader:
    """Reads logits; `begins` are the tokens that begin a word or end the text, where that is asked for."""

    more: More = NOTHING_MORE
    begins: np.ndarray | None = None

    @property
    def record(self) -> np.dtype[Any]:
        """What is kept of one token."""
        fields: list[Any] = [("logprob", np.float32)]
        if self.more.rank:
            fields.append(("rank", np.float32))
        if self.more.entropy:
            fields.append(("entropy", np.float32))
        if self.more.top:
            fields.append(("top_token", np.int64, (self.more.top,)))
            fields.append(("top_logprob", np.float32, (self.more.top,)))
        if self.more.boundary:
            fields.append(("boundary", np.float32))
        return np.dtype(fields)

    def read(self, logits: Any, row: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Records of the targets, each under its row of logits; rows must ascend.

        Raises BadInput where more likeliest tokens are asked for than there are.
        """
        import torch

        self.more.check_top(logits.shape[-1])
        found = np.empty(len(row), dtype=self.record)
        distinct, place = np.unique(row, return_inverse=True)
        with torch.inference_mode():
            for begin in range(0, len(distinct), ROWS):
                first, last = np.searchsorted(place, (begin, begin + ROWS))
                part = _take(logits, distinct[begin : begin + ROWS]).float()
                rows = torch.from_numpy(place[first:last] - begin).to(part.device)
                targets = torch.from_numpy(target[first:last]).to(part.device)
                self._read(part, rows, targets, found[first:last])
        return found

    def _read(self, logits: Any, rows: Any, targets: Any, found: np.ndarray) -> None:
        """Everything is normalized in float32 over the whole vocabulary."""
        import torch

        logprobs = logits.log_softmax(dim=1)
        found["logprob"] = logprobs[rows, targets].cpu().numpy()
        if self.more.rank:
            higher = logits[rows] > logits[rows, targets][:, None]
            found["rank"] = higher.sum(dim=1).cpu().numpy() + 1
        if self.more.entropy:
            found["entropy"] = torch.special.entr(logprobs.exp()).sum(dim=1)[rows].cpu().numpy()
        if self.more.top:
            top = logprobs.topk(self.more.top, dim=1)
            found["top_token"] = top.indices[rows].cpu().numpy()
            found["top_logprob"] = top.values[rows].cpu().numpy()
        if self.begins is not None and self.more.boundary:
            begins = torch.from_numpy(self.begins).to(logits.device)
            found["boundary"] = logprobs[:, begins].logsumexp(dim=1)[rows].cpu().numpy()


def _take(logits: Any, rows: np.ndarray) -> Any:
    """These rows; neighbours without copying them."""
    import torch

    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows):
        return logits[first : last + 1]
    return logits[torch.from_numpy(rows).to(logits.device)]
