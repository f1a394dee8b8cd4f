"""From a corpus to an LSTM or a TDLM, from the beginning or from where it stopped."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_file

from felicity.core.errors import FelicityError
from felicity.core.files import disk_errors, replacing
from felicity.engines.trained.batches import plan_epoch
from felicity.engines.trained.checkpoint import Progressed, Training, load_checkpoint, save_checkpoint
from felicity.engines.trained.folder import HISTORY, WEIGHTS, TrainedRecord, prepare_folder, write_json
from felicity.engines.trained.learning import (
    begin_with,
    build_network,
    build_optimizers,
    language_step,
    measure_nats,
    topic_step,
)
from felicity.engines.trained.preparation import Prepared
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.tdlm_model import TdlmModel
from felicity.engines.trained.text import topic_sequences

# Called with the epoch, how many of its batches are done and how many there are.
BatchProgress = Callable[[int, int, int], None]
# Called with a row of the history: epoch, train, valid (perplexities), seconds.
EpochProgress = Callable[[dict[str, float]], None]


@dataclass(frozen=True)
class Outcome:
    """How a training ended; `stopped` says that validation perplexity no longer fell."""

    epochs: int
    best: float
    stopped: bool
    history: list[dict[str, float]]


def train(
    prepared: Prepared,
    folder: Path,
    settings: TrainingSettings,
    *,
    device: str = "cpu",
    minutes: float = 10.0,
    on_batch: BatchProgress | None = None,
    on_epoch: EpochProgress | None = None,
) -> Outcome:
    """Train until validation perplexity no longer falls; the best weights are kept in `folder`.

    A checkpoint is written behind every epoch and every so many `minutes`. Called again with the same
    corpus and settings, training goes on from there, and ends with the weights of an unbroken one.

    Raises BadInput where the folder holds another training, FelicityError where the disk refuses.
    """
    record = TrainedRecord(settings, prepared.corpus, prepared.key)
    prepare_folder(folder, record, prepared.table)
    with _alone(folder), torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = build_network(len(prepared.table), settings).to(device)
        if prepared.vectors is not None:
            begin_with(model, prepared.vectors)
        training = Training(model, build_optimizers(model, settings), Progressed(), device)
        load_checkpoint(training, folder, key=prepared.key)
        while not _is_done(training.so_far, settings):
            began = time.monotonic()
            _run_epoch(training, prepared, folder, settings, minutes, on_batch)
            row = _finish_epoch(training, prepared, folder, settings)
            row["seconds"] = round(time.monotonic() - began, 1)
            save_checkpoint(training, folder, key=prepared.key)
            write_json(folder / HISTORY, training.so_far.history)
            if on_epoch:
                on_epoch(row)
        so_far = training.so_far
        return Outcome(so_far.epoch - 1, so_far.best, so_far.stale >= settings.patience, so_far.history)


def _run_epoch(
    training: Training,
    prepared: Prepared,
    folder: Path,
    settings: TrainingSettings,
    minutes: float,
    on_batch: BatchProgress | None,
) -> None:
    """Learn from the batches of the epoch that are still to come."""
    so_far, text = training.so_far, prepared.text
    topical = topic_sequences(text, settings.topic) if settings.topic else text.document[:0, None]
    steps = plan_epoch(
        text.lengths, len(topical), batch=settings.batch, seed=settings.seed, epoch=so_far.epoch
    )
    training.model.train()
    saved = time.monotonic()
    while so_far.step < len(steps):
        step = steps[so_far.step]
        if step.is_topic and isinstance(training.model, TdlmModel) and settings.topic:
            sequences, longest = topical[step.rows], settings.topic.document
            topic_step(training.model, training.optimizers[1], text, sequences, longest, training.device)
        else:
            optimizer = training.optimizers[0]
            so_far.nats += language_step(
                training.model, optimizer, text, step.rows, settings, training.device
            )
            so_far.words += int(text.lengths[step.rows].sum())
        so_far.step += 1
        if not math.isfinite(so_far.nats):
            raise _lost(folder)
        if on_batch:
            on_batch(so_far.epoch, so_far.step, len(steps))
        if time.monotonic() - saved >= 60 * minutes and so_far.step < len(steps):
            save_checkpoint(training, folder, key=prepared.key)
            saved = time.monotonic()


def _finish_epoch(
    training: Training, prepared: Prepared, folder: Path, settings: TrainingSettings
) -> dict[str, Any]:
    """Measure validation perplexity, keep the weights where it is the best so far, begin the next epoch."""
    so_far = training.so_far
    nats = measure_nats(training.model, prepared.valid, settings, training.device)
    try:
        valid = math.exp(nats / prepared.valid.predicted)
        seen = math.exp(so_far.nats / max(1, so_far.words))
    except OverflowError as error:
        raise _lost(folder) from error
    if not math.isfinite(valid):
        raise _lost(folder)
    row: dict[str, Any] = {"epoch": so_far.epoch, "train": seen, "valid": valid}
    if valid < so_far.best:
        so_far.best, so_far.stale = valid, 0
        with replacing(folder / WEIGHTS) as part:
            weights = training.model.state_dict()
            save_file({name: value.cpu().contiguous() for name, value in weights.items()}, part)
    else:
        so_far.stale += 1
    so_far.history.append(row)
    so_far.epoch, so_far.step, so_far.nats, so_far.words = so_far.epoch + 1, 0, 0.0, 0
    return row


def _lost(folder: Path) -> FelicityError:
    return FelicityError(f"The training in {folder} has lost its way (its loss is no number); lower --rate.")


def _is_done(so_far: Progressed, settings: TrainingSettings) -> bool:
    return so_far.epoch > settings.epochs or so_far.stale >= settings.patience


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no two processes train in one folder; the lock dies with its process."""
    with disk_errors(folder):
        lock = FileLock(folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise FelicityError(
                f"Another process is training in {folder}; wait for it or choose another folder with -o."
            ) from None
    try:
        yield
    finally:
        lock.release()
