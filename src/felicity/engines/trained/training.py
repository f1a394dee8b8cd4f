"""Training an LSTM or a TDLM on a corpus, from the beginning or from a checkpoint."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import clear_leftovers, disk_errors, replacing
from felicity.engines.trained.folder import HISTORY, TrainedRecord, prepare_folder, write_json
from felicity.engines.trained.networks import LstmModel, TdlmModel
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training_data import (
    Padded,
    Prepared,
    TrainingText,
    pad,
    pad_documents,
    pad_rest_of_documents,
    pad_sequences,
    plan_epoch,
    plan_validation,
    topic_sequences,
)
from felicity.engines.words import WEIGHTS

CHECKPOINT = "checkpoint.pt"
CHECKPOINTS = "checkpoints"
# Called with the epoch, its finished batches and all its batches.
BatchProgress = Callable[[int, int, int], None]
# Called with a row of the history: epoch, train, valid (perplexities), seconds.
EpochProgress = Callable[[dict[str, float]], None]


def build_network(vocabulary: int, settings: TrainingSettings) -> LstmModel | TdlmModel:
    """A model with random weights, drawn by torch's global generator."""
    if settings.topic:
        return TdlmModel(vocabulary, settings, settings.topic)
    return LstmModel(vocabulary, settings)


def set_embeddings(model: LstmModel | TdlmModel, vectors: np.ndarray) -> None:
    """Set known word vectors in the embeddings of the language and the topic model."""
    has_vector = torch.from_numpy(~np.isnan(vectors[:, 0]))
    if isinstance(model, TdlmModel):
        embeddings = [model.language.embedding, model.topic.embedding]
    else:
        embeddings = [model.embedding]
    with torch.no_grad():
        for embedding in embeddings:
            embedding.weight[has_vector] = torch.from_numpy(vectors).to(embedding.weight.device)[has_vector]


def build_optimizers(model: LstmModel | TdlmModel, settings: TrainingSettings) -> list[torch.optim.Adam]:
    """Adam for the language model and, with separate moments, for the topic model."""
    optimizers = [torch.optim.Adam(model.parameters(), lr=settings.rate)]
    if isinstance(model, TdlmModel):
        optimizers.append(torch.optim.Adam(model.topic.parameters(), lr=settings.rate))
    return optimizers


