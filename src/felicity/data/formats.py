"""One reader per file format of the catalogue: files in, items out, by the templates of the entry."""

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import load_json
from felicity.core.errors import BadInput
from felicity.core.files import decode, read_bytes
from felicity.core.registry import Registry
from felicity.data.entry import Entry, Method, load_entries
from felicity.data.locate import get_copy
from felicity.data.rows import ItemRows, read_item_rows
from felicity.data.suites import read_suites
from felicity.data.tables import Table, parse_cells, read_plain, read_table

ReadFiles = Callable[[list[Path], Entry, Method], ItemRows]
FORMATS: Registry[ReadFiles] = Registry("format")
# Marks that stand against the word before them.
CLOSING = ".,:;?!)”\"'»"


def join_rows(parts: list[ItemRows]) -> ItemRows:
    """The rows of several files together."""
    return ItemRows(
        pl.concat([part.items for part in parts], how="diagonal"),
        sum(part.read for part in parts),
        pl.concat([part.left_out for part in parts]),
    )


def _by_table(read: Callable[[Path, Entry], Table]) -> ReadFiles:
    def read_files(paths: list[Path], entry: Entry, method: Method) -> ItemRows:
        return join_rows([read_item_rows(read(path, entry), entry, method) for path in paths])

    return read_files


