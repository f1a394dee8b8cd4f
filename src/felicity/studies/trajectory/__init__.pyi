from .checkpoints import plan as plan
from .curves import analyse as analyse
from .trajectory_page import sections as sections
