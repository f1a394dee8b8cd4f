"""The public Python face: one function for each command that is not a study.

`import felicity as fe` offers them, and the command line calls them; each prints nothing and gives a result
that shows itself in a notebook.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
