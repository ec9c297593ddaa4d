"""Importing one thing imports little: rooms open when someone enters, and what a stub promises is there."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import steelyard

HOME = Path(steelyard.__file__).parent
ROOMS = sorted(path.parent.relative_to(HOME.parent).as_posix().replace("/", ".") for path in HOME.rglob("__init__.pyi"))


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("room", ROOMS)
def test_all_that_a_room_promises_is_there(room: str) -> None:
    module = import_module(room)
    stub = ast.parse((HOME.parent / room.replace(".", "/") / "__init__.pyi").read_text(encoding="utf-8"))
    assigned = next(n for n in stub.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    promised = ast.literal_eval(assigned.value)
    assert sorted(promised) == sorted(module.__all__)
    modules = {a.name for n in stub.body if isinstance(n, ast.ImportFrom) and n.module is None for a in n.names}
    for name in set(promised) - modules:
        found = getattr(module, name)
        # A function keeps its name where a file of the room has the same one.
        assert not isinstance(found, type(ast)), f"{room}.{name} is a module"


def test_the_package_alone_imports_nothing_to_calculate_with() -> None:
    modules = loaded_by("import steelyard")
    assert not {"numpy", "scipy", "rich", "plotly", "typer"} & modules


def test_identify_leaves_closed_what_most_identifications_never_enter() -> None:
    modules = loaded_by("from steelyard import identify")
    never = ("scipy.optimize", "scipy.stats", "scipy.interpolate", "scipy.signal", "cvxpy", "rich", "plotly",
             "llvmlite", "typer", "jax")  # fmt: skip
    assert not set(never) & modules
    rooms = {m.split(".")[1] for m in modules if m.startswith("steelyard.")}
    assert not {"excitation", "payload", "local", "compare", "rehearsal", "report", "papers", "cli"} & rooms
    assert not {m for m in modules if m.startswith(("steelyard.estimation.kalman", "steelyard.estimation.neural"))}


def test_a_fleet_of_files_on_this_machine_needs_nothing_that_speaks_to_a_network() -> None:
    modules = loaded_by("import steelyard.fleet.fleet_files\nfrom steelyard.signals.read import read_log")
    assert not {"fsspec", "aiohttp", "s3fs", "dask", "distributed", "llvmlite", "rich", "plotly"} & modules


def test_a_function_keeps_its_name_whoever_imported_its_file_first() -> None:
    script = "import steelyard.excitation.excite\nfrom steelyard.excitation import excite\nassert callable(excite)"
    assert "steelyard.excitation.excite" in loaded_by(script)
