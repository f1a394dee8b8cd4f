from .engine import CausalEngine as CausalEngine
from .fill import encode_prompt as encode_prompt
from .fill import parse_left_frame as parse_left_frame
from .fill import score_next as score_next
from .word_fill import Predict as Predict
from .word_fill import continue_words as continue_words
from .word_fill import fill_words as fill_words
