"""Encoder-decoders read in batches: each source once a batch, the head only where a token is scored."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from felicity.engines.hiding import BATCH_TOKENS, LOGITS, normalize
from felicity.engines.picking import Picker
from felicity.engines.reading import Reader
from felicity.engines.seq2seq_jobs import Job


class Seq2SeqReader:
    """The log-probabilities that a model gives to what its decoder is to write."""

    def __init__(self, model: Any, *, pad: int) -> None:
        self._model = model
        self._pad = pad
        self.picker = Picker(model.get_decoder())

    def score(self, jobs: Sequence[Job], reader: Reader) -> list[np.ndarray]:
        """The reader's records of each job's scored tokens: log p(token | source, what is before)."""
        values: list[np.ndarray] = [np.empty(0)] * len(jobs)
        for batch in self._plan(jobs):
            targets = [jobs[i].decoder[jobs[i].begin :] for i in batch]
            wanted = [np.arange(jobs[i].begin - 1, len(jobs[i].decoder) - 1) for i in batch]
            logits = self._read([jobs[i] for i in batch], [jobs[i].decoder[:-1] for i in batch], wanted)
            flat = reader.read(logits, np.arange(len(logits)), np.concatenate(targets))
            ends = np.cumsum([len(part) for part in targets])
            for i, part in zip(batch, np.split(flat, ends[:-1]), strict=True):
                values[i] = part
        return values

    def predict(self, jobs: Sequence[Job]) -> Iterator[tuple[int, np.ndarray]]:
        """Of each job, log-probabilities of the whole vocabulary for the token at `begin`."""
        for batch in self._plan(jobs):
            written = [jobs[i].decoder[: jobs[i].begin] for i in batch]
            last = [np.array([len(ids) - 1]) for ids in written]
            logits = self._read([jobs[i] for i in batch], written, last)
            yield from zip(batch, normalize(logits), strict=True)

    def _plan(self, jobs: Sequence[Job]) -> list[list[int]]:
        """Jobs, longest first, in batches of bounded tokens and logits."""
        most = max(1, LOGITS // self._model.config.get_text_config().vocab_size)
        size = np.array([len(job.source) + len(job.decoder) for job in jobs])
        order = np.argsort(-size, kind="stable")
        batches: list[list[int]] = []
        begin = 0
        while begin < len(order):
            longest = int(size[order[begin]])
            rows = max(1, min(BATCH_TOKENS // longest, most // longest))
            batches.append([int(i) for i in order[begin : begin + rows]])
            begin += rows
        return batches

    def _read(self, jobs: Sequence[Job], written: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> Any:
        """Logits at the wanted places of what each decoder has written, one job after the other."""
        import torch

        device = self._model.device
        sources = list({job.source.tobytes(): job.source for job in jobs}.values())
        place = {source.tobytes(): row for row, source in enumerate(sources)}
        row = torch.tensor([place[job.source.tobytes()] for job in jobs], device=device)
        rows = np.repeat(np.arange(len(jobs)), [len(part) for part in wanted])
        places = np.concatenate(wanted)
        with torch.inference_mode():
            ids, seen = self._pad_rows(sources)
            states = self._model.get_encoder()(input_ids=ids, attention_mask=seen)[0]
            inputs = {
                "encoder_outputs": (states[row],),
                "attention_mask": seen[row],
                "decoder_input_ids": self._pad_rows(written)[0],
                "use_cache": False,
            }
            return self.picker.read(
                lambda: self._model(**inputs).logits,
                torch.from_numpy(rows).to(device),
                torch.from_numpy(places).to(device),
            )

    def _pad_rows(self, rows: Sequence[np.ndarray]) -> tuple[Any, Any]:
        import torch

        lengths = np.array([len(row) for row in rows])
        ids = np.full((len(rows), int(lengths.max())), self._pad, dtype=np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        seen = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        device = self._model.device
        return torch.from_numpy(ids).to(device), torch.from_numpy(seen).to(device)
