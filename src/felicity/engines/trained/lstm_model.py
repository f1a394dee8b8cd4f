"""The LSTM language model, in torch."""

from torch import Tensor, nn

from felicity.engines.trained.settings import TrainingSettings

State = tuple[Tensor, Tensor]


class LstmModel(nn.Module):
    """log p(word | words before it), from a learned state.

    Dropout stands before and behind the LSTM; weights begin as in Lau et al.'s program: embeddings near
    zero, matrices after Glorot, forget gates open.
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
        """The hidden vector behind each word, and the state behind the last; an LSTM has no topic."""
        hidden, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.dropout(hidden), state

    def predict(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        logits: Tensor = self.output(hidden)
        return logits
