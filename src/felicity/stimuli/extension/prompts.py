"""What a language model is asked: the instruction, and k pairs of the seeds drawn without replacement."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.stimuli.items import Pair


@dataclass(frozen=True)
class Prompt:
    """A request's text, and the seeds that it shows."""

    number: int
    text: str
    examples: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The same text has the same digest."""
        return fingerprint(self.text)


def build_prompt(seeds: Sequence[Pair], instruction: str, *, k: int, seed: int, number: int) -> Prompt:
    """The prompt of one request: which examples it shows depends on the seed and its number only.

    Raises BadInput where there are fewer than k seeds.
    """
    if not 1 <= k <= len(seeds):
        raise BadInput(
            f"{k} examples are to be shown and there are {len(seeds)} seeds; choose --examples between."
        )
    chosen = random.Random(f"{seed}/{number}").sample(list(seeds), k)
    shown = "".join(f"{pair.first},\n{pair.second},\n" for pair in chosen)
    return Prompt(number, f"{instruction}\n{shown}", tuple(pair.item for pair in chosen))


def unique_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Seeds without repetitions; the published NEG-136-SIMP lists every pair twice."""
    seen: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        seen.setdefault((pair.first.lower(), pair.second.lower()), pair)
    return list(seen.values())
