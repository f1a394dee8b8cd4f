"""From logits to the TOKENS table: log-probability, rank, entropy and most probable alternatives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import NO_EXTRAS, TokenExtras
from felicity.core.schemas import TOKENS
from felicity.engines.tokenizing import Encoded

# Rows of logits processed at once, so that intermediate results stay in the processor's cache.
ROWS = 32
# Columns beyond TOKENS, present only if requested.
FURTHER: dict[str, pl.DataType] = {
    "rank": pl.List(pl.Int64()),
    "entropy": pl.List(pl.Float32()),
    "boundary": pl.List(pl.Float32()),
    "top_tokens": pl.List(pl.List(pl.String())),
    "top_logprob": pl.List(pl.List(pl.Float32())),
}


@dataclass(frozen=True)
class TokenScorer:
    """Scores tokens from logits; `begins` are the tokens that start a word or end the text, if needed."""

    extras: TokenExtras = NO_EXTRAS
    begins: np.ndarray | None = None

    @property
    def record(self) -> np.dtype[Any]:
        """The fields kept for each token."""
        fields: list[Any] = [("logprob", np.float32)]
        if self.extras.rank:
            fields.append(("rank", np.float32))
        if self.extras.entropy:
            fields.append(("entropy", np.float32))
        if self.extras.top:
            fields.append(("top_token", np.int64, (self.extras.top,)))
            fields.append(("top_logprob", np.float32, (self.extras.top,)))
        if self.extras.boundary:
            fields.append(("boundary", np.float32))
        return np.dtype(fields)

    def score(self, logits: Any, row: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Records of the targets, each under its row of logits; rows must be ascending.

        Raises BadInput if more top tokens are requested than the vocabulary has.
        """
        import torch

        self.extras.check_top(logits.shape[-1])
        records = np.empty(len(row), dtype=self.record)
        distinct, row_of = np.unique(row, return_inverse=True)
        with torch.inference_mode():
            for begin in range(0, len(distinct), ROWS):
                first, last = np.searchsorted(row_of, (begin, begin + ROWS))
                part = widen(_take(logits, distinct[begin : begin + ROWS]))
                rows = torch.from_numpy(row_of[first:last] - begin).to(part.device)
                targets = torch.from_numpy(target[first:last]).to(part.device)
                self._score(part, rows, targets, records[first:last])
        return records

    def _score(self, logits: Any, rows: Any, targets: Any, records: np.ndarray) -> None:
        """Normalize in float32, or float64 if the logits are, over the whole vocabulary."""
        import torch

        logprobs = logits.log_softmax(dim=1)
        records["logprob"] = logprobs[rows, targets].cpu().numpy()
        if self.extras.rank:
            higher = logits[rows] > logits[rows, targets][:, None]
            records["rank"] = higher.sum(dim=1).cpu().numpy() + 1
        if self.extras.entropy:
            records["entropy"] = torch.special.entr(logprobs.exp()).sum(dim=1)[rows].cpu().numpy()
        if self.extras.top:
            top = logprobs.topk(self.extras.top, dim=1)
            records["top_token"] = top.indices[rows].cpu().numpy()
            records["top_logprob"] = top.values[rows].cpu().numpy()
        if self.begins is not None and self.extras.boundary:
            begins = torch.from_numpy(self.begins).to(logits.device)
            records["boundary"] = logprobs[:, begins].logsumexp(dim=1)[rows].cpu().numpy()


def widen(logits: Any) -> Any:
    """Logits in float32 at least."""
    import torch

    return logits if logits.dtype == torch.float64 else logits.float()


def _take(logits: Any, rows: np.ndarray) -> Any:
    """These rows; adjacent ones without a copy."""
    import torch

    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows):
        return logits[first : last + 1]
    return logits[torch.from_numpy(rows).to(logits.device)]


def build_tokens(
    encoded: Encoded, sequences: np.ndarray, records: np.ndarray, tokenizer: Any
) -> pl.DataFrame:
    """Rows of TOKENS for these sequences; `records` belong to their wanted tokens, in order."""
    places = encoded.places(sequences, encoded.of_text)
    scored = encoded.wanted[places]
    row = np.repeat(np.arange(len(sequences)), encoded.count(encoded.of_text)[sequences])
    columns: dict[str, Any] = {
        "row": row,
        "tokens": tokenizer.convert_ids_to_tokens(encoded.ids[places].tolist()),
        "start": encoded.start[places],
        "end": encoded.end[places],
    }
    for name in records.dtype.names or ():
        if name in ("logprob", "rank", "entropy", "boundary"):
            value = np.full(len(places), np.nan, dtype=np.float32)
            value[scored] = records[name]
            columns[name] = pl.Series(value).fill_nan(None)
        elif name == "top_token":
            pieces = iter(tokenizer.convert_ids_to_tokens(records[name].ravel().tolist()))
            top = records[name].shape[1]
            columns["top_tokens"] = [
                [next(pieces) for _ in range(top)] if is_scored else None for is_scored in scored
            ]
        else:
            values = iter(records[name].tolist())
            columns[name] = [next(values) if is_scored else None for is_scored in scored]
    flat = pl.DataFrame(columns, schema_overrides={"top_logprob": pl.List(pl.Float32())})
    lists = flat.group_by("row", maintain_order=True).agg(pl.exclude("row"))
    requests = pl.Series("request", [encoded.request[i] for i in sequences])
    schema = TOKENS | {name: kind for name, kind in FURTHER.items() if name in columns}
    named = lists.with_columns(requests.gather(lists["row"]))
    return named.select(pl.col(name).cast(kind) for name, kind in schema.items())
