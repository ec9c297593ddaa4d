"""The house keeps its plan: rooms import what docs/architecture.md allows, and files fit in the head."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from sources import parsed

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "steelyard"
PLAN = ROOT / "docs" / "architecture.md"

# Files that reach up to a later room, and why that is right there. None does so while it is being imported.
REACHES_UP = {
    ("robot/robot.py", "dynamics"): "robot.dynamics and robot.torque_regressor(…) as a convenience, when called",
    ("robot/dh.py", "parameters"): "how many parameters a term has, known to its class, when a file states one",
}
# A plan must exclude something: of the pairs of a room with an earlier one, less than half are allowed.
MOST_ALLOWED = 0.5
# The doors of the package: they join rooms and are not rooms.
DOORS = {"__init__.py", "__main__.py"}

# A file has one noun or one verb: past this it is probably two.
LINES = 400
LONG = {
    "tests/papers/closed_forms.py": "formulas of papers as they are printed, one after the other",
    "tests/robot/test_library.py": "one table of published numbers per built-in robot",
}


def plan() -> dict[str, set[str]]:
    """The rooms that each room may import: those in its row of the plan, and the ground floor, the first row."""
    allowed: dict[str, set[str]] = {}
    ground: set[str] = set()
    table = PLAN.read_text(encoding="utf-8").split("## Rooms", 1)[1].split("\n## ", 1)[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rooms = re.findall(r"`(\w+)`", cells[0])
        if len(cells) != 3 or not rooms:
            continue
        named = set(re.findall(r"\w+", cells[2]))
        assert named <= set(allowed), f"{rooms} may only name rooms above: {named - set(allowed)}"
        ground = ground or set(rooms)
        allowed |= {room: named | ground | {room} for room in rooms}
    return allowed


@cache
def imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Rooms of this package that a file imports, anywhere in it, and whether it does so while it is imported itself."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    tree = parsed(path)
    later = {id(node) for part in ast.walk(tree) if _is_later(part) for node in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules = [
                f"{node.module}.{alias.name}" if node.module == "steelyard" else node.module or ""
                for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module.startswith("steelyard."):
                yield module.split(".")[1], id(node) not in later


def _is_later(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    return isinstance(node, ast.FunctionDef)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if str(path.relative_to(PACKAGE)) not in DOORS]


@pytest.mark.parametrize("room", sorted({room_of(path) for path in FILES}))
def test_a_room_imports_only_what_the_plan_allows(room: str) -> None:
    allowed = plan()
    assert room in allowed, f"'{room}' has no row in the table of {PLAN.name}: say what it holds and what it may import"
    for path in FILES:
        if room_of(path) != room:
            continue
        name = path.relative_to(PACKAGE).as_posix()
        for imported, at_once in imports(path):
            if imported in allowed[room]:
                continue
            assert (name, imported) in REACHES_UP, (
                f"{name} imports {imported}; {room} may import {sorted(allowed[room])}"
            )
            assert not at_once, f"{name} imports {imported} while it is being imported itself"


def test_exceptions_are_still_needed() -> None:
    for name, imported in REACHES_UP:
        assert imported in {room for room, _ in imports(PACKAGE / name)}, f"{name} does not import {imported} any more"


def known() -> dict[str, set[str]]:
    """The rooms that each room imports, also inside functions, without the exceptions."""
    found: dict[str, set[str]] = {room_of(path): set() for path in FILES}
    for path in FILES:
        room, name = room_of(path), path.relative_to(PACKAGE).as_posix()
        found[room] |= {other for other, _ in imports(path) if other != room and (name, other) not in REACHES_UP}
    return found


def test_no_knot_is_tied_by_imports_inside_functions() -> None:
    list(TopologicalSorter(known()).static_order())  # a CycleError names the rooms


def test_the_plan_allows_what_is_needed_and_no_more() -> None:
    allowed, needed, ground = plan(), known(), {"errors", "ground"}
    for room, others in allowed.items():
        unused = others - needed[room] - ground - {room}
        assert not unused, f"{room} may import {sorted(unused)} and does not: take it out of the table of {PLAN.name}"
    pairs = sum(len(others - {room}) for room, others in allowed.items())
    share = pairs / (len(allowed) * (len(allowed) - 1) / 2)
    assert share < MOST_ALLOWED, f"{pairs} pairs of rooms are allowed, {100 * share:.0f} %"


def test_the_plan_has_no_rooms_that_are_gone() -> None:
    standing = {room_of(path) for path in FILES}
    assert set(plan()) <= standing, f"gone, but in the table: {set(plan()) - standing}"


# Modules about the machine, and the files that may import them although they are not machine code.
MACHINE = re.compile(r"llvm|\bctypes\b|\bSTRIDE\b|\bLANES\b|\bvector_width\b")
SPEAKS = {
    "ground/arrays.py": "threads share one heap by a call of the C library",
    "ground/atomic_files.py": "atomic renames and exchanges by system calls that Python lacks",
}


def test_only_machine_code_knows_the_machine() -> None:
    """LLVM, ctypes, vector registers and the layout of lanes are known in dynamics/native alone."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "native" not in path.parts and MACHINE.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(SPEAKS)


def test_files_fit_in_the_head() -> None:
    sources = [path for part in ("src", "tests", "benchmarks") for path in (ROOT / part).rglob("*.py")]
    lines = {p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in sources}
    long = {name for name, count in lines.items() if count > LINES}
    assert long <= set(LONG), f"past {LINES} lines, probably two files: {sorted(long - set(LONG))}"
    assert set(LONG) <= long, f"no longer long: {sorted(set(LONG) - long)}"
