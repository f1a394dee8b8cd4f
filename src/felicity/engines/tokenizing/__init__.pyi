from .encoding import Encoded as Encoded
from .encoding import Encoder as Encoder
from .splicing import split_sentences as split_sentences
from .vocabulary import count_tokens as count_tokens
from .vocabulary import find_word_begins as find_word_begins
from .vocabulary import read_lines as read_lines