def language_step(
    model: LstmModel | TdlmModel,
    optimizer: torch.optim.Adam,
    text: TrainingText,
    rows: np.ndarray,
    settings: TrainingSettings,
    device: str,
) -> float:
    """Train on a batch segment by segment; returns its total loss in nats.

    The state carries over from segment to segment, the gradient does not (truncated back-propagation).
    """
    batch = pad_sequences(text, rows)
    ids = torch.from_numpy(batch.ids).to(device)
    state = None
    nats = 0.0
    for begin in range(0, batch.ids.shape[1] - 1, settings.steps):
        optimizer.zero_grad(set_to_none=True)
        topic = _topic_vectors(model, text, rows, settings, device)
        hidden, state = model.read(ids[:, begin:-1][:, : settings.steps], state, topic)
        state = (state[0].detach(), state[1].detach())
        loss = _nats(model, hidden, ids, _wanted(batch, begin, hidden.shape[1], device), begin)
        (loss / len(rows)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        nats += float(loss.detach())
    return nats


def topic_step(
    model: TdlmModel,
    optimizer: torch.optim.Adam,
    text: TrainingText,
    sequences: np.ndarray,
    document: int,
    device: str,
) -> None:
    """Train on predicting a few words of each document from the whole document."""
    documents = pad_documents(text, sequences[:, 0], document=document)
    targets = pad([text.content[begin:end] for _, begin, end in sequences])
    optimizer.zero_grad(set_to_none=True)
    vector = model.topic.read(*_on(documents, device))
    logits = model.topic.predict(vector)
    wanted = torch.from_numpy(np.arange(targets.ids.shape[1]) < targets.lengths[:, None]).to(device)
    rows = wanted.nonzero()[:, 0]
    words = torch.from_numpy(targets.ids).to(device)[wanted]
    loss = cross_entropy(logits[rows], words, reduction="sum") / len(sequences)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def measure_nats(
    model: LstmModel | TdlmModel, text: TrainingText, settings: TrainingSettings, device: str
) -> float:
    """The surprisal of a whole text, in nats; each sequence from its beginning, without dropout."""
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for rows in plan_validation(text.lengths, batch=settings.batch):
            batch = pad_sequences(text, rows)
            ids = torch.from_numpy(batch.ids).to(device)
            topic = _topic_vectors(model, text, rows, settings, device)
            state = None
            for begin in range(0, batch.ids.shape[1] - 1, settings.steps):
                hidden, state = model.read(ids[:, begin:-1][:, : settings.steps], state, topic)
                wanted = _wanted(batch, begin, hidden.shape[1], device)
                total += float(_nats(model, hidden, ids, wanted, begin))
    model.train()
    return total


def _nats(model: LstmModel | TdlmModel, hidden: Tensor, ids: Tensor, wanted: Tensor, begin: int) -> Tensor:
    targets = ids[:, begin + 1 : begin + 1 + hidden.shape[1]]
    return cross_entropy(model.predict(hidden[wanted]), targets[wanted], reduction="sum")


def _wanted(batch: Padded, begin: int, size: int, device: str) -> Tensor:
    """Which words of a segment have a next word to predict."""
    position = begin + np.arange(size)
    return torch.from_numpy(position < batch.lengths[:, None] - 1).to(device)


def _topic_vectors(
    model: Any, text: TrainingText, rows: np.ndarray, settings: TrainingSettings, device: str
) -> Tensor | None:
    if not isinstance(model, TdlmModel) or not settings.topic:
        return None
    others = pad_rest_of_documents(text, rows, document=settings.topic.document)
    return model.topic.read(*_on(others, device))


def _on(padded: Padded, device: str) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(padded.ids).to(device), torch.from_numpy(padded.lengths).to(device)


@dataclass
class TrainingState:
    """The progress of a training.

    epoch, step: the next batch. nats, words: of the language batches of this epoch so far.
    best: the lowest validation perplexity. stale: epochs since then. history: one row per epoch.
    """

    epoch: int = 1
    step: int = 0
    nats: float = 0.0
    words: int = 0
    best: float = float("inf")
    stale: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass
class Training:
    """A training in progress."""

    model: LstmModel | TdlmModel
    optimizers: list[torch.optim.Adam]
    so_far: TrainingState
    device: str


def save_checkpoint(training: Training, folder: Path, *, key: str) -> None:
    """Write the state; a reader sees the old one or the new one, never part of one."""
    state = {
        "key": key,
        "model": training.model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in training.optimizers],
        "so_far": dict(vars(training.so_far)),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if training.device.startswith("cuda") else [],
    }
    with replacing(folder / CHECKPOINT) as part:
        torch.save(state, part)


def load_checkpoint(training: Training, folder: Path, *, key: str) -> bool:
    """Restore a training from its checkpoint; False if there is none.

    Raises BadInput if the checkpoint is damaged or belongs to another training.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        return False
    state = _read(path)
    if state.get("key") != key:
        raise BadInput(
            f"{folder} contains a training with other settings or corpus; choose another folder with -o."
        )
    try:
        training.model.load_state_dict(state["model"])
        for optimizer, saved in zip(training.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        training.so_far = TrainingState(**state["so_far"])
        torch.set_rng_state(state["random"])
        if training.device.startswith("cuda") and state["random_cuda"]:
            torch.cuda.set_rng_state_all(state["random_cuda"])
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is not a checkpoint of this training; remove it to start over.") from error
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, KeyError, ValueError) as error:
        raise BadInput(f"{path} is damaged; remove it to start over.") from error
    return state if isinstance(state, dict) else {}


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training; `stopped` says that validation perplexity no longer fell."""

    epochs: int
    best: float
    stopped: bool
    history: list[dict[str, float]]


def begin_training(prepared: Prepared, folder: Path, settings: TrainingSettings) -> None:
    """Create the folder of a training, or check that it contains this very training.

    Raises BadInput if it contains something else, FelicityError if it cannot be written.
    """
    prepare_folder(folder, TrainedRecord(settings, prepared.corpus, prepared.key), prepared.table)


