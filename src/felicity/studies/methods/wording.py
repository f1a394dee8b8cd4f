"""The wording of prompts: a TOML file for each language, or one of the user's own."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

from felicity.core.errors import BadInput

# What each prompt must contain, for sentences and for words after a context.
FIELDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "sentence": {
        "in_template": frozenset({"sentence"}),
        "yes_no": frozenset({"sentence"}),
        "question": frozenset({"first", "second"}),
    },
    "word": {
        "in_template": frozenset({"context"}),
        "yes_no": frozenset({"context", "word"}),
        "question": frozenset({"context", "first", "second"}),
    },
}
ANSWERS = ("yes", "no", "first", "second")


@dataclass(frozen=True)
class Wording:
    """Prompts by kind of stimulus (sentence, word) and method, and the answers that are scored after them."""

    prompts: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]
    source: str

    def as_dict(self) -> dict[str, Any]:
        """For manifests."""
        return {
            "source": self.source,
            "answers": dict(self.answers),
            **{kind: dict(prompts) for kind, prompts in self.prompts.items()},
        }


def list_languages() -> list[str]:
    """The languages that felicity has prompts in."""
    folder = files("felicity.studies.methods") / "prompts"
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def read_wording(language: str, path: Path | None = None) -> Wording:
    """The prompts of a file, or those that felicity has in a language.

    Raises BadInput if there are none, or if the file lacks something.
    """
    if path is not None:
        try:
            return _check(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is not a TOML file: {error}.") from error
    if language not in list_languages():
        raise BadInput(
            f"There are no prompts in '{language}', only in {', '.join(list_languages())}; give your own "
            "with --prompts FILE.toml."
        )
    text = (files("felicity.studies.methods") / "prompts" / f"{language}.toml").read_text("utf-8")
    return _check(tomllib.loads(text), f"built-in, {language}")


def _check(given: Mapping[str, Any], source: str) -> Wording:
    prompts: dict[str, dict[str, str]] = {}
    for kind, methods in FIELDS.items():
        prompts[kind] = {}
        for method, fields in methods.items():
            prompt = _find(given, kind, method, source)
            if _find_fields(prompt) != fields:
                wanted = ", ".join(f"{{{name}}}" for name in sorted(fields))
                raise BadInput(
                    f"{source}: the prompt {kind}.{method} must contain {wanted} and nothing else."
                )
            prompts[kind][method] = prompt
        ending = "{sentence}" if kind == "sentence" else "{context}"
        if not prompts[kind]["in_template"].endswith(ending):
            raise BadInput(f"{source}: the prompt {kind}.in_template must end in {ending}.")
    return Wording(prompts, {name: _find(given, "answers", name, source) for name in ANSWERS}, source)


def _find_fields(prompt: str) -> frozenset[str] | None:
    """What is filled in; None if the braces do not match."""
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(prompt) if name is not None)
    except ValueError:
        return None


def _find(given: Mapping[str, Any], section: str, name: str, source: str) -> str:
    part = given.get(section)
    value = part.get(name) if isinstance(part, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{source} has no text for {section}.{name}; see the prompts of `felicity methods`.")
    return value
