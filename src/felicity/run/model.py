"""A model as a person uses it: texts in, frames out, what was scored before not scored again."""

from collections.abc import Callable, Sequence

import polars as pl

from felicity.core.engine import Engine, EngineInfo
from felicity.core.errors import BadInput
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS
from felicity.engines.devices import Compute
from felicity.engines.families import open_engine
from felicity.run.scoring import Progress, find_missing, read_tokens, score_missing
from felicity.run.store import ScoreStore


class Model:
    """An engine with its store of scores."""

    def __init__(self, engine: Engine, *, spec: str, cache: bool = True) -> None:
        self.engine = engine
        self.spec = spec
        self.store = ScoreStore.shared(engine.info) if cache else ScoreStore(None, engine.info)

    @property
    def info(self) -> EngineInfo:
        """What the model is and how it is asked: family, window, policy, fingerprints."""
        return self.engine.info

    def score(
        self, texts: str | Sequence[str], *, context: str | Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Log-probability of each text, in nats, and its tokens: columns text, lp, n_tokens.

        `context` stands before each text (one for all, or one each) and is not scored itself.

        >>> import felicity as fe
        >>> lm = fe.model("smollm2")
        >>> scores = lm.score(["The cats annoy Tim.", "The cats annoys Tim."])
        >>> scores["lp"][0] > scores["lp"][1]
        True
        """
        tokens = self.tokens(texts, context=context)
        return tokens.select(
            "text",
            pl.col("logprob").list.eval(pl.element().cast(pl.Float64)).list.sum().alias("lp"),
            pl.col("tokens").list.len().alias("n_tokens"),
        )

    def tokens(
        self, texts: str | Sequence[str], *, context: str | Sequence[str] | None = None
    ) -> pl.DataFrame:
        """Every token of each text with its log-probability: columns text, tokens, start, end, logprob.

        Offsets count characters of the text; a token that could not be scored has null.

        >>> import felicity as fe
        >>> fe.model("smollm2").tokens("Cats purr.")["tokens"].to_list()
        [['Cats', 'Ġpur', 'r', '.']]
        """
        prompts = build_prompts(texts, context)
        score_missing(self.engine, self.store, find_missing(self.store, prompts))
        scored = pl.concat(list(read_tokens(self.store, prompts)))
        return scored.select(prompts["text"], "tokens", "start", "end", "logprob")

    def score_all(self, pending: pl.DataFrame, *, progress: Progress | None = None) -> int:
        """Score prompts into the store, from where it stopped; how many texts that took."""
        return score_missing(self.engine, self.store, pending, progress=progress)


def open_model(
    spec: str = "smollm2",
    *,
    policy: Policy | None = None,
    device: str = "auto",
    dtype: str = "float32",
    device_map: str | None = None,
    cache: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Model:
    """A model by name, folder, hub name or .gguf file.

    `device`, `dtype` and `device_map` are as in transformers; a device map wins over the device.

    >>> import felicity as fe
    >>> fe.model("smollm2").info.family
    'causal'
    """
    compute = Compute(device=device, dtype=dtype, device_map=device_map)
    engine = open_engine(spec, policy=policy or Policy(), compute=compute, progress=progress)
    return Model(engine, spec=spec, cache=cache)


def build_prompts(texts: str | Sequence[str], context: str | Sequence[str] | None) -> pl.DataFrame:
    """Texts, and one context for all or one each, as an engine takes them.

    Raises BadInput where a text is not a string or the contexts are too few or too many.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    contexts = [context] * len(texts) if context is None or isinstance(context, str) else list(context)
    if not texts:
        raise BadInput("There is no text to score; give at least one.")
    if len(contexts) != len(texts):
        raise BadInput(
            f"There are {len(texts)} texts but {len(contexts)} contexts; give one for all or one each."
        )
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"Text {place + 1} is {text!r}; give a sentence.")
    names = [f"text {place + 1}" for place in range(len(texts))]
    return pl.DataFrame({"request": names, "context_text": contexts, "text": texts}, schema=PROMPTS)
