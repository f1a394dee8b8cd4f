"""Sets extended by a language model: prompts, raw answers, rules with reasons, and what waits for people."""

from felicity.stimuli.extension.extend import Extension as Extension
from felicity.stimuli.extension.extend import ExtensionResult as ExtensionResult
from felicity.stimuli.extension.extend import ExtensionTask as ExtensionTask
from felicity.stimuli.extension.extend import Limits as Limits
from felicity.stimuli.extension.extend import RequestForecast as RequestForecast
from felicity.stimuli.extension.extend import Sorter as Sorter
from felicity.stimuli.extension.forms import FORMS as FORMS
from felicity.stimuli.extension.forms import Form as Form
from felicity.stimuli.extension.forms import Parts as Parts
from felicity.stimuli.extension.forms import guess_form as guess_form
from felicity.stimuli.extension.prompts import Prompt as Prompt
from felicity.stimuli.extension.prompts import build_prompt as build_prompt
from felicity.stimuli.extension.prompts import unique_pairs as unique_pairs
from felicity.stimuli.extension.rules import BY_PEOPLE as BY_PEOPLE
from felicity.stimuli.extension.rules import RULES as RULES
from felicity.stimuli.extension.rules import AnswerRule as AnswerRule
from felicity.stimuli.extension.rules import RuleInput as RuleInput
from felicity.stimuli.extension.rules import Seen as Seen
from felicity.stimuli.extension.rules import Violation as Violation
from felicity.stimuli.extension.rules import check_pair as check_pair
from felicity.stimuli.extension.rules import check_sentence as check_sentence
from felicity.stimuli.extension.rules import check_set as check_set
from felicity.stimuli.extension.rules import count_findings as count_findings
from felicity.stimuli.extension.rules import skipped_rules as skipped_rules
from felicity.stimuli.extension.transcript import ModelAnswer as ModelAnswer
