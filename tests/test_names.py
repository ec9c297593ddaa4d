"""One name, one meaning, for modules and for what they define; a module is named after a thing or an action.

The name of a module is a noun (`payload`), or a verb with its object (`read_plan`). A participle alone (`given`,
`exported`) says that something happened, but not to what.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sources import parsed

PACKAGE = Path(__file__).parents[1] / "src" / "steelyard"


@cache
def words(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Public names that a module defines, and those of its arguments, fields and functions."""
    tree = parsed(path)
    return frozenset(defined(tree)), frozenset(named(tree))


def defined(tree: ast.Module) -> Iterator[str]:
    """Public names that a module defines at its outermost level; imported names belong to other modules, and a
    command is called as the verb that it runs."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            command = any(ast.unparse(d).startswith("command(") for d in node.decorator_list)
            names = [] if command else [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target)
                     if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]  # fmt: skip
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def test_no_public_name_has_two_meanings():
    """Papers may share names among themselves."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if not any(part.startswith("_") and part != "__init__.py" for part in place.parts):
            for name in words(path)[0]:
                homes[name].add(place)
    assert len(homes) > 500, "the package was not found"
    twice = {
        name: sorted(map(str, places)) for name, places in homes.items()
        if len(places) > 1 and not all(p.parts[0] == "papers" for p in places)
    }  # fmt: skip
    assert not twice


# Words that had several units or meanings (CONTRIBUTING.md, "Words"), and where one is still right: options keep their
# names, and levels of a comparison are texts such as "auto".
VAGUE = {"bandwidth", "cutoff", "score_cutoff", "spread", "spreads", "realisable", "physically_consistent"}
KEPT = {"cutoff": {"compare/protocol.py"}}


def named(tree: ast.Module) -> Iterator[str]:
    """Arguments, fields and functions of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.FunctionDef):
            yield node.name.lstrip("_")


def test_arguments_and_fields_say_their_unit_and_which_spread_they_mean():
    found = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        vague = {word for word in VAGUE.intersection(words(path)[1]) if place not in KEPT.get(word, ())}
        if vague and not place.startswith("cli/"):
            found[place] = vague
    assert not found


# Module names that several rooms use, and the one meaning that they share.
SHARED = {
    "actuators": "the drives of joints: their terms, and their identification",
    "columns": "declared tables of the room's results",
    "excitation": "how well a motion shows the parameters",
    "excite": "design of a motion: of the robot, or of its payload",
    "formats": "table of the file formats that a room reads or writes",
    "friction": "friction of the joints",
    "helper_process": "a child process of the application",
    "identify": "the function of the room that identifies",
    "kinematics": "poses and velocities of the links",
    "mjcf": "MuJoCo's format, read or written",
    "notebook": "display in notebooks",
    "objects": "models of other libraries, read or written",
    "on_gpu": "the GPU back end of the room",
    "page": "the page of the room's results, and their text on a terminal",
    "payload": "payload of the robot",
    "registry": "a registry of members by name",
    "robot_page": "the page of one robot",
    "settings": "settings of the room's function",
    "terminal": "output on a terminal",
    "urdf": "URDF, read or written",
}
# Adjectives and nouns that end as participles do.
NO_PARTICIPLES = {"speed", "feed", "seed"}
IRREGULAR = {
    "begun", "broken", "built", "chosen", "done", "drawn", "driven", "felt", "found", "given", "gone", "heard", "held",
    "hidden", "kept", "known", "left", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold",
    "spent", "spoken", "stood", "taken", "told", "thought", "won", "worn", "written",
}  # fmt: skip


def module_names() -> dict[str, list[str]]:
    """Paths of the modules and packages by name, without those of papers, commands and stages.

    A command and a stage of the studio are named after the verb that they run.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.parent if path.name == "__init__.py" else path.with_suffix("")
        name = module.relative_to(PACKAGE).as_posix()
        if path.name == "__main__.py" or module == PACKAGE or name.startswith(("papers/", "cli/", "studio/stages/")):
            continue
        names[module.name].append(name)
    return names


def test_no_module_name_has_two_meanings() -> None:
    """A room may contain a module with the same name; only files of their folder import private modules."""
    twice = {}
    for name, places in module_names().items():
        ours = [place for place in places if place.split("/")[-2:] != [name, name] and not name.startswith("_")]
        if len(ours) > 1:
            twice[name] = ours
    assert len(module_names()) > 300, "the package was not found"
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}
    assert set(SHARED) <= set(twice), f"no longer shared: {sorted(set(SHARED) - set(twice))}"


def is_participle(name: str) -> bool:
    """Whether a name is one word that ends as a participle does; `parsed_tree` has a noun."""
    word = name.lstrip("_")
    return (
        "_" not in word
        and word not in NO_PARTICIPLES
        and (word in IRREGULAR or (len(word) > 3 and word.endswith("ed")))
    )


def test_no_module_is_named_by_a_participle_alone() -> None:
    assert [places for name, places in module_names().items() if is_participle(name)] == []


@pytest.mark.parametrize(
    ("name", "expected"), [("given", True), ("_exported", True), ("held_poses", False), ("rows", False)]
)
def test_a_participle_is_recognised(name: str, expected: bool) -> None:
    assert is_participle(name) is expected


# An argument is a thing. (`given` is an option of commands, and `held` the kind of a torque between samples.)
NO_ARGUMENTS = {"asked", "begun", "found", "gone", "kept", "made", "said", "seen", "told"}


def test_no_argument_is_named_by_a_participle_alone() -> None:
    bare = {
        f"{path.relative_to(PACKAGE)}: {node.arg}"
        for path in PACKAGE.rglob("*.py") for node in ast.walk(parsed(path))
        if isinstance(node, ast.arg) and node.arg in NO_ARGUMENTS
    }  # fmt: skip
    assert not bare
