"""Signed cookies and form tokens: who is asking, and which page an answer belongs to."""

import hashlib
import secrets
import time
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from itsdangerous import BadSignature, URLSafeSerializer
from starlette.requests import Request
from starlette.responses import Response

from felicity.humans import find_rater_id

COOKIE_DAYS = 60


@dataclass(frozen=True)
class Session:
    """What a cookie says: a random session, the hash of a platform id, a rater once there is consent.

    Until then it holds the platform id itself, which nobody else keeps before consent. signed: whether the
    link proved whose id it is.
    """

    sid: str
    key_hash: str | None = None
    rater: str | None = None
    test: bool = False
    platform_id: str | None = None
    signed: bool = False


@dataclass(frozen=True)
class FormToken:
    """What a form says: the session and page it was made for, when, and a key used once."""

    sid: str
    slot: str
    step: int
    shown: float
    key: str


class Signer:
    """Signs and reads cookies and form tokens with the study's own key."""

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self.secure = secure
        # A __Host- cookie cannot be set or read by a neighbouring domain. Ports share cookies, so the name
        # distinguishes the studies on one machine.
        fingerprint = hashlib.sha256(key).hexdigest()[:8]
        self.cookie = f"__Host-felicity-{fingerprint}" if secure else f"felicity-{fingerprint}"
        self._sessions = URLSafeSerializer(key.hex(), salt="session")
        self._forms = URLSafeSerializer(key.hex(), salt="form")
        self._researcher = URLSafeSerializer(key.hex(), salt="researcher")

    def read(self, request: Request) -> Session | None:
        """The session of a request, or None if it has none of this site's cookies."""
        values = _load(self._sessions, request.cookies.get(self.cookie, ""))
        if not isinstance(values, list) or len(values) != len(fields(Session)):
            return None
        return Session(*values)

    def write(self, response: Response, session: Session) -> None:
        """Set the cookie of a session."""
        response.set_cookie(
            self.cookie,
            self._sessions.dumps(list(astuple(session))),
            # Before consent it holds the platform id, and is gone when the browser is closed.
            max_age=COOKIE_DAYS * 86_400 if session.rater else None,
            path="/",
            httponly=True,
            samesite="lax",
            secure=self.secure,
        )

    def make_form(self, session: Session, slot: str, step: int) -> str:
        """The token of a page that is about to be sent."""
        return str(
            self._forms.dumps([session.sid, slot, step, round(time.time(), 3), secrets.token_urlsafe(12)])
        )

    def read_form(self, text: str, session: Session | None) -> FormToken | None:
        """A form's token, if it was made for this session."""
        values = _load(self._forms, text)
        if session is None or not isinstance(values, list) or len(values) != 5 or values[0] != session.sid:
            return None
        return FormToken(*values)

    def sign_researcher(self, token: str) -> str:
        """The value of the cookie that a researcher gets for the token."""
        return str(self._researcher.dumps(token))

    def is_researcher(self, request: Request, token: str) -> bool:
        """Whether a request carries the cookie given for this token."""
        return bool(_load(self._researcher, request.cookies.get(f"{self.cookie}-researcher", "")) == token)


def start_session(
    old: Session | None,
    *,
    key_hash: str | None,
    test: bool,
    platform_id: str | None = None,
    signed: bool = False,
) -> Session:
    """The session of someone who arrives; the same person in the same browser keeps theirs."""
    if old is not None and old.key_hash == key_hash and old.test == test:
        kept = platform_id if old.rater is None else None
        return replace(old, platform_id=kept, signed=old.signed or signed)
    return Session(secrets.token_urlsafe(12), key_hash, None, test, platform_id, signed)


def owns_rater(session: Session, rater: str) -> bool:
    """Whether a rater consented in this session, or came with a signed link; an id alone may be another's."""
    return session.signed or find_rater_id(session.sid) == rater


def with_rater(session: Session, rater: str) -> Session:
    """The session after consent."""
    return replace(session, rater=rater, platform_id=None)


def _load(serializer: URLSafeSerializer, text: str) -> Any:
    try:
        return serializer.loads(text)
    except BadSignature:
        return None
