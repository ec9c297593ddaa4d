"""Messages that reach the command line name options, not arguments of Python alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steelyard.cli import app

_SOURCES = Path(__file__).parents[2] / "src" / "steelyard"
# An argument as Python writes it: physical=True, how='table', snap=1e-4.
_ARGUMENT = re.compile(r"(?<![-\w:])[a-z]\w+=(True\b|False\b|None\b|'|\"|…)|load_robot\(")
# Only Python gets there.
_PYTHON_ALONE = {"estimation/recursion/_history.py", "regression/reduce.py", "studio/mapping_editor.py"}


def _text(node: ast.AST) -> str:
    """All text of a message, whatever is filled in left out."""
    return "".join(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _messages() -> Iterator[tuple[str, str]]:
    for file in sorted(_SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for given in node.exc.args:
                    yield file.relative_to(_SOURCES).as_posix(), _text(given)


def test_an_argument_of_python_stands_beside_what_the_command_line_has() -> None:
    wrong = [
        (file, text)
        for file, text in _messages()
        if file not in _PYTHON_ALONE and _ARGUMENT.search(text) and "Python" not in text and "<" not in text
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("excite", "rotradi", "--harmonics", "1"), "--harmonics"),
        (("excite", "rotradi", "--scaling", "orthonormal", "--parameters", "mx3"), "--scaling unit"),
        (("excite", "rotradi", "--optimiser", "cma", "--population", "3"), "--population"),
        (("friction", "rotradi", "--design", "--on", "drive"), "--on drive"),
    ],
)
def test_the_option_that_helps_is_named(words: tuple[str, ...], option: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 2
    assert option in " ".join(done.stderr.split())


def test_the_command_to_repeat_keeps_the_joints_that_were_asked_for() -> None:
    """`--only` chooses what is measured; it was dropped, and the repeated command measured all joints."""
    done = CliRunner().invoke(app, ["friction", "rotradi", "--design", "--only", "q1"])
    assert done.exit_code == 0
    assert "--only q1" in " ".join(done.stdout.split())
