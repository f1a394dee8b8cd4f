from .contents import ContextPage as ContextPage
from .contents import name_kind as name_kind
from .page import write_context_page as write_context_page
