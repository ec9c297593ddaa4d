"""The program lists its commands without importing them, and its help equals theirs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any

import pytest
from typer.testing import CliRunner

from steelyard.cli.app import COMMANDS, LISTS, STAGES, Commands, app, expand_lists

GROUPS = {name.split()[0] for name in COMMANDS if " " in name}
SINGLE = [name for name in COMMANDS if name not in GROUPS]


@pytest.mark.parametrize("name", SINGLE)
def test_the_table_equals_the_docstring_of_the_command(name: str) -> None:
    module = import_module(f"steelyard.cli.{name.split()[0]}")
    function = getattr(module, name.split()[-1])
    assert COMMANDS[name] == " ".join(cleandoc(function.__doc__).split())


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_help_text_is_complete(name: str) -> None:
    output = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert output.exit_code == 0
    assert "".join(COMMANDS[name].split()) in "".join(output.stdout.split())
    assert not [attribute for attribute in LISTS if f"{{{attribute}" in output.stdout]
    assert name in GROUPS or "Example" in output.stdout


def test_help_lists_every_command_by_stage_with_a_complete_sentence() -> None:
    output = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    sections = {part.split(":\n")[0]: part for part in output.split("\n\n") if ":\n" in part}
    for stage, names in STAGES.items():
        attribute = [line.split()[0] for line in sections[stage].splitlines()[1:] if line[2] != " "]
        assert attribute == [name for name in names if " " not in name]
        assert not [line for line in sections[stage].splitlines() if line.endswith("...")]
        assert sections[stage].strip()[-1] in ".)"


@pytest.mark.parametrize("name", list(LISTS))
def test_lists_in_help_name_all_members(name: str) -> None:
    module, attribute = LISTS[name]
    value = getattr(import_module(f"steelyard.{module}"), attribute)
    if callable(value):
        assert expand_lists(f"One of {{{name}}}") == f"One of {value()}"
        return
    members = list(value)
    assert len(members) > 1
    assert expand_lists(f"One of {{{name}:or}}.") == f"One of {', '.join(members[:-1])} or {members[-1]}."
    assert expand_lists(f"{{{name}:,}}") == ",".join(members)


def imported_by(*arguments: str) -> set[str]:
    """Return the modules that a run of the program imports."""
    script = (
        "import sys\nfrom steelyard.cli import app\n"
        f"try:\n    app({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(process.stderr.split())


def test_help_imports_neither_commands_nor_numerical_packages() -> None:
    modules = imported_by("--help")
    assert not {m for m in modules if m.startswith("steelyard.cli.")} - {"steelyard.cli.app"}
    assert not {"numpy", "rich", "scipy", "plotly", "steelyard.robot.robot"} & modules


def test_a_command_imports_no_other_command_and_no_unused_page() -> None:
    modules = imported_by("inspect", "rotradi", "--json")
    others = {f"steelyard.cli.{name.split()[0]}" for name in COMMANDS} - {"steelyard.cli.inspect"}
    assert not others & modules
    assert not {"rich", "plotly", "steelyard.excitation", "steelyard.estimation", "cvxpy"} & modules


@pytest.mark.parametrize("name", SINGLE)
def test_every_option_has_a_help_text(name: str) -> None:
    group: Any = Commands(name="steelyard")
    for word in name.split():
        group = group.get_command(None, word)
    undocumented = [p.name for p in group.params if not p.help and not getattr(p, "hidden", False)]
    assert group.params
    assert undocumented == []
