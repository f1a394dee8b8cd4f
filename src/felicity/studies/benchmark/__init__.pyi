from .benchmark_page import sections as sections
from .collation import write_predictions as write_predictions
from .scores import analyse as analyse
from .scores import score_task as score_task
from .tasks import plan as plan
