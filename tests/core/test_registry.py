from importlib.metadata import EntryPoint

import pytest

from felicity.core import registry
from felicity.core.errors import UnknownName
from felicity.core.registry import BrokenPlugin, Registry


def test_misspelt_name_suggests_the_near_one() -> None:
    shapes: Registry[int] = Registry("shape")
    shapes.register("square", 4)
    with pytest.raises(UnknownName, match="There is no shape 'sqare'; did you mean 'square'"):
        shapes["sqare"]


def test_a_name_far_from_all_lists_them() -> None:
    shapes: Registry[int] = Registry("shape")
    shapes.register("square", 4)
    with pytest.raises(UnknownName, match="known: square"):
        shapes["zzz"]


def test_registering_twice_is_a_mistake_in_code() -> None:
    shapes: Registry[int] = Registry("shape")
    shapes.register("square", 4)
    with pytest.raises(ValueError, match="twice"):
        shapes.register("square", 5)


def test_an_outside_package_adds_through_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(group: str) -> list[EntryPoint]:
        assert group == "felicity.shape"
        return [EntryPoint("round", "math:pi", group)]

    monkeypatch.setattr(registry, "entry_points", installed)
    shapes: Registry[float] = Registry("shape")
    assert shapes["round"] == pytest.approx(3.14159, abs=1e-5)
    assert list(shapes) == ["round"]


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> Registry[float]:
    """A registry to which outside packages add one good thing, one broken, and one that is taken."""
    points = [
        EntryPoint("round", "math:pi", "felicity.shape"),
        EntryPoint("odd", "no_such_package:shape", "felicity.shape"),
        EntryPoint("square", "math:e", "felicity.shape"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    found: Registry[float] = Registry("shape", accept=float)
    found.register("square", 4)
    return found


def test_a_broken_package_is_named_where_its_thing_is_asked_for(shapes: Registry[float]) -> None:
    with pytest.raises(BrokenPlugin, match="'odd' cannot be loaded from the package of 'no_such_package"):
        shapes["odd"]
    assert shapes["round"] == pytest.approx(3.14159, abs=1e-5)


def test_a_name_that_two_have_is_refused(shapes: Registry[float]) -> None:
    with pytest.raises(BrokenPlugin, match="'square' comes from felicity and from the package of 'math:e'"):
        shapes["square"]


def test_names_are_listed_without_loading_anything(shapes: Registry[float]) -> None:
    assert list(shapes) == ["square", "round", "odd"]
    assert len(shapes) == 3


def test_a_thing_that_is_not_accepted_is_a_broken_package(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("round", "math:sqrt", "felicity.shape")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(BrokenPlugin, match="TypeError"):
        Registry("shape", accept=float)["round"]
