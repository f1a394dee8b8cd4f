"""Making stimuli: pairs from a grammar, items from templates, from a model, and from people's decisions.

Each package is imported by its own door: `stimuli.pairs`, `stimuli.designs`, `stimuli.templates`,
`stimuli.extension`, `stimuli.round_trip` and `stimuli.review`. The room is handed functions that count
tokens, give frequencies or generate text.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
