"""Items from templates: frames with typed slots, filled from tables, lists or WordNet."""

from felicity.stimuli.templates.categories import Member as Member
from felicity.stimuli.templates.categories import find_wordnet as find_wordnet
from felicity.stimuli.templates.categories import read_categories as read_categories
from felicity.stimuli.templates.categories import read_hyponyms as read_hyponyms
from felicity.stimuli.templates.frames import fill_frame as fill_frame
from felicity.stimuli.templates.frames import negate as negate
from felicity.stimuli.templates.frames import swap as swap
from felicity.stimuli.templates.hypernyms import Taxonomy as Taxonomy
from felicity.stimuli.templates.hypernyms import keep_true_members as keep_true_members
from felicity.stimuli.templates.hypernyms import read_taxonomy as read_taxonomy
from felicity.stimuli.templates.hypernyms import stands_bare as stands_bare
from felicity.stimuli.templates.noun_forms import add_article as add_article
from felicity.stimuli.templates.noun_forms import is_mass as is_mass
from felicity.stimuli.templates.noun_forms import is_plural as is_plural
from felicity.stimuli.templates.noun_forms import is_proper as is_proper
from felicity.stimuli.templates.noun_forms import pluralize as pluralize
from felicity.stimuli.templates.noun_forms import singularize as singularize
from felicity.stimuli.templates.template import Built as Built
from felicity.stimuli.templates.template import Template as Template
from felicity.stimuli.templates.template import build_from_template as build_from_template
from felicity.stimuli.templates.template import list_templates as list_templates
from felicity.stimuli.templates.template import parse_template as parse_template
from felicity.stimuli.templates.template import read_slot_words as read_slot_words
from felicity.stimuli.templates.template import read_template as read_template
