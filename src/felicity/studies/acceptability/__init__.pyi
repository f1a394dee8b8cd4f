from .findings import describe_findings as describe_findings
from .ratings import RatedSentences as RatedSentences
from .ratings import read_ratings as read_ratings
from .report import write_acceptability_report as write_acceptability_report
from .stimuli import make_stimuli as make_stimuli
from .study import AcceptabilityStudy as AcceptabilityStudy
from .study import study_acceptability as study_acceptability
