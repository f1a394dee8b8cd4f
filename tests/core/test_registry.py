from importlib.metadata import EntryPoint

import pytest

from felicity.core import registry
from felicity.core.errors import UnknownName
from felicity.core.registry import Registry


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
