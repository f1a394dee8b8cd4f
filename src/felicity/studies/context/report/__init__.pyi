from .context_page import sections as sections
