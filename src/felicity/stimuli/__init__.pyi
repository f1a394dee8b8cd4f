from .items import Pair as Pair
from .items import check_items_file as check_items_file
from .items import read_sentence_pairs as read_sentence_pairs
from .items import split_target as split_target
from .items import write_items as write_items
