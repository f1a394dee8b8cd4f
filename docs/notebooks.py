"""Execute the notebooks of docs/notebooks and write each as a page with its output.

With --check nothing is written: every notebook must run to its end, and its page must show its code.
"""

import base64
import re
import sys
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent / "notebooks"
FENCE = "```"
# What a page shows of an output, best first.
KINDS = ("text/html", "image/svg+xml", "image/png", "text/plain")
MINUTES = 10


def main() -> int:
    """Write the pages, or check them."""
    stale = []
    for path in sorted(FOLDER.glob("*.py")):
        notebook = jupytext.read(path, fmt="py:percent")
        NotebookClient(notebook, timeout=60 * MINUTES, resources={"metadata": {"path": FOLDER}}).execute()
        page = path.with_suffix(".md")
        if "--check" not in sys.argv:
            page.write_text(render(notebook, path.name), encoding="utf-8")
        elif list_code(page.read_text(encoding="utf-8")) != [cell.source for cell in code_cells(notebook)]:
            stale.append(page.name)
    if stale:
        sys.stderr.write(f"{', '.join(stale)}: out of date; run `make notebooks` and commit the pages.\n")
    return len(stale)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def list_code(page: str) -> list[str]:
    """The code of a page, cell by cell."""
    return [text.rstrip() for text in re.findall(rf"^{FENCE}python\n(.*?)^{FENCE}$", page, re.M | re.S)]


def render(notebook: NotebookNode, name: str) -> str:
    """The page of an executed notebook."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"{FENCE}python\n{cell.source}\n{FENCE}")
        parts += [shown for output in cell.outputs if (shown := show(output))]
    parts.append(f"*Written by `make notebooks` from [{name}]({name}), which Jupyter opens with jupytext.*")
    return "\n\n".join(parts) + "\n"


def show(output: NotebookNode) -> str:
    """An output as Markdown; what was written to standard error is left out."""
    if output.output_type == "stream":
        return f"{FENCE}text\n{output.text.rstrip()}\n{FENCE}" if output.name == "stdout" else ""
    data = output.get("data", {})
    kind = next((kind for kind in KINDS if kind in data), None)
    if kind is None:
        return ""
    content = data[kind].strip()
    if kind == "text/plain":
        return "" if content.startswith("RendererRegistry") else f"{FENCE}text\n{content}\n{FENCE}"
    if kind == "image/png":
        return f"![Output](data:image/png;base64,{content})"
    if kind == "image/svg+xml":
        return f"![Output](data:image/svg+xml;base64,{base64.b64encode(content.encode()).decode()})"
    # Markdown ends a block of HTML at an empty line.
    return '<div style="overflow-x: auto">' + re.sub(r"\n\s*", "\n", content) + "</div>"


if __name__ == "__main__":
    sys.exit(main())
