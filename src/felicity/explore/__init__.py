"""Looking at runs down to the token: what the pages of `felicity explore` show.

Tables stay on disk and are read when needed; nothing here knows about pages.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
