from .report import sections as sections
from .sweep_analysis import analyse as analyse
from .sweep_plan import plan as plan
