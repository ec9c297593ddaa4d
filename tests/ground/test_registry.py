"""A registry finds members in packages and plug-ins, and skips a broken plug-in with a warning."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground import registry as module
from steelyard.ground.registry import PluginWarning, Registry


class Apple:
    pass


class Pear:
    pass


def test_members_are_found_by_name_and_the_nearest_is_suggested() -> None:
    fruit: Registry[type] = Registry("fruit", ())
    fruit.register("apple")(Apple)
    assert fruit["apple"] is Apple
    assert list(fruit) == ["apple"]
    assert "pear" not in fruit
    with pytest.raises(UnknownNameError, match=r"no fruit 'aple'\. Did you mean 'apple'"):
        fruit["aple"]


def test_a_name_can_be_registered_once() -> None:
    fruit: Registry[type] = Registry("fruit", ())
    fruit.register("apple")(Apple)
    fruit.register("apple")(Apple)  # the same class again, as after a reload
    with pytest.raises(SteelyardError, match="is defined twice"):
        fruit.register("apple")(Pear)


def test_a_broken_plug_in_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("gone", "no_such_module_at_all:Thing", "steelyard.fruit"),
        EntryPoint("pear", f"{__name__}:Pear", "steelyard.fruit"),
    ]
    monkeypatch.setattr(module, "entry_points", lambda group: points)
    fruit: Registry[type] = Registry("fruit", (), "steelyard.fruit")
    with pytest.warns(PluginWarning, match=r"fruit 'gone' is left out, it cannot be loaded \(ModuleNotFoundError"):
        assert list(fruit) == ["pear"]
    assert fruit["pear"].__name__ == "Pear"


def test_packages_are_searched_recursively(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[str] = []
    monkeypatch.setattr(module, "import_module", lambda name: imported.append(name) or __import__(name, fromlist=["_"]))
    Registry("robot module", ("steelyard.robot",)).__len__()
    assert "steelyard.robot.kinematics.inverse" in imported
