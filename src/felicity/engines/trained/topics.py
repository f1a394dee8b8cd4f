"""What the topics of a TDLM are about: their most probable words."""

from pathlib import Path

import numpy as np

from felicity.core.errors import FelicityError, NotPossible
from felicity.engines.trained.folder import read_record, read_words
from felicity.engines.words.files import is_word_model


def list_topics(folder: Path, *, k: int = 10) -> list[list[tuple[str, float]]]:
    """For each topic its `k` most probable content words and their probabilities.

    Raises NotPossible where the model has no topics.
    """
    if not folder.is_dir() or not is_word_model(folder) or not read_record(folder).settings.topic:
        raise NotPossible(
            f"{folder} has no topics; give the folder of a model that `felicity train tdlm` wrote."
        )
    if k < 1:
        raise FelicityError("There is nothing to show of 0 words; give -k a number from 1.")
    import torch

    from felicity.engines.trained.loading import load_trained
    from felicity.engines.trained.tdlm_model import TdlmModel

    model, table = load_trained(folder, device="cpu"), read_words(folder)
    if not isinstance(model, TdlmModel):
        raise NotPossible(
            f"{folder} has no topics; give the folder of a model that `felicity train tdlm` wrote."
        )
    with torch.inference_mode():
        probability = torch.softmax(model.topic.topics(), dim=1).numpy()
    telling = np.flatnonzero(table.content)
    best = telling[np.argsort(-probability[:, telling], axis=1, kind="stable")[:, :k]]
    return [
        [(table.words[place], float(probability[topic, place])) for place in places]
        for topic, places in enumerate(best.tolist())
    ]
