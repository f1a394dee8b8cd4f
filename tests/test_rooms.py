"""Each room knows core and itself; only run, cli and studies see several rooms."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "felicity"
SEE_SEVERAL = {"studies", "run", "cli"}
HEAVY = {"torch", "transformers", "altair", "scipy", "spacy", "polars", "numpy", "pyarrow", "jinja2"}


def imported(path: Path, *, top_level: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} imports relatively"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("felicity.")}


MODULES = sorted(SOURCE.glob("*/**/*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_knows_core_and_itself_only(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    if room not in SEE_SEVERAL:
        assert rooms(imported(path)) <= {"core", room}


def test_nobody_imports_the_command_line() -> None:
    others = [path for path in MODULES if path.relative_to(SOURCE).parts[0] != "cli"]
    assert not [path for path in others if "cli" in rooms(imported(path))]


def test_the_command_line_imports_nothing_heavy_before_it_is_asked_to() -> None:
    for path in sorted((SOURCE / "cli").glob("*.py")):
        light = {name.split(".")[0] for name in imported(path, top_level=True)}
        assert not light & HEAVY, path
        assert rooms(imported(path, top_level=True)) <= {"core", "cli"}, path