def train(
    prepared: Prepared,
    folder: Path,
    settings: TrainingSettings,
    *,
    device: str = "cpu",
    minutes: float = 10.0,
    kept: Sequence[int] = (),
    on_batch: BatchProgress | None = None,
    on_epoch: EpochProgress | None = None,
) -> TrainingResult:
    """Train until validation perplexity no longer falls; the best weights are kept in `folder`.

    kept: numbers of words after which a copy of the model is kept in `checkpoints/words-N`, for learning
    curves; words of all epochs count.

    A checkpoint is written after every epoch and every `minutes`. Called again with the same corpus and
    settings, training resumes there and ends with the weights of an uninterrupted training.

    Raises BadInput if the folder contains another training, FelicityError if it cannot be written.
    """
    begin_training(prepared, folder, settings)
    with _lock_folder(folder), torch.random.fork_rng():
        clear_leftovers(folder)
        torch.manual_seed(settings.seed)
        model = build_network(len(prepared.table), settings).to(device)
        if prepared.vectors is not None:
            set_embeddings(model, prepared.vectors)
        training = Training(model, build_optimizers(model, settings), TrainingState(), device)
        load_checkpoint(training, folder, key=prepared.key)
        while not _is_done(training.so_far, settings):
            began = time.monotonic()
            _run_epoch(training, prepared, folder, settings, minutes, on_batch, kept)
            row = _finish_epoch(training, prepared, folder, settings)
            row["seconds"] = round(time.monotonic() - began, 1)
            save_checkpoint(training, folder, key=prepared.key)
            write_json(folder / HISTORY, training.so_far.history)
            if on_epoch:
                on_epoch(row)
        so_far = training.so_far
        return TrainingResult(
            so_far.epoch - 1, so_far.best, so_far.stale >= settings.patience, so_far.history
        )


def _run_epoch(
    training: Training,
    prepared: Prepared,
    folder: Path,
    settings: TrainingSettings,
    minutes: float,
    on_batch: BatchProgress | None,
    kept: Sequence[int],
) -> None:
    """Train on the remaining batches of the epoch."""
    earlier = (training.so_far.epoch - 1) * int(prepared.text.lengths.sum())
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
            before = earlier + so_far.words
            so_far.words += int(text.lengths[step.rows].sum())
            due = [words for words in kept if before < words <= earlier + so_far.words]
            if due:
                keep_model(training, prepared, folder, settings, words=max(due))
        so_far.step += 1
        if not math.isfinite(so_far.nats):
            raise _lost(folder)
        if on_batch:
            on_batch(so_far.epoch, so_far.step, len(steps))
        if time.monotonic() - saved >= 60 * minutes and so_far.step < len(steps):
            save_checkpoint(training, folder, key=prepared.key)
            saved = time.monotonic()


def keep_model(
    training: Training, prepared: Prepared, folder: Path, settings: TrainingSettings, *, words: int
) -> None:
    """A model folder with the weights as they are now, named after the number of words seen."""
    place = folder / CHECKPOINTS / f"words-{words}"
    prepare_folder(place, TrainedRecord(settings, prepared.corpus, prepared.key), prepared.table)
    save_weights(training.model, place)


def save_weights(model: LstmModel | TdlmModel, folder: Path) -> None:
    """Write the weights of a model into its folder."""
    with replacing(folder / WEIGHTS) as part:
        save_file({name: value.cpu().contiguous() for name, value in model.state_dict().items()}, part)


def _finish_epoch(
    training: Training, prepared: Prepared, folder: Path, settings: TrainingSettings
) -> dict[str, Any]:
    """Measure validation perplexity, keep the weights if it is the best so far, start the next epoch."""
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
        save_weights(training.model, folder)
    else:
        so_far.stale += 1
    so_far.history.append(row)
    so_far.epoch, so_far.step, so_far.nats, so_far.words = so_far.epoch + 1, 0, 0.0, 0
    return row


def _lost(folder: Path) -> FelicityError:
    return FelicityError(f"The training in {folder} has diverged (its loss is not finite); lower --rate.")


def _is_done(so_far: TrainingState, settings: TrainingSettings) -> bool:
    return so_far.epoch > settings.epochs or so_far.stale >= settings.patience


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Keep two processes from training in one folder; the lock ends with its process."""
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
