from .opening import FAMILY as FAMILY
from .opening import open_served as open_served
from .settings import CostEstimate as CostEstimate
from .settings import Serving as Serving
from .settings import is_served as is_served
from .settings import refuse_compute as refuse_compute
from .settings import refuse_for_local as refuse_for_local
