from .reading_analysis import analyse as analyse
from .reading_page import sections as sections
from .reading_plan import plan as plan
