"""Settings of a study: a frozen dataclass whose fields are command-line options and Python keywords at once.

A field is declared with `argument` or `option`, which give its help; its annotation gives its type. pydantic
checks the values, wherever they come from.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from felicity.core.errors import BadInput, UnknownName

KEY = "option"
# Data as a user gives it: a name, a file, or a polars or pandas frame with the columns of such a file.
Data = str | Path | Any


@dataclass(frozen=True, kw_only=True)
class Option:
    """How a field is given.

    help: what it is, in a sentence. flag: its option, if not the field's name; of a repeatable one, the
    singular. panel: the heading of the help that it is listed under. positional: an argument of the command.
    analysis: whether it affects only what is computed from the scores, so that a study can be
    analysed again with another value. least, most: bounds of a number. choices: the values allowed.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    panel: str | None = None
    positional: bool = False
    analysis: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def argument(help: str, *, default: Any = MISSING, metavar: str | None = None) -> Any:
    """A field that the command takes by position."""
    described = Option(help=help, positional=True, metavar=metavar)
    return field(metadata={KEY: described}, **({} if default is MISSING else {"default": default}))


def option(default: Any, help: str, **described: Any) -> Any:
    """A field that the command takes as an option; `described` are fields of Option."""
    return field(default=default, metadata={KEY: Option(help=help, **described)})


def list_options(settings: type) -> dict[str, tuple[Field[Any], Option, Any]]:
    """Every field by name, with its option and its type."""
    hints = get_type_hints(settings)
    return {one.name: (one, one.metadata[KEY], hints[one.name]) for one in fields(settings)}


def is_repeatable(kind: Any) -> bool:
    """Whether a field takes several values.

    >>> is_repeatable(tuple[str, ...]), is_repeatable(int | None)
    (True, False)
    """
    return get_origin(kind) is tuple and Ellipsis in get_args(kind)


@cache
def _checker(settings: type) -> Any:
    """The pydantic model of a settings class."""
    import pydantic

    described: dict[str, Any] = {}
    for name, (one, about, kind) in list_options(settings).items():
        default = ... if one.default is MISSING else one.default
        limits: dict[str, Any] = {
            key: value for key, value in (("ge", about.least), ("le", about.most)) if value is not None
        }
        described[name] = (kind, pydantic.Field(default, **limits))
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True, coerce_numbers_to_str=False)
    return pydantic.create_model(settings.__name__, __config__=config, **described)


def check_settings(settings: type, given: Mapping[str, Any]) -> Any:
    """An instance of a settings class, with every value checked; a single value stands for a list of one.

    Raises UnknownName for a name that is not a setting or a choice, BadInput for any other wrong value.
    """
    import pydantic

    known = list_options(settings)
    values = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownName("setting", name, known)
        single = is_repeatable(known[name][2]) and isinstance(value, str | Path | int | float)
        values[name] = (value,) if single else value
    try:
        checked = _checker(settings).model_validate(values)
    except pydantic.ValidationError as error:
        raise BadInput(_say(error.errors()[0])) from error
    found = {name: getattr(checked, name) for name in known}
    for name, (_, about, _) in known.items():
        chosen = found[name] if isinstance(found[name], tuple) else (found[name],)
        for value in chosen if about.choices else ():
            if value is not None and value not in about.choices:
                raise UnknownName(name.replace("_", " "), value, about.choices)
    return settings(**found)


def _say(wrong: Mapping[str, Any]) -> str:
    """One sentence about a value that pydantic refuses."""
    name = str(wrong["loc"][0]).replace("_", " ")
    value, limits = wrong.get("input"), wrong.get("ctx", {})
    if wrong["type"] == "missing":
        return f"The setting '{name}' is missing; give it."
    if "ge" in limits or "le" in limits:
        bound = f"at least {limits['ge']:g}" if "ge" in limits else f"at most {limits['le']:g}"
        return f"The setting '{name}' is {value}; it must be {bound}."
    reason = str(wrong["msg"])
    return f"The setting '{name}' is {str(value)[:80]!r}: {reason[:1].lower()}{reason[1:]}."


def record_settings(settings: Any) -> dict[str, Any]:
    """The settings as JSON can hold them; a frame is recorded by its columns and rows."""
    return {one.name: _plain(getattr(settings, one.name)) for one in fields(settings)}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return f"a frame of {len(value):,} rows"


def list_changed(settings: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded settings that are not the defaults."""
    given = [one for one in fields(settings) if one.default is not MISSING]
    defaults = {one.name: _plain(one.default) for one in given}
    return {name: value for name, value in record.items() if value != defaults.get(name)}


def find_other(settings: type, old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first setting that affects scores and differs between two records; None if all are the same."""
    scored = [name for name, (_, about, _) in list_options(settings).items() if not about.analysis]
    return next((name for name in scored if old.get(name) != new.get(name)), None)
