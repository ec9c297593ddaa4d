"""Every argument of every public function is documented, with its unit where it has one.

A function is public if no folder, file, class or function name on its path begins with an underscore. A function with
two or more arguments documents them in an `Args:` block. A sentence may name a single argument in backticks.
The block may be in the docstring of the function, of its class, or of a base class that defines the same method.
The items of papers have one signature, which `Paper` documents. The help of the options documents the arguments of a
command (`tests/cli/test_commands.py`).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest
from sources import parsed

PACKAGE = Path(__file__).parent.parent / "src" / "steelyard"

# Of the methods that Python itself names, those that people call with arguments of our choosing.
OURS = {"__init__", "__call__"}


class Function(NamedTuple):
    room: str
    where: str
    definition: ast.FunctionDef
    owner: ast.ClassDef | None


def hidden(name: str) -> bool:
    return name.startswith("_") and name not in OURS


def stands(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Whether this is a public function itself, no command, and not one of the types that it is overloaded for."""
    if not isinstance(node, ast.FunctionDef) or hidden(node.name):
        return False
    makers = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return not any(isinstance(maker, ast.Name) and maker.id in ("overload", "command") for maker in makers)


@cache
def modules() -> dict[Path, ast.Module]:
    return {path.relative_to(PACKAGE): parsed(path) for path in sorted(PACKAGE.rglob("*.py"))}


def public() -> Iterator[Function]:
    for path, tree in modules().items():
        if any(hidden(part) for part in path.parts if part != "__init__.py"):
            continue
        room = path.parts[0]
        for node in tree.body:
            if stands(node):
                yield Function(room, f"{path}: {node.name}", node, None)
            elif isinstance(node, ast.ClassDef) and not hidden(node.name):
                for method in node.body:
                    if stands(method):
                        yield Function(room, f"{path}: {node.name}.{method.name}", method, node)


def arguments(definition: ast.FunctionDef) -> list[str]:
    stated = definition.args
    every = [*stated.posonlyargs, *stated.args, stated.vararg, *stated.kwonlyargs, stated.kwarg]
    names = [each.arg for each in every if each is not None]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    found = defaultdict(list)
    for tree in modules().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(node)
    return found


def bases(owner: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """The class itself and all of its bases that this package defines."""
    yield owner
    for base in owner.bases:
        stated = base.value if isinstance(base, ast.Subscript) else base
        name = stated.attr if isinstance(stated, ast.Attribute) else getattr(stated, "id", "")
        for each in classes().get(name, []):
            if each is not owner:
                yield from bases(each)


def texts(function: Function) -> Iterator[str]:
    """The docstrings that may document an argument of a function."""
    if function.owner is None:
        yield ast.get_docstring(function.definition) or ""
        if isinstance(function.definition.returns, ast.Name) and function.definition.returns.id == "Item":
            yield from (ast.get_docstring(paper) or "" for paper in classes()["Paper"])
        return
    for owner in bases(function.owner):
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name == function.definition.name:
                yield ast.get_docstring(method) or ""
                yield ast.get_docstring(owner) or ""


def documented(name: str, text: str, in_backticks: bool) -> bool:
    if in_backticks and re.search(rf"`\*{{0,2}}{name}`", text):
        return True
    _, block, lines = text.partition("Args:\n")
    return bool(block) and re.search(rf"^ +([*\w]+, )*\**{name}(, [*\w]+)*:", lines, re.MULTILINE) is not None


def promised(function: Function) -> set[str]:
    """Positional arguments that a base class states in their place: callers do not name them, so names may differ."""
    for owner in list(bases(function.owner))[1:] if function.owner is not None else ():
        for method in owner.body:
            if isinstance(method, ast.FunctionDef) and method.name == function.definition.name:
                places = range(len(method.args.posonlyargs))
                return {each.arg for k, each in enumerate(function.definition.args.posonlyargs) if k in places}
    return set()


def missing(function: Function) -> list[str]:
    known, stated = list(texts(function)), promised(function)
    names = [name for name in arguments(function.definition) if name not in stated]
    in_backticks = len(names) < 2
    return [name for name in names if not any(documented(name, text, in_backticks) for text in known)]


def gaps(room: str) -> list[str]:
    return [
        f"{each.where}({', '.join(lacking)})" for each in public() if each.room == room and (lacking := missing(each))
    ]


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """A package is some million nodes: they are freed before and after these tests."""
    yield
    modules.cache_clear()
    classes.cache_clear()


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}))
def test_every_argument_is_documented(room: str) -> None:
    assert gaps(room) == []


def test_a_missing_argument_is_seen() -> None:
    tree = ast.parse(
        'def one(mass, torque, rate):\n    """Of `mass` (kg).\n\n    Args:\n        torque: in N m; rate it.\n    """\n'
    )
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert missing(Function("", "", definition, None)) == ["mass", "rate"]


def test_a_single_argument_may_be_named_in_the_sentence() -> None:
    definition = ast.parse('def one(mass):\n    """Weigh a `mass` [kg]."""\n').body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert missing(Function("", "", definition, None)) == []


def test_what_a_base_class_documents_need_not_be_said_again() -> None:
    tree = ast.parse("class Mine(Term):\n    def force(self, u, du, ddu): ...\n")
    owner = tree.body[0]
    assert isinstance(owner, ast.ClassDef)
    definition = owner.body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert missing(Function("parameters", "", definition, owner)) == ["ddu"]
