"""Published figures checked against data: claims files, what computes them, statuses and a page.

>>> from felicity.papers.reproduce import list_papers
>>> "lau2020" in list_papers()
True
"""

from felicity.papers.reproduce.checking import Checked as Checked
from felicity.papers.reproduce.checking import Verdict as Verdict
from felicity.papers.reproduce.checking import check_paper as check_paper
from felicity.papers.reproduce.claims import Claim as Claim
from felicity.papers.reproduce.claims import Paper as Paper
from felicity.papers.reproduce.claims_file import list_papers as list_papers
from felicity.papers.reproduce.claims_file import read_paper as read_paper
from felicity.papers.reproduce.computations import COMPUTATIONS as COMPUTATIONS
from felicity.papers.reproduce.computations import MODEL_COMPUTATIONS as MODEL_COMPUTATIONS
from felicity.papers.reproduce.inputs import Files as Files
from felicity.papers.reproduce.output import count_statuses as count_statuses
from felicity.papers.reproduce.output import describe as describe
from felicity.papers.reproduce.output import write_check as write_check
