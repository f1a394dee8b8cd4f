"""The words: tables of nouns, verbs, adjectives, names and function words, with their features."""

from felicity.stimuli.lexicon.entries import ENGLISH, LANGUAGES, Lexicon, WordForm, read_lexicon

__all__ = ["ENGLISH", "LANGUAGES", "Lexicon", "WordForm", "read_lexicon"]
