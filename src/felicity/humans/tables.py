"""The database of a study: four tables, without a name, an address or a browser in any of them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# One row: what the stored answers belong to, and whether new raters are let in.
study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("closed", Boolean, nullable=False),
    # Withdrawals whose answers may still be readable in a file of the database.
    Column("unerased", Integer, nullable=False, server_default="0"),
    Column("created", Float, nullable=False),
)

raters = Table(
    "raters",
    metadata,
    Column("id", String(16), primary_key=True),
    # A keyed hash of the platform's id, so that a rater is known again; null without a platform.
    Column("key_hash", String(64), nullable=True, unique=True),
    Column("test", Boolean, nullable=False),
    Column("state", String(12), nullable=False),
    Column("created", Float, nullable=False),
    Column("consent_hash", String(64), nullable=False),
    Column("code", String(64), nullable=True),
)

slots = Table(
    "slots",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("rater", String(16), ForeignKey("raters.id"), nullable=False),
    Column("list", String(64), nullable=False),
    # 1 for a rater's first list; clocks may be set back.
    Column("number", Integer, nullable=False, server_default="1"),
    Column("turn", Integer, nullable=False),
    Column("first", Boolean, nullable=False),
    Column("state", String(12), nullable=False),
    Column("position", Integer, nullable=False),
    # The order this rater sees: [row of the stimuli, sides exchanged] for every trial.
    Column("trials", JSON, nullable=False),
    Column("lease", Float, nullable=False),
    Column("started", Float, nullable=False),
    Column("finished", Float, nullable=True),
    UniqueConstraint("rater", "list"),
    Index("ix_slots_list_state", "list", "state"),
)

# What the checksum of an answer covers: all that an answer and its revision set.
CHECKED = (
    *("kind", "row", "trial", "role", "key", "value", "raw", "normalised", "correct", "rt_ms", "flags"),
    *("detail", "revised"),
)
NUMBERS = ("value", "rt_ms")


def find_checksum(row: Mapping[str, Any]) -> str:
    """A digest of what an answer says."""
    numbers = {name: row[name] if row[name] is None else float(row[name]) for name in NUMBERS}
    content = json.dumps([numbers.get(name, row[name]) for name in CHECKED], sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _check(context: Any) -> str | None:
    """The checksum of the answer that is being written; None if only a part of it is."""
    given = context.get_current_parameters()
    return find_checksum(given) if all(name in given for name in CHECKED) else None


answers = Table(
    "answers",
    metadata,
    Column("slot", String(16), ForeignKey("slots.id"), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("row", Integer, nullable=True),
    Column("trial", Integer, nullable=False),
    Column("role", String(12), nullable=False),
    # The idempotency key of the form that stored this answer last.
    Column("key", String(64), nullable=False),
    Column("value", Float, nullable=True),
    Column("raw", Text, nullable=False),
    Column("normalised", Text, nullable=True),
    Column("correct", Boolean, nullable=True),
    Column("rt_ms", Float, nullable=True),
    Column("server_ms", Float, nullable=True),
    Column("flags", JSON, nullable=False),
    Column("detail", JSON, nullable=False),
    Column("created", Float, nullable=False),
    Column("revised", Integer, nullable=False),
    Column("checksum", String(16), nullable=True, default=_check, onupdate=_check),
)
