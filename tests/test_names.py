"""One name, one meaning: what two public modules define under the same name is told apart by its name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "steelyard"


def defined(path: Path) -> Iterator[str]:
    """Public names that a module defines at its outermost level; what it imports is another's."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target)
                     if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]  # fmt: skip
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def test_no_public_name_has_two_meanings():
    """Papers may share names among themselves, and a command is called as the verb that it runs."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if not any(part.startswith("_") and part != "__init__.py" for part in place.parts):
            for name in defined(path):
                homes[name].add(place)
    assert len(homes) > 500, "the package was not found"
    twice = {}
    for name, places in homes.items():
        commands = {p for p in places if p.parts[0] == "cli" and (name.islower() or name == "Options")}
        others = places - commands
        if len(others) > 1 and not all(p.parts[0] == "papers" for p in others):
            twice[name] = sorted(map(str, places))
    assert not twice
