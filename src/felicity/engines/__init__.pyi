from .families import open_engine as open_engine
from .families import open_tokenizer as open_tokenizer
from .sources.checkpoints import Checkpoint as Checkpoint
from .sources.checkpoints import list_checkpoints as list_checkpoints
from .token_counter import CountTokens as CountTokens
from .token_counter import has_weights as has_weights
from .token_counter import open_counter as open_counter
