"""The explorer: one page, and the JSON answers that its script requests.

The page is for the person who started it. Its link carries a key, which the script sends as a header with
every question; another origin cannot send that header, and is refused besides.
"""

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.explore import (
    Collection,
    TextCollection,
    average_regions,
    compare_margins,
    describe_collection,
    find_neighbours,
    list_alternatives,
    list_stimuli,
    parse_selection,
    plain,
    read_contexts,
    read_item,
    read_page,
    read_passage,
    read_ratings,
    score_texts,
    tabulate_pairs,
    tabulate_selection,
    tabulate_suites,
)
from felicity.run import Model
from felicity.web.server import find_port, serve_app
from felicity.web.site import Guard, RateLimit, html, make_site, make_templates, same_token

HEADER = "x-felicity-key"
PAGE_SIZE = 50
REQUESTS_PER_SECOND = 100.0
Query = dict[str, list[str]]


def create_explore_site(
    collections: Sequence[Collection | TextCollection], models: Mapping[str, Model], *, key: str
) -> FastAPI:
    """The application for these collections; `key` opens it. models: those that score typed sentences."""
    site = make_site()
    state = _ExplorerState(collections, models, key)
    _add_page(site, state)
    _add_views(site, state)
    _add_texts(site, state)
    _add_files(site, state)
    _add_live(site, state)
    site.add_exception_handler(FelicityError, _tell)
    site.add_exception_handler(RequestValidationError, _refuse_form)
    site.add_middleware(
        Guard,
        limit=RateLimit(REQUESTS_PER_SECOND),
        secure=False,
        refuse=lambda status: JSONResponse(
            {"error": "Too many requests, or a request that is too large."}, status
        ),
    )
    return site


def serve_explore(
    collections: Sequence[Collection | TextCollection],
    models: Mapping[str, Model],
    *,
    port: int = 0,
    started: Callable[[str], None],
) -> None:
    """Serve on this machine alone until interrupted; `started` gets the address with the key."""
    key = secrets.token_urlsafe(16)
    chosen = port or find_port()
    site = create_explore_site(collections, models, key=key)
    serve_app(
        lambda: site,
        host="127.0.0.1",
        port=chosen,
        started=lambda: started(f"http://127.0.0.1:{chosen}/?key={key}"),
    )


