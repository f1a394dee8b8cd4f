"""Transcripts of our own making with the shares of each fault that Shivagunde et al. (2023) report.

Appendix B of the paper: of 12,000 sentences for NEG-1500-SIMP-GEN 62.5% were duplicates, 15% empty lines,
8.75% only negated sentences and 1.25% others; of 4,700 for ROLE-1500 32.5% were duplicates, 14.3% had no
pair or were simple sentences, 8.5% were empty lines, 7.4% semantically wrong or wrongly reversed, 5.3%
repeated the instruction or were partial.
"""

import random
from itertools import product

Block = list[str]
LETTERS = "bdfgklmnprst"
ROLE_INSTRUCTION = "The task is to reverse the role in the sentences. Generate more sentences like this:"


def make_words(n: int, *, seed: int) -> list[str]:
    """Nonsense nouns, all different, in a fixed order; none begins with a vowel or looks like a plural."""
    syllables = [first + vowel for first, vowel in product(LETTERS, "aeiou")]
    words = ["".join(parts) + "n" for parts in product(syllables, repeat=3)]
    words = [word for word in words if not word.endswith("men")]
    random.Random(seed).shuffle(words)
    return words[:n]


def mix(blocks: list[Block], copies: list[int], *, seed: int) -> list[Block]:
    """Blocks in a random order, and copies of some of them at random places behind the original."""
    rng = random.Random(seed)
    order = list(range(len(blocks)))
    rng.shuffle(order)
    keyed = [(float(place), blocks[number]) for place, number in enumerate(order)]
    places = {number: place for place, number in enumerate(order)}
    for number in copies:
        place = places[number]
        keyed.append((place + rng.uniform(0.5, len(blocks) - place), blocks[number]))
    return [block for _, block in sorted(keyed, key=lambda pair: pair[0])]


def cut_answers(blocks: list[Block], *, size: int = 12) -> list[str]:
    """Answers of some blocks each, a sentence a line."""
    parts = [blocks[begin : begin + size] for begin in range(0, len(blocks), size)]
    return ["".join(f"{line},\n" if line else "\n" for block in part for line in block) for part in parts]


def build_negation() -> tuple[list[str], set[str]]:
    """12,000 sentences in answers, and the first sentences that a person is to reject."""
    words = make_words(3000, seed=1)
    kept = [[f"A {word} is a bird", f"A {word} is not a tool"] for word in words[:750]]
    wrong = [[f"A {word} is a weather", f"A {word} is not a tool"] for word in words[750:770]]
    tautologies = [[f"A {word} is a {word}", f"A {word} is not a tool"] for word in words[770:800]]
    wide = [[f"A {word} is a kitchen tool", f"A {word} is not a bird"] for word in words[800:825]]
    negated = [[f"A {word} is not a bird"] for word in words[825:1875]]
    blocks = [*kept, *wrong, *tautologies, *wide, *negated, *([""] for _ in range(1800))]
    copies = [number % 750 for number in range(3750)]
    return cut_answers(mix(blocks, copies, seed=2)), {block[0] for block in wrong}


def build_roles() -> tuple[list[str], set[str]]:
    """4,700 sentences in answers, and the first sentences that a person is to reject."""
    words = iter(make_words(6000, seed=3))

    def pair(*, swap: bool = True) -> Block:
        head, one, two = next(words), next(words), next(words)
        nouns = (two, one) if swap else (one, two)
        first = f"the {head} knew which {one} the {two} had seen"
        return [first, f"the {head} knew which {nouns[0]} the {nouns[1]} had helped"]

    kept = [pair() for _ in range(750)]
    wrong = [pair() for _ in range(50)]
    unturned = [pair(swap=False) for _ in range(125)]
    alone = [pair()[:1] for _ in range(400)]
    simple = [[f"the {next(words)} treated the {next(words)}"] for _ in range(272)]
    echoes = [[ROLE_INSTRUCTION] for _ in range(100)]
    halves = [[f"the {next(words)} knew which {next(words)} the"] for _ in range(150)]
    blocks = [*kept, *wrong, *unturned, *alone, *simple, *echoes, *halves, *([""] for _ in range(400))]
    copies = [number % 750 for number in range(764)]
    return cut_answers(mix(blocks, copies, seed=4)), {block[0] for block in wrong}
