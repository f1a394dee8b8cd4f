"""Looking at runs down to the token: what the pages of `felicity explore` show.

Tables stay on the disk and are read as they are asked for; nothing here knows about pages.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
