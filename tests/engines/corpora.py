"""Small languages for trained models to learn in seconds."""

from pathlib import Path

import numpy as np

SINGULAR, PLURAL = ["cat", "dog", "bird", "child"], ["cats", "dogs", "birds", "children"]
TOPICS = {
    "sea": ["ship", "wave", "sailor", "harbour", "fish", "anchor", "storm", "island", "whale", "captain"],
    "court": ["judge", "lawyer", "trial", "verdict", "witness", "jury", "crime", "prison", "appeal", "law"],
    "kitchen": ["cook", "oven", "bread", "sugar", "knife", "flour", "butter", "soup", "spoon", "recipe"],
}


def agreeing_lines(seed: int, n: int) -> list[str]:
    """Sentences whose verb agrees with its subject across a phrase."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        subjects, verbs = (SINGULAR, ["runs", "sleeps"]) if rng.random() < 0.5 else (PLURAL, ["run", "sleep"])
        near = rng.choice(["", "near the river ", "behind the old house "])
        lines.append(f"The {rng.choice(subjects)} {near}{rng.choice(verbs)} here .")
    return lines


def topical_documents(seed: int, n: int) -> list[tuple[str, list[str]]]:
    """Documents of five sentences, each document of one topic."""
    rng = np.random.default_rng(seed)
    documents = []
    for place in range(n):
        name = list(TOPICS)[place % len(TOPICS)]
        pairs = [rng.choice(TOPICS[name], size=3) for _ in range(5)]
        documents.append((name, [f"The {a} saw the {b} with a {c} ." for a, b, c in pairs]))
    return documents


def write_documents(path: Path, documents: list[tuple[str, list[str]]]) -> Path:
    """A document a line, tabs between its sentences."""
    path.write_text("\n".join("\t".join(sentences) for _, sentences in documents) + "\n")
    return path


def unigram_perplexity(train: list[str], held: list[str]) -> float:
    """A model of word frequencies, ends of lines counted, an added count for each type."""
    words = [word for line in train for word in [*line.lower().split(), "</s>"]]
    types, counts = np.unique(words, return_counts=True)
    probability = dict(zip(types.tolist(), (counts + 1) / (counts + 1).sum(), strict=True))
    met = [probability[word] for line in held for word in [*line.lower().split(), "</s>"]]
    return float(np.exp(-np.mean(np.log(met))))
