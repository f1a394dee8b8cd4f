from .engine import MASKED as MASKED
from .engine import ClozeEngine as ClozeEngine
from .engine import find_word_ends as find_word_ends
from .xlnet import XLNET as XLNET
