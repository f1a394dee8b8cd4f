from .analysis import EVERYTHING as EVERYTHING
from .analysis import SPLITS as SPLITS
from .analysis import count_nontrivial as count_nontrivial
from .analysis import measure_lengths as measure_lengths
from .analysis import split_suites as split_suites
from .study import BiasStudy as BiasStudy
from .study import study_bias as study_bias
from .study import write_bias as write_bias
