"""Runs in the browser: a site on this machine, or one file without a server."""

from felicity.web.explore.app import create_explore_site, serve_explore
from felicity.web.explore.offline import write_offline_page

__all__ = ["create_explore_site", "serve_explore", "write_offline_page"]
