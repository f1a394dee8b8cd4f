"""The rating site: consent to completion code, and the researcher's page."""

from felicity.web.rating.addresses import AddressLimit
from felicity.web.rating.app import RatingOptions, create_rating_site
from felicity.web.rating.static_preview import write_preview_page

__all__ = ["AddressLimit", "RatingOptions", "create_rating_site", "write_preview_page"]
