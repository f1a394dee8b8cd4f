"""The small part of Markdown that study pages may use; everything else is shown as it is written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from markupsafe import Markup, escape

HEADING = re.compile(r"(#{1,3}) +(.+)")
BULLET = re.compile(r"[-*] +(.+)")
NUMBER = re.compile(r"(\d{1,9})[.)] +(.+)")
LINK = re.compile(r"\[([^\]]+)\]\((https?://[^\s)]+|mailto:[^\s)]+)\)")


@dataclass
class _Block:
    """A heading, a paragraph or a list; a paragraph and a heading have one part, a list one per item."""

    tag: str
    parts: list[str] = field(default_factory=list)
    start: int = 1
    # After an empty line only a further item of the same list continues it.
    open: bool = True


def render_markdown(text: str) -> Markup:
    """Paragraphs, headings, lists, **bold**, *emphasis* and links; the text is escaped first.

    An item of a list may be wrapped over several lines, and a list may follow its sentence without an empty
    line between them.

    >>> str(render_markdown("A *b* <script>"))
    '<p>A <em>b</em> &lt;script&gt;</p>'
    >>> str(render_markdown("So:\\n- one\\n  more\\n- two"))
    '<p>So:</p>\\n<ul><li>one more</li><li>two</li></ul>'
    """
    return Markup("\n").join(_render(block) for block in _split(text))


def _split(text: str) -> Iterator[_Block]:
    block: _Block | None = None
    for line in (one.strip() for one in text.strip().split("\n")):
        if not line:
            if block is not None:
                block.open = False
            continue
        started = _start(line, block)
        if started is None and block is not None and block.open and block.tag[0] != "h":
            block.parts[-1] += f" {line}"
        elif started is not None and block is not None and started.tag == block.tag in ("ul", "ol"):
            block.parts += started.parts
            block.open = True
        else:
            if block is not None:
                yield block
            block = started or _Block("p", [line])
    if block is not None:
        yield block


def _start(line: str, block: _Block | None) -> _Block | None:
    """The heading or the item that a line begins, if it begins one."""
    if heading := HEADING.fullmatch(line):
        return _Block(f"h{len(heading[1]) + 1}", [heading[2]])
    if bullet := BULLET.fullmatch(line):
        return _Block("ul", [bullet[1]])
    if number := NUMBER.fullmatch(line):
        # A number at the start of a wrapped line is no list, unless it is the first of one.
        within = block is not None and block.open and block.tag != "ol"
        if not within or number[1] == "1":
            return _Block("ol", [number[2]], int(number[1]))
    return None


def _render(block: _Block) -> Markup:
    start = Markup(f' start="{block.start}"') if block.tag == "ol" and block.start != 1 else Markup("")
    parts = [_inline(part) for part in block.parts]
    if block.tag in ("ul", "ol"):
        parts = [Markup("<li>") + part + Markup("</li>") for part in parts]
    return Markup(f"<{block.tag}{start}>") + Markup("").join(parts) + Markup(f"</{block.tag}>")


def _inline(text: str) -> Markup:
    safe = str(escape(text))
    safe = LINK.sub(r'<a href="\2" rel="noopener noreferrer" target="_blank">\1</a>', safe)
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    safe = re.sub(r"(?<!\*)\*([^*\s](?:[^*]*[^*\s])?)\*(?!\*)", r"<em>\1</em>", safe)
    return Markup(safe)
