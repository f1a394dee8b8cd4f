"""The networks: an LSTM, and the topically driven language model of Lau, Baldwin & Cohn (2017), in torch.

A convolution over the document's content words, pooled by maximum, gives its vector d. With topic input
vectors A and output vectors B, the document's topic vector is s = softmax(A d) B. The topic model predicts
the document's words from s alone. The language model is an LSTM whose hidden vector h is gated by s:

    z = sigmoid(Wz s + Uz h + bz)    r = sigmoid(Wr s + Ur h + br)
    h' = (1 - z) h + z tanh(Wh s + Uh (r h) + bh)

Without a document s is zero.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from felicity.engines.trained.settings import TopicSettings, TrainingSettings

State = tuple[Tensor, Tensor]


class LstmModel(nn.Module):
    """log p(word | words before it), from a learned state.

    Dropout is applied before and after the LSTM; weights are initialized as in Lau et al.'s program:
    embeddings near zero, matrices after Glorot, forget gates open.
    """

    def __init__(self, vocabulary: int, settings: TrainingSettings) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, settings.embedding)
        self.lstm = nn.LSTM(
            settings.embedding,
            settings.hidden,
            settings.layers,
            dropout=settings.dropout if settings.layers > 1 else 0.0,
            batch_first=True,
        )
        self.output = nn.Linear(settings.hidden, vocabulary)
        self.dropout = nn.Dropout(settings.dropout)
        nn.init.uniform_(self.embedding.weight, -0.5 / settings.embedding, 0.5 / settings.embedding)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        for name, weight in self.lstm.named_parameters():
            if name.startswith("weight"):
                nn.init.xavier_uniform_(weight)
            else:
                nn.init.zeros_(weight)
                if name.startswith("bias_ih"):
                    nn.init.ones_(weight[settings.hidden : 2 * settings.hidden])

    def read(self, ids: Tensor, state: State | None, _topic: Tensor | None = None) -> tuple[Tensor, State]:
        """The hidden vector after each word, and the state after the last; an LSTM has no topic."""
        hidden, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.dropout(hidden), state

    def predict(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        logits: Tensor = self.output(hidden)
        return logits


class TopicModel(nn.Module):
    """From a document to its topic vector, and from that to words."""

    def __init__(self, vocabulary: int, embedding: int, topic: TopicSettings) -> None:
        super().__init__()
        self.width = topic.width
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.convolution = nn.Conv1d(embedding, topic.filters, topic.width)
        self.topic_input = nn.Parameter(torch.empty(topic.topics, topic.filters))
        self.topic_output = nn.Parameter(torch.empty(topic.topics, topic.size))
        self.output = nn.Linear(topic.size, vocabulary)
        self.dropout = nn.Dropout(topic.dropout)
        nn.init.uniform_(self.embedding.weight, -0.5 / embedding, 0.5 / embedding)
        nn.init.trunc_normal_(self.convolution.weight, std=0.1, a=-0.2, b=0.2)
        for bias in (self.convolution.bias, self.output.bias):
            if bias is not None:
                nn.init.zeros_(bias)
        for weight in (self.topic_input, self.topic_output, self.output.weight):
            nn.init.xavier_uniform_(weight)

    def attend(self, documents: Tensor, lengths: Tensor) -> Tensor:
        """The share of each topic in each document; documents are padded at the end."""
        words = self.dropout(self.embedding(documents))
        inside = torch.arange(documents.shape[1], device=documents.device) < lengths[:, None]
        words = words * inside[:, :, None]
        if documents.shape[1] < self.width:
            words = nn.functional.pad(words, (0, 0, 0, self.width - documents.shape[1]))
        features = self.convolution(words.transpose(1, 2))
        position = torch.arange(features.shape[2], device=documents.device)
        # A document shorter than a filter counts in the first window only.
        last = (lengths - self.width).clamp(min=0)
        features = features.masked_fill((position > last[:, None])[:, None, :], float("-inf"))
        return softmax(features.amax(dim=2) @ self.topic_input.T, dim=1)

    def read(self, documents: Tensor, lengths: Tensor) -> Tensor:
        """The topic vector of each document; zero for an empty document."""
        vector: Tensor = self.dropout(self.attend(documents, lengths) @ self.topic_output)
        return vector * (lengths > 0)[:, None]

    def predict(self, vector: Tensor) -> Tensor:
        """Logits over the vocabulary for the document's words."""
        logits: Tensor = self.output(vector)
        return logits

    def topics(self) -> Tensor:
        """Logits of words for each topic alone."""
        return self.predict(self.topic_output)


class TdlmModel(nn.Module):
    """An LSTM whose predictions depend on the document's topics."""

    def __init__(self, vocabulary: int, settings: TrainingSettings, topic: TopicSettings) -> None:
        super().__init__()
        self.language = LstmModel(vocabulary, settings)
        self.topic = TopicModel(vocabulary, settings.embedding, topic)
        size = settings.hidden
        self.gates = nn.Linear(topic.size + size, 2 * size)
        self.from_topic = nn.Linear(topic.size, size)
        self.from_hidden = nn.Linear(size, size, bias=False)
        for layer in (self.gates, self.from_topic, self.from_hidden):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.ones_(self.gates.bias)
        nn.init.zeros_(self.from_topic.bias)

    def read(self, ids: Tensor, state: State | None, topic: Tensor | None = None) -> tuple[Tensor, State]:
        """The gated hidden vector after each word, and the LSTM's state after the last."""
        hidden, state = self.language.read(ids, state)
        if topic is None:
            topic = hidden.new_zeros(len(ids), self.from_topic.in_features)
        spread = topic[:, None, :].expand(-1, hidden.shape[1], -1)
        update, reset = torch.sigmoid(self.gates(torch.cat([spread, hidden], dim=2))).chunk(2, dim=2)
        candidate = torch.tanh(self.from_topic(spread) + self.from_hidden(reset * hidden))
        return (1 - update) * hidden + update * candidate, state

    def predict(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        return self.language.predict(hidden)
