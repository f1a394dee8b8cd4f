"""Translators: Debian's Apertium, any command that reads and writes lines, or a language model that is
handed in."""

import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from felicity.core.errors import BadInput, FelicityError, NotPossible

# Codes under which Apertium's pairs know a language.
CODES = {
    "en": ("eng", "en"),
    "es": ("spa", "es"),
    "ca": ("cat", "ca"),
    "gl": ("gl", "glg"),
    "eo": ("eo", "epo"),
    "fr": ("fra", "fr"),
    "de": ("deu", "de"),
}
# Put between sentences, so that no translator takes two of them for one.
BREAK = "\n\n"
MINUTES = 30.0


@dataclass(frozen=True)
class Translator:
    """A function of texts, source and target language, and what is recorded about it."""

    name: str
    version: str
    translate: Callable[[Sequence[str], str, str], list[str]]


def open_apertium(languages: Sequence[str], *, source: str = "en") -> Translator:
    """Debian's Apertium, if it has all these languages in both directions.

    Raises NotPossible naming the package to install.
    """
    program = shutil.which("apertium")
    if program is None:
        raise NotPossible(
            "There is no program 'apertium' here; install Debian's apertium and a pair such as "
            "apertium-eng-spa, or "
            "name another translator with --command or --model."
        )
    modes = _run([program, "-l"], "").split()
    for language in languages:
        for pair in ((source, language), (language, source)):
            if _find_mode(modes, *pair) is None:
                raise NotPossible(
                    f"Apertium has no translation from '{pair[0]}' to '{pair[1]}' here; install Debian's "
                    "package of this "
                    "pair, such as apertium-eng-spa (installed: "
                    f"{', '.join(m for m in modes if m.count('-') == 1)})."
                )

    def translate(texts: Sequence[str], first: str, second: str) -> list[str]:
        mode = _find_mode(modes, first, second)
        if mode is None:
            raise NotPossible(f"Apertium has no translation from '{first}' to '{second}' here.")
        return _translate_lines([program, "-u", mode], texts)

    return Translator("apertium", _find_versions(), translate)


def open_command(template: str) -> Translator:
    """A command that reads one sentence per line and writes its translation; {source} and {target} are filled
    in.

    Raises BadInput for a command that names no languages, or whose program is not there.
    """
    if "{target}" not in template:
        raise BadInput(
            f"--command '{template}' lacks {{target}}; write '{{source}}' and '{{target}}' for the languages."
        )
    program = shlex.split(template)[0]
    if shutil.which(program) is None:
        raise BadInput(f"There is no program '{program}' here; check --command.")

    def translate(texts: Sequence[str], first: str, second: str) -> list[str]:
        words = [
            word.replace("{source}", first).replace("{target}", second) for word in shlex.split(template)
        ]
        found = _run(words, "\n".join(texts) + "\n").split("\n")
        lines = found[:-1] if found and not found[-1] else found
        if len(lines) != len(texts):
            raise FelicityError(
                f"'{shlex.join(words)}' gave {len(lines)} lines for {len(texts)} sentences; it must write "
                "one line per "
                "line."
            )
        return [line.strip() for line in lines]

    return Translator(template, "", translate)


def translate_by_prompt(generate: Callable[[str, int], str], *, name: str, version: str = "") -> Translator:
    """A language model that continues a text, asked sentence by sentence.

    generate: a prompt and the most tokens of the answer in, the answer up to the end of the line out.
    """

    def translate(texts: Sequence[str], first: str, second: str) -> list[str]:
        found = []
        for text in texts:
            prompt = f"Translate the sentence from {first} into {second}.\n{first}: {text}\n{second}:"
            found.append(generate(prompt, 40 + 4 * len(text.split())).strip())
        return found

    return Translator(name, version, translate)


def _translate_lines(words: list[str], texts: Sequence[str]) -> list[str]:
    """All texts in one process, or one by one if the lines do not come back separately."""
    together = _run(words, BREAK.join(texts) + "\n").rstrip("\n").split(BREAK)
    if len(together) == len(texts) and not any("\n" in text for text in together):
        return [text.strip() for text in together]
    return [" ".join(_run(words, f"{text}\n").split()) for text in texts]


def _find_mode(modes: Sequence[str], first: str, second: str) -> str | None:
    pairs = (f"{a}-{b}" for a in _codes(first) for b in _codes(second))
    return next((pair for pair in pairs if pair in modes), None)


def _codes(language: str) -> tuple[str, ...]:
    known = next((codes for name, codes in CODES.items() if language in (name, *codes)), ())
    return (language, *(code for code in known if code != language))


def _find_versions() -> str:
    """The versions of Apertium's Debian packages; empty if it was installed otherwise."""
    if shutil.which("dpkg-query") is None:
        return ""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "apertium", "apertium-*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if len(line.split()) == 2]
    return ", ".join(found)


def _run(words: list[str], given: str) -> str:
    """The output of a program.

    Raises FelicityError if it fails.
    """
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, check=False, timeout=60 * MINUTES
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FelicityError(f"'{shlex.join(words)}' cannot be run: {error}.") from error
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise FelicityError(
            f"'{shlex.join(words)}' failed: {reason[0] if reason else f'code {done.returncode}'}"
        )
    return done.stdout
