"""What people decide about proposed pairs: the log, its replay, and the queue."""

from felicity.stimuli.review.log import Event as Event
from felicity.stimuli.review.log import Log as Log
from felicity.stimuli.review.log import LogCheck as LogCheck
from felicity.stimuli.review.log import verify_log as verify_log
from felicity.stimuli.review.queue import Decided as Decided
from felicity.stimuli.review.queue import Queue as Queue
from felicity.stimuli.review.queue import Shown as Shown
from felicity.stimuli.review.replay import PAPER_ROWS as PAPER_ROWS
from felicity.stimuli.review.replay import Decision as Decision
from felicity.stimuli.review.replay import Proposal as Proposal
from felicity.stimuli.review.replay import State as State
from felicity.stimuli.review.replay import balance_targets as balance_targets
from felicity.stimuli.review.replay import list_second_readings as list_second_readings
from felicity.stimuli.review.replay import replay_log as replay_log
from felicity.stimuli.review.replay import tabulate_rejections as tabulate_rejections
