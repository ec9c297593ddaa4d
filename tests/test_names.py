"""One name, one meaning: what two public modules define under the same name is told apart by its name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sources import parsed

PACKAGE = Path(__file__).parents[1] / "src" / "steelyard"


@cache
def words(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Public names that a module defines, and those of its arguments, fields and functions."""
    tree = parsed(path)
    return frozenset(defined(tree)), frozenset(named(tree))


def defined(tree: ast.Module) -> Iterator[str]:
    """Public names that a module defines at its outermost level; what it imports is another's, and a
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
# names, a scheme its hidden old setting, and levels of a comparison are texts such as "auto".
VAGUE = {"bandwidth", "cutoff", "score_cutoff", "spread", "spreads", "realisable", "physically_consistent"}
KEPT = {"cutoff": {"regression/schemes/filtered_balance.py", "compare/protocol.py"}}


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
