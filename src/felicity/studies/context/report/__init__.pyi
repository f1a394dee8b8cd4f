from .contents import ContextPage as ContextPage
from .page import write_context_page as write_context_page
