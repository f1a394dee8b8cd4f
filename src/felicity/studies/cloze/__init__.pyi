from .cloze_page import sections as sections
from .frames import ClozeSet as ClozeSet
from .frames import read_cloze_pairs as read_cloze_pairs
from .frames import read_cloze_set as read_cloze_set
from .probe_tables import analyse as analyse
from .targets import plan as plan
