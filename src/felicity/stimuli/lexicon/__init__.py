"""The words: tables of nouns, verbs, adjectives, names and function words, with their features."""

from felicity.stimuli.lexicon.entries import ENGLISH, Lexicon, Reading, read_lexicon

__all__ = ["ENGLISH", "Lexicon", "Reading", "read_lexicon"]
