"""What a browser sees: the rating site, the review queue, the explorer, and the frame that other pages share.

Like the command line, these pages call the public functions of other rooms and compute nothing.
"""

from felicity.web.explore import create_explore_site, serve_explore, write_offline_page
from felicity.web.rating import AddressLimit, RatingOptions, create_rating_site, write_preview_page
from felicity.web.review import create_review_site, serve_review
from felicity.web.server import find_port, running, serve_app, warn_about

__all__ = [
    "AddressLimit",
    "RatingOptions",
    "create_explore_site",
    "create_rating_site",
    "create_review_site",
    "find_port",
    "running",
    "serve_app",
    "serve_explore",
    "serve_review",
    "warn_about",
    "write_offline_page",
    "write_preview_page",
]
