from .conditions import find_sides as find_sides
from .conditions import read_rules as read_rules
from .drawing import describe_short as describe_short
from .drawing import draw_contexts as draw_contexts
from .plan import ContextPlan as ContextPlan
from .plan import assign_groups as assign_groups
from .sentence_pools import build_pool as build_pool
from .sentence_pools import read_text_file as read_text_file
