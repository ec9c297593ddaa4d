"""The error for a missing package names it and a command that works without a package index."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from steelyard.errors import SteelyardError
from steelyard.excitation import ExcitationError
from steelyard.ground import extras

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


def test_the_advice_names_packages_and_the_command_for_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "numpy>=1.26",
        "pin>=3; sys_platform != 'win32' and extra == 'collision'",
        "cmaes>=0.11; extra == 'cma'",
    ]
    monkeypatch.setattr(extras.metadata, "requires", lambda name: lines)
    assert extras.how_to_install("collision") == "pip install 'pin>=3' (in a checkout: pip install -e '.[collision]')"
    assert extras.extra_requirements("jax") == []


def test_a_missing_module_raises_the_error_class_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(ExcitationError, match=r"^Collision needs the package pinocchio: .*pip install") as raised:
        extras.import_extra("pinocchio", "collision", "Collision", ExcitationError)
    assert isinstance(raised.value, SteelyardError)
    assert extras.import_extra("json", "collision", "Nothing").loads("1") == 1


def test_sources_name_only_existing_extras() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text("utf-8")
        assert not re.search(r"pip install '?steelyard", text), path
        for extra in re.findall(r'import_extra\("[\w.]+", "(\w+)"', text):
            assert extra in EXTRAS, (path, extra)
