"""Published figures checked against data: claims files, what computes them, statuses and a page.

>>> from felicity.studies.reproduce import list_papers
>>> "lau2020" in list_papers()
True
"""

from felicity.studies.reproduce.checking import Checked as Checked
from felicity.studies.reproduce.checking import Verdict as Verdict
from felicity.studies.reproduce.checking import check_paper as check_paper
from felicity.studies.reproduce.claims import Claim as Claim
from felicity.studies.reproduce.claims import Paper as Paper
from felicity.studies.reproduce.claims_file import list_papers as list_papers
from felicity.studies.reproduce.claims_file import read_paper as read_paper
from felicity.studies.reproduce.computations import COMPUTATIONS as COMPUTATIONS
from felicity.studies.reproduce.computations import MODEL_COMPUTATIONS as MODEL_COMPUTATIONS
from felicity.studies.reproduce.inputs import Files as Files
from felicity.studies.reproduce.output import count_statuses as count_statuses
from felicity.studies.reproduce.output import describe as describe
from felicity.studies.reproduce.output import write_check as write_check
