"""One step of training, and the perplexity of a text: the parts that know torch."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from felicity.engines.trained.batches import (
    Padded,
    pad,
    pad_documents,
    pad_others,
    pad_sequences,
    plan_reading,
)
from felicity.engines.trained.lstm_model import LstmModel
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.tdlm_model import TdlmModel
from felicity.engines.trained.text import TrainingText


def build_network(vocabulary: int, settings: TrainingSettings) -> LstmModel | TdlmModel:
    """A model with random weights; torch's own generator decides which."""
    if settings.topic:
        return TdlmModel(vocabulary, settings, settings.topic)
    return LstmModel(vocabulary, settings)


def begin_with(model: LstmModel | TdlmModel, vectors: np.ndarray) -> None:
    """Put known word vectors into the embeddings of the language and the topic model."""
    known = torch.from_numpy(~np.isnan(vectors[:, 0]))
    if isinstance(model, TdlmModel):
        embeddings = [model.language.embedding, model.topic.embedding]
    else:
        embeddings = [model.embedding]
    with torch.no_grad():
        for embedding in embeddings:
            embedding.weight[known] = torch.from_numpy(vectors).to(embedding.weight.device)[known]


def build_optimizers(model: LstmModel | TdlmModel, settings: TrainingSettings) -> list[torch.optim.Adam]:
    """Adam for the language model and, with its own moments, for the topic model."""
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
    """Read a batch piece by piece, learning after each; the nats it cost.

    The state goes on from piece to piece, the gradient does not (truncated back-propagation).
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
    """Learn to predict a few words of each document from the document as a whole."""
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
        for rows in plan_reading(text.lengths, batch=settings.batch):
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
    """Which words of a piece have one behind them to predict."""
    place = begin + np.arange(size)
    return torch.from_numpy(place < batch.lengths[:, None] - 1).to(device)


def _topic_vectors(
    model: Any, text: TrainingText, rows: np.ndarray, settings: TrainingSettings, device: str
) -> Tensor | None:
    if not isinstance(model, TdlmModel) or not settings.topic:
        return None
    others = pad_others(text, rows, document=settings.topic.document)
    return model.topic.read(*_on(others, device))


def _on(padded: Padded, device: str) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(padded.ids).to(device), torch.from_numpy(padded.lengths).to(device)