def read_pair_lines(path: Path, _: Entry) -> Table:
    """One sentence per line, two lines per pair, a comma at the end of each: fields sentence, pair, member.

    A file with an odd number of lines is refused: every pair after a lost line would be shifted.
    """
    lines = read_plain(path).splitlines()
    filled = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if len(filled) % 2:
        raise BadInput(
            f"{path} has {len(filled)} sentences, an odd number, but its lines should come in pairs."
        )
    rows: list[dict[str, object]] = [
        {"sentence": line.rstrip(" ,"), "pair": str(place // 2 + 1), "member": str(place % 2)}
        for place, (_, line) in enumerate(filled)
    ]
    return Table(path, ["sentence", "pair", "member"], rows, [number for number, _ in filled])


def read_headless(path: Path, entry: Entry) -> Table:
    """Tab-separated cells without header or quotes; the entry names the columns."""
    columns, cells, lines = parse_cells(read_plain(path), path, separator="\t", columns=entry.columns)
    rows = [{"number": str(line)} | row for line, row in zip(lines, cells, strict=True)]
    return Table(path, [*columns, "number"], rows, lines)


def read_headed(path: Path, _: Entry) -> Table:
    """A table with a header, or JSON lines; rows are numbered from 1 in the field `number`."""
    table = read_table(path)
    rows = [{"number": str(place)} | row for place, row in enumerate(table.rows, start=1)]
    return Table(path, [*table.columns, "number"], rows, table.lines)


def _number(path: Path, rows: list[dict[str, object]]) -> Table:
    """A table of these rows, each with its number, from 1, in the field `number`."""
    if not rows:
        raise BadInput(f"{path} has no rows.")
    numbered = [{"number": str(place)} | row for place, row in enumerate(rows, start=1)]
    columns = dict.fromkeys(name for row in numbered for name in row)
    return Table(path, list(columns), numbered, list(range(1, len(rows) + 1)))


def read_labelled_lines(path: Path, _: Entry) -> Table:
    """`True`, a tab and the good sentence, then `False`, a tab and the bad one: fields good and bad (CLAMS).

    Raises BadInput naming the first line that is not as expected.
    """
    lines = read_plain(path).splitlines()
    sentences: dict[str, list[object]] = {"True": [], "False": []}
    for place, line in enumerate(lines):
        label, _tab, sentence = line.partition("\t")
        expected = "False" if place % 2 else "True"
        if label != expected or not sentence.strip():
            raise BadInput(f"{path}, line {place + 1}: not '{expected}', a tab and a sentence.")
        sentences[label].append(sentence)
    if len(lines) % 2:
        raise BadInput(f"{path}, line {len(lines)}: the last good sentence has no bad one.")
    pairs = zip(sentences["True"], sentences["False"], strict=True)
    return _number(path, [{"good": good, "bad": bad} for good, bad in pairs])


def read_json_rows(path: Path, _: Entry) -> Table:
    """JSON objects, one per line or all in one array."""
    text = read_plain(path)
    try:
        whole = text.lstrip().startswith("[")
        rows = load_json(text) if whole else [load_json(line) for line in _filled(text)]
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is neither a JSON array nor one JSON object per line.") from error
    if not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{path} has a row that is not an object with named fields.")
    return _number(path, rows)


def _filled(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def read_continuations(path: Path, _: Entry) -> Table:
    """[[prefix, prefix], [good, bad]] for each pair: fields prefix, good, bad (Kryvosheieva & Levy 2025)."""
    try:
        found = load_json(read_plain(path))
        rows = [
            {"prefix": prefix, "good": good, "bad": bad}
            for (prefix, same), (good, bad) in found
            if prefix == same
        ]
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"{path} is not a list of [[prefix, prefix], [good, bad]].") from error
    if len(rows) < len(found):
        raise BadInput(f"{path} has a pair with two prefixes; its continuations cannot be compared.")
    return _number(path, rows)


def read_corrections(path: Path, _: Entry) -> Table:
    """Learners' sentences with a correction and its place in `meta` (DaLAJ): `corrected` has it carried out.

    An inserted word or comma is separated by spaces as usual. A word-order error is given as the same word at
    the same place, from which no sentence can be built: such a row has no `corrected`.
    """
    rows = []
    for row in read_json_rows(path, _).rows:
        meta = row.get("meta")
        if not isinstance(meta, dict):
            raise BadInput(f"{path} has a row without 'meta'; it is not a file of DaLAJ.")
        corrected = _correct(row, meta) if row.get("label") == "incorrect" else None
        detail = {"error": meta.get("error_label") or "unlabelled"}
        rows.append(
            row | detail | {"corrected": corrected, "acceptable": str(int(row.get("label") == "correct"))}
        )
    return _number(path, rows)


def _correct(row: dict[str, object], meta: dict[str, Any]) -> str | None:
    sentence, correction = str(row["sentence"]), meta["confusion_pair"]["correction"]
    start, stop = meta["error_span"]["start"], meta["error_span"]["stop"]
    before, after = sentence[:start], sentence[stop:]
    if start == stop:
        before = before.rstrip(" ") if correction[:1] in CLOSING else before
        space = " " if before and correction[:1] not in CLOSING and not before.endswith(" ") else ""
        correction = space + correction + ("" if not after or after[0] in CLOSING + " " else " ")
    corrected = before + correction + after
    return corrected if corrected != sentence else None


def read_word_lines(path: Path, entry: Entry) -> Table:
    """Two lines per pair, words separated by spaces, the better one first (Mandarin SyntaxGym).

    The entry's options give, by folder, the word whose surprisal is compared, counted from the end
    (`target`), and the folders whose worse sentence comes first (`worse_first`). Fields good and bad, and
    for each `_before` and `_target`, without value in a folder that has no target.
    """
    folder = path.parent.name
    order = ("bad", "good") if folder in entry.options["worse_first"] else ("good", "bad")
    target = entry.options["target"].get(folder)
    lines = [line.split() for line in _filled(read_plain(path))]
    if len(lines) % 2:
        raise BadInput(
            f"{path} has {len(lines)} sentences, an odd number, but its lines should come in pairs."
        )
    rows = []
    for place in range(0, len(lines), 2):
        row: dict[str, object] = {"kind": "target" if target else "sentence"}
        for name, words in zip(order, lines[place : place + 2], strict=True):
            row[name] = " ".join(words)
            row[f"{name}_before"] = " ".join(words[:target]) if target else None
            row[f"{name}_target"] = words[target] if target else None
        rows.append(row)
    return _number(path, rows)


def read_zipped(path: Path, entry: Entry) -> Table:
    """One tab-separated table with a header inside a zip file; the entry's options name it (`inside`)."""
    inside = entry.options["inside"]
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            text = decode(archive.read(inside), path)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, KeyError) as error:
        raise BadInput(f"{path} is not a zip file with {inside}.") from error
    return _number(path, parse_cells(text, path, separator="\t")[1])


def read_agreement(paths: list[Path], entry: Entry, method: Method) -> ItemRows:
    """Sentences (.text) with the place and the two forms of a word (.gold): Gulordava et al. 2018.

    Fields prefix (the words before it), good and bad (the two forms), kind (`original`, or `nonce` for a
    sentence whose content words were replaced), construction (as in the authors' tables), and the columns
    of .gold that the entry names.
    """
    by_name = {path.name.removesuffix(".gz"): path for path in paths}
    parts = []
    for name, path in by_name.items():
        if name.endswith(".gold"):
            beside = name.removesuffix(".gold") + ".text"
            if beside not in by_name:
                raise BadInput(f"{path} has no {beside} beside it.")
            text = read_plain(by_name[beside]).splitlines()
            parts.append(read_item_rows(_align(path, text, entry), entry, method))
    return join_rows(parts)


def _align(path: Path, sentences: list[str], entry: Entry) -> Table:
    rows = parse_cells(read_plain(path), path, separator="\t", columns=entry.columns)[1]
    if len(rows) != len(sentences):
        raise BadInput(f"{path} has {len(rows)} lines, but its sentences are {len(sentences)}.")
    found: list[dict[str, object]] = []
    for row, sentence in zip(rows, sentences, strict=True):
        place = str(row["place"])
        if not place.isdecimal():
            raise BadInput(f"{path} has {place!r} where the place of a word should be.")
        prefix = " ".join(sentence.split()[: int(place)])
        kind = "original" if row.get("sentence", "0") == "0" else "nonce"
        pattern = "__".join(str(row.get("pattern", "")).split("!")[:2])
        found.append(row | {"prefix": prefix, "kind": kind, "construction": pattern})
    return _number(path, found)


def read_options(path: Path, entry: Entry) -> Table:
    """JSON rows with a list of answers in `options`: fields option_0, option_1 and so on."""
    rows = []
    for row in read_json_rows(path, entry).rows:
        options = row.get("options")
        if not isinstance(options, list):
            raise BadInput(f"{path} has a row without a list of 'options'; it is not a file of {entry.name}.")
        rows.append(row | {f"option_{place}": option for place, option in enumerate(options)})
    return _number(path, rows)


def read_kept(paths: list[Path], entry: Entry, method: Method) -> ItemRows:
    """The pairs of BLiMP that a list of UID and ranges of pairIDs keeps."""
    kept: dict[str, set[str]] = {}
    for row in read_table(paths[0]).rows:
        try:
            kept[str(row["UID"])] = set(_expand(str(row["kept_pairIDs"])))
        except (KeyError, ValueError) as error:
            raise BadInput(f"{paths[0]} is not a list of UID and kept_pairIDs, such as 0-3,5.") from error
    files = get_copy(load_entries()["blimp"]).paths
    tables = [read_headed(path, entry) for path in files]
    chosen = []
    for table in tables:
        where = [str(row.get("pairID")) in kept.get(str(row.get("UID")), ()) for row in table.rows]
        rows = [row for row, keep in zip(table.rows, where, strict=True) if keep]
        lines = [line for line, keep in zip(table.lines, where, strict=True) if keep]
        chosen.append(read_item_rows(replace(table, rows=rows, lines=lines), entry, method))
    return join_rows(chosen)


def _expand(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))


FORMATS.register("table", _by_table(read_headed))
FORMATS.register("pair lines", _by_table(read_pair_lines))
FORMATS.register("headless", _by_table(read_headless))
FORMATS.register("syntaxgym", read_suites)
FORMATS.register("labelled lines", _by_table(read_labelled_lines))
FORMATS.register("json rows", _by_table(read_json_rows))
FORMATS.register("continuations", _by_table(read_continuations))
FORMATS.register("corrections", _by_table(read_corrections))
FORMATS.register("word lines", _by_table(read_word_lines))
FORMATS.register("zipped", _by_table(read_zipped))
FORMATS.register("agreement", read_agreement)
FORMATS.register("options", _by_table(read_options))
FORMATS.register("kept pairs", read_kept)
