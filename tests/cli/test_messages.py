"""Messages on the command line name options, not only arguments of Python."""

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
# Messages of these files appear only in Python.
_PYTHON_ONLY = {"estimation/recursion/_history.py", "regression/factor.py", "studio/meanings.py"}


def _text(node: ast.AST) -> str:
    """All text of a message without its inserted values."""
    return "".join(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _messages() -> Iterator[tuple[str, str]]:
    for file in sorted(_SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args:
                    yield file.relative_to(_SOURCES).as_posix(), _text(argument)


def test_a_message_with_a_python_argument_names_the_option_too() -> None:
    wrong = [
        (file, text)
        for file, text in _messages()
        if file not in _PYTHON_ONLY and _ARGUMENT.search(text) and "Python" not in text and "<" not in text
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
def test_the_message_names_the_option_that_helps(words: tuple[str, ...], option: str) -> None:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 2
    assert option in " ".join(result.stderr.split())


def test_the_repeat_command_keeps_the_selected_joints() -> None:
    """Once `--only` was dropped, so that the repeated command measured all joints."""
    result = CliRunner().invoke(app, ["friction", "rotradi", "--design", "--only", "q1"])
    assert result.exit_code == 0
    assert "--only q1" in " ".join(result.stdout.split())
