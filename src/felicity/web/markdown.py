"""The small part of Markdown that study pages may use; everything else is shown as it is written."""

import re

from markupsafe import Markup, escape

HEADING = re.compile(r"(#{1,3}) +(.+)")
BULLET = re.compile(r"[-*] +(.+)")
NUMBER = re.compile(r"\d+[.)] +(.+)")
LINK = re.compile(r"\[([^\]]+)\]\((https?://[^\s)]+|mailto:[^\s)]+)\)")


def render_markdown(text: str) -> Markup:
    """Paragraphs, headings, lists, **bold**, *emphasis* and links; the text is escaped first.

    >>> str(render_markdown("A *b* <script>"))
    '<p>A <em>b</em> &lt;script&gt;</p>'
    """
    blocks = re.split(r"\n\s*\n", text.strip())
    return Markup("\n").join(_block(block.strip().split("\n")) for block in blocks)


def _block(lines: list[str]) -> Markup:
    heading = HEADING.fullmatch(lines[0].strip())
    if heading:
        level = len(heading[1]) + 1
        first = Markup(f"<h{level}>") + _inline(heading[2]) + Markup(f"</h{level}>")
        return first + (_block(lines[1:]) if len(lines) > 1 else Markup(""))
    for pattern, tag in ((BULLET, "ul"), (NUMBER, "ol")):
        if all(pattern.fullmatch(line.strip()) for line in lines):
            items = [pattern.sub(r"\1", line.strip()) for line in lines]
            inner = Markup("").join(Markup("<li>") + _inline(item) + Markup("</li>") for item in items)
            return Markup(f"<{tag}>") + inner + Markup(f"</{tag}>")
    return Markup("<p>") + _inline(" ".join(line.strip() for line in lines)) + Markup("</p>")


def _inline(text: str) -> Markup:
    safe = str(escape(text))
    safe = LINK.sub(r'<a href="\2" rel="noopener noreferrer" target="_blank">\1</a>', safe)
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    safe = re.sub(r"(?<!\*)\*([^*\s](?:[^*]*[^*\s])?)\*(?!\*)", r"<em>\1</em>", safe)
    return Markup(safe)
