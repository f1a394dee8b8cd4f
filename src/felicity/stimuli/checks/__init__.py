"""What is wrong with finished stimuli: within a sentence, between the two of a pair, and across a set."""

from felicity.stimuli.checks.minimal_pairs import PAIR_RULES as PAIR_RULES
from felicity.stimuli.checks.minimal_pairs import Finding as Finding
from felicity.stimuli.checks.minimal_pairs import MinimalPair as MinimalPair
from felicity.stimuli.checks.minimal_pairs import check_minimal_pairs as check_minimal_pairs
from felicity.stimuli.checks.minimal_pairs import check_sentences as check_sentences
from felicity.stimuli.checks.minimal_pairs import check_swaps as check_swaps
from felicity.stimuli.checks.minimal_pairs import fold_findings as fold_findings
from felicity.stimuli.checks.minimal_pairs import looks_english as looks_english
from felicity.stimuli.checks.sentences import SENTENCE_RULES as SENTENCE_RULES
from felicity.stimuli.checks.sentences import Knowledge as Knowledge
from felicity.stimuli.checks.sentences import find_faults as find_faults
from felicity.stimuli.checks.sentences import find_wrong_articles as find_wrong_articles
from felicity.stimuli.checks.sentences import open_knowledge as open_knowledge
from felicity.stimuli.checks.sentences import split_words as split_words
from felicity.stimuli.checks.word_list import WordList as WordList
from felicity.stimuli.checks.word_list import read_function_words as read_function_words
from felicity.stimuli.checks.word_list import read_wordnet as read_wordnet
