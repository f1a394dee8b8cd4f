"""Sites that run for the length of a test; the rating site has a clock that can be set forward."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from felicity.humans import PlatformIds, RatingStudy, Store, load_keys
from felicity.web import AddressLimit, RatingOptions, create_rating_site, running

TOKEN = "the researcher's token"
EXPLORE_KEY = "the-key-of-the-page"


class Clock:
    """The time of day, plus whatever a test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass(frozen=True)
class Site:
    url: str
    store: Store
    clock: Clock


@contextmanager
def open_site(
    study: RatingStudy,
    *,
    preview: bool = False,
    secure: bool = False,
    database: str | None = None,
    requests_per_second: float = 0,
    limited: bool = False,
) -> Iterator[Site]:
    """Serve a study; limited: with the study's limit on places per address."""
    clock = Clock()
    store = Store(study, database, clock=clock)
    options = RatingOptions(
        token=TOKEN,
        preview=preview,
        secure=secure,
        requests_per_second=requests_per_second,
        addresses=AddressLimit(study.places_per_address) if limited else None,
    )
    keys = load_keys(study.folder)
    site = create_rating_site(store, keys, PlatformIds(study.folder, keys), options)
    with running(site) as url:
        yield Site(url, store, clock)