async def _tell(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _refuse_form(_: Request, _error: Exception) -> Response:
    # FastAPI's own answer repeats what was sent, which JSON may not be able to hold.
    return JSONResponse({"error": "This is not a question that the explorer's page asks."}, 422)


class _ExplorerState:
    """What every route needs."""

    def __init__(
        self, collections: Sequence[Collection | TextCollection], models: Mapping[str, Model], key: str
    ) -> None:
        self.collections = {collection.name: collection for collection in collections}
        self.models = dict(models)
        self.key = key
        self.templates = make_templates()
        # A model answers one question at a time.
        self.turn = threading.Lock()

    def admit(self, request: Request) -> None:
        """Refuse a request without the key, and any from a page of another origin.

        Raises HTTPException.
        """
        origin = request.headers.get("origin")
        this_site = f"{request.url.scheme}://{request.headers.get('host', '')}"
        crossed = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if crossed or (origin is not None and origin != this_site):
            raise HTTPException(403)
        if not same_token(request.headers.get(HEADER, ""), self.key):
            raise HTTPException(403)

    def read(self, request: Request) -> tuple[Collection, Query]:
        """The judgements that a question is about, and its parameters.

        Raises HTTPException, UnknownName, and BadInput if it is about texts that were read.
        """
        collection, given = self.find(request)
        if isinstance(collection, TextCollection):
            raise BadInput(f"{collection.name} has texts and no judgements; open its words.")
        return collection, given

    def find(self, request: Request) -> tuple[Collection | TextCollection, Query]:
        """The collection that a question is about, and its parameters.

        Raises HTTPException, UnknownName.
        """
        self.admit(request)
        given: Query = {}
        for name, value in request.query_params.multi_items():
            given.setdefault(name, []).append(value)
        name = given.get("data", [next(iter(self.collections))])[0]
        if name not in self.collections:
            raise UnknownName("dataset", name, self.collections)
        return self.collections[name], given


def _answer(value: Any) -> Response:
    return JSONResponse(plain(value))


def _add_page(site: FastAPI, state: _ExplorerState) -> None:
    @site.get("/")
    def page(key: str = "") -> Response:
        if not same_token(key, state.key):
            return html("<p>Open the link that <code>felicity explore</code> printed.</p>", 403)
        content = state.templates.get_template("explore/page.html.j2")
        return html(content.render(lang="en", direction="ltr", title="felicity explore"))

    @site.get("/api/about")
    def about(request: Request) -> Response:
        state.admit(request)
        descriptions = [describe_collection(collection) for collection in state.collections.values()]
        return _answer({"collections": descriptions, "live": list(state.models)})


def _add_views(site: FastAPI, state: _ExplorerState) -> None:
    @site.get("/api/items")
    def items(request: Request) -> Response:
        collection, given = state.read(request)
        number = _whole(given, "page", 1)
        selection = parse_selection(collection, given)
        page = read_page(collection, selection, offset=PAGE_SIZE * (max(number, 1) - 1), size=PAGE_SIZE)
        answer = {"rows": page.rows, "total": page.total, "all": page.all, "facets": page.facets}
        return _answer(answer | {"size": PAGE_SIZE})

    @site.get("/api/item")
    def item(request: Request) -> Response:
        collection, given = state.read(request)
        selection = parse_selection(collection, given)
        key = given.get("key", [""])[0]
        around = find_neighbours(collection, selection, key)
        return _answer(read_item(collection, selection.measure, key) | {"around": around})

    @site.get("/api/compare")
    def compare(request: Request) -> Response:
        collection, given = state.read(request)
        return _answer(compare_margins(collection, parse_selection(collection, given)))

    @site.get("/api/suites")
    def suites(request: Request) -> Response:
        collection, given = state.read(request)
        chosen = parse_selection(collection, given)
        return _answer(tabulate_suites(collection, chosen.measure, chosen.a, chosen.b))

    @site.get("/api/regions")
    def regions(request: Request) -> Response:
        collection, given = state.read(request)
        suites = describe_collection(collection)["suites"]
        suite = given.get("region_suite", suites[:1] or [""])[0]
        if suite not in suites:
            raise UnknownName("suite", suite, suites)
        return _answer(average_regions(collection, suite))

    @site.get("/api/contexts")
    def contexts(request: Request) -> Response:
        collection, _ = state.read(request)
        return _answer(read_contexts(collection))

    @site.get("/api/ratings")
    def ratings(request: Request) -> Response:
        collection, given = state.read(request)
        chosen = parse_selection(collection, given)
        return _answer(read_ratings(collection, chosen.measure, chosen.a))


def _add_texts(site: FastAPI, state: _ExplorerState) -> None:
    @site.get("/api/words")
    def words(request: Request) -> Response:
        collection, given = state.find(request)
        if not isinstance(collection, TextCollection):
            raise BadInput(f"{collection.name} has no texts that people read; open its items.")
        return _answer(read_passage(collection, given.get("text", [""])[0]))


def _whole(given: Query, name: str, default: int) -> int:
    text = given.get(name, [str(default)])[0]
    if not text.isdecimal() or len(text) > 9:
        raise BadInput(f"'{name}' is '{text}'; it should be a whole number.")
    return int(text)


def _add_files(site: FastAPI, state: _ExplorerState) -> None:
    @site.get("/api/selection.csv")
    def selection(request: Request) -> Response:
        collection, given = state.read(request)
        table = tabulate_selection(collection, parse_selection(collection, given))
        return Response(table.write_csv(), media_type="text/csv")

    @site.get("/api/stimuli.csv")
    def stimuli(request: Request) -> Response:
        collection, given = state.read(request)
        table = list_stimuli(collection, parse_selection(collection, given))
        return Response(table.write_csv(), media_type="text/csv")


def _add_live(site: FastAPI, state: _ExplorerState) -> None:
    @site.post("/api/live")
    def live(request: Request, asked: dict[str, Any]) -> Response:
        state.admit(request)
        _need_models(state)
        texts = asked.get("texts")
        if not isinstance(texts, list) or not all(_is_text(text) for text in texts):
            raise BadInput("'texts' should be a list of sentences.")
        contexts = asked.get("contexts")
        if contexts is not None and (
            not isinstance(contexts, list) or not all(_is_text(context) for context in contexts)
        ):
            raise BadInput("'contexts' should be a list of texts.")
        with state.turn:
            return _answer(score_texts(state.models, texts, contexts or _text(asked, "context")))

    @site.post("/api/alternatives")
    def alternatives(request: Request, asked: dict[str, Any]) -> Response:
        state.admit(request)
        _need_models(state)
        name = _text(asked, "model") or next(iter(state.models))
        if name not in state.models:
            raise UnknownName("model", name, state.models)
        text, context = _text(asked, "text"), _text(asked, "context")
        place, k = _number(asked, "place"), _number(asked, "k")
        with state.turn:
            return _answer(list_alternatives(state.models[name], text, place, context=context, k=k))

    @site.post("/api/pairs.csv")
    def pairs(request: Request, asked: dict[str, Any]) -> Response:
        state.admit(request)
        kept = asked.get("pairs")
        if not isinstance(kept, list) or not all(isinstance(pair, dict) for pair in kept):
            raise BadInput("'pairs' should be a list of pairs.")
        texts = [{name: _text(pair, name) for name in ("good", "bad", "context")} for pair in kept]
        return Response(tabulate_pairs(texts).write_csv(), media_type="text/csv")


def _need_models(state: _ExplorerState) -> None:
    if not state.models:
        raise BadInput("No model is loaded; start `felicity explore` with --live.")


def _number(asked: Mapping[str, Any], name: str) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"'{name}' should be a whole number.")
    return value


def _text(asked: Mapping[str, Any], name: str) -> str:
    value = asked.get(name, "")
    if not _is_text(value):
        raise BadInput(f"'{name}' should be a text of whole characters.")
    return str(value)


def _is_text(value: object) -> bool:
    """Whether a value of JSON is a text without half of a character (a lone surrogate)."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
