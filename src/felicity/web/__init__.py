"""What a browser sees: the rating site, the review queue, and the frame that other pages share.

Like the command line, these pages call the public functions of other rooms and compute nothing.
"""

from felicity.web.rating import RatingOptions, create_rating_site
from felicity.web.review import create_review_site, serve_review
from felicity.web.server import find_port, running, serve, warn_about

__all__ = [
    "RatingOptions",
    "create_rating_site",
    "create_review_site",
    "find_port",
    "running",
    "serve",
    "serve_review",
    "warn_about",
]
