from .agreement import analyse as analyse
from .agreement import compare as compare
from .asking import ask as ask
from .asking import find_pairs as find_pairs
from .asking import plan as plan
from .methods_page import sections as sections
from .wording import list_languages as list_languages
from .wording import read_wording as read_wording
