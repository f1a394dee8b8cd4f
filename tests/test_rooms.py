"""The rules of the house: which room may import which, and only through doors."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "felicity"
SEE_SEVERAL = {"run", "studies", "papers", "explore", "api", "cli", "web"}
FACES = {"cli", "web"}
HEAVY = {"torch", "transformers", "altair", "scipy", "spacy", "polars", "numpy", "pyarrow", "jinja2"}
MODULES = sorted(SOURCE.glob("*/**/*.py"))
PACKAGES = {".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.glob("*/**/__init__.py")}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def exported(package: Path) -> set[str]:
    """The names that a package's door exports; some functions are named like their modules."""
    doors = [path for path in (package / "__init__.pyi", package / "__init__.py") if path.is_file()]
    nodes = [node for path in doors for node in tree_of(path).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def is_module(name: str) -> bool:
    """Whether a dotted name is a module or package of felicity, and no name that its package exports."""
    place = SOURCE.parent.joinpath(*name.split("."))
    found = place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
    return found and place.name not in exported(place.parent)


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    """Every module that `path` imports, also from its package (`from felicity.run import pipeline`)."""
    tree = tree_of(path)
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if is_module(name))


def inside(path: Path) -> list[str]:
    """felicity's own modules that `path` imports, without the leading `felicity.`."""
    return [name.removeprefix("felicity.") for name in imports(path) if name.startswith("felicity.")]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def package_of(module: str) -> str:
    return module if module in PACKAGES else module.rpartition(".")[0]


def room_of(module: str) -> str:
    return module.split(".")[0]


def label(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_room_knows_core_and_itself_only(path: Path) -> None:
    room = room_of(name_of(path))
    if room not in SEE_SEVERAL:
        assert {room_of(name) for name in inside(path)} <= {"core", room}


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_imports_go_through_doors(path: Path) -> None:
    """A module outside one's own package, or a package around it, is imported from its package.

    The modules of `core` are the vocabulary of every room and are imported by name.
    """
    here = package_of(name_of(path).removesuffix(".__init__"))
    for name in inside(path):
        package = package_of(name)
        around = here == package or here.startswith(f"{package}.")
        assert name in PACKAGES or around or room_of(name) == "core", f"{label(path)} imports {name}"


def test_nobody_imports_the_faces() -> None:
    others = [path for path in MODULES if room_of(name_of(path)) not in FACES]
    assert not [path for path in others if FACES & {room_of(name) for name in inside(path)}]


@pytest.mark.parametrize(
    ("room", "above"),
    [("run", {"studies", "papers", "explore", "api"}), ("studies", {"explore", "api"}), ("explore", {"api"})],
)
def test_a_room_never_imports_what_stands_above_it(room: str, above: set[str]) -> None:
    paths = [path for path in MODULES if room_of(name_of(path)) == room]
    assert not [path for path in paths if above & {room_of(name) for name in inside(path)}]


def test_no_module_imports_felicity_itself() -> None:
    assert not [path for path in MODULES if "felicity" in imports(path)]


def test_packages_do_not_import_each_other_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        here = package_of(name_of(path).removesuffix(".__init__"))
        needed = {package_of(name) for name in inside(path)} - {here}
        # A package may lean on the modules that stand directly in the packages around it.
        graph.setdefault(here, set()).update(name for name in needed if not here.startswith(f"{name}."))
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"packages import each other: {' -> '.join(error.args[1])}")


def test_core_imports_nothing_heavy_but_the_readers_of_tables() -> None:
    for path in sorted((SOURCE / "core").glob("*.py")):
        assert not {name.split(".")[0] for name in imports(path)} & (HEAVY - {"polars", "pyarrow"}), path
        assert "pyarrow" not in {name.split(".")[0] for name in imports(path, top_level=True)}, path


def test_the_command_line_imports_nothing_heavy_before_it_is_asked_to() -> None:
    for path in sorted((SOURCE / "cli").glob("*.py")):
        names = list(imports(path, top_level=True))
        assert not {name.split(".")[0] for name in names} & HEAVY, path
        rooms = {room_of(name.removeprefix("felicity.")) for name in names if name.startswith("felicity.")}
        assert rooms <= {"core", "cli"}, path


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.pyi")), ids=label)
def test_every_name_of_a_door_is_behind_it(path: Path) -> None:
    import importlib

    package = importlib.import_module(".".join(("felicity", *path.parent.relative_to(SOURCE).parts)))
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_the_architecture_page_names_every_package() -> None:
    page = (SOURCE.parents[1] / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    packages = {name for name in PACKAGES if not name.startswith("humans.migrations")}
    missing = [name for name in packages if f"`{name.replace('.', '/')}/`" not in page]
    assert not missing, f"docs/explanation/architecture.md does not name {sorted(missing)}"
