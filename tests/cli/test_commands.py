"""The program knows its commands without importing them, and what it says of them is what they say themselves."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any

import pytest
from typer.testing import CliRunner

from steelyard.cli.app import COMMANDS, LISTS, STAGES, Commands, app, filled

GROUPS = {name.split()[0] for name in COMMANDS if " " in name}
SINGLE = [name for name in COMMANDS if name not in GROUPS]


@pytest.mark.parametrize("name", SINGLE)
def test_the_table_says_what_the_command_says(name: str) -> None:
    module = import_module(f"steelyard.cli.{name.split()[0]}")
    function = getattr(module, name.split()[-1])
    assert COMMANDS[name] == " ".join(cleandoc(function.__doc__).split())


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_nothing_left_to_fill_in(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "".join(COMMANDS[name].split()) in "".join(shown.stdout.split())
    assert not [listed for listed in LISTS if f"{{{listed}" in shown.stdout]
    assert name in GROUPS or "Example" in shown.stdout


def test_help_lists_every_command_once_by_stage_with_a_whole_sentence() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    sections = {part.split(":\n")[0]: part for part in shown.split("\n\n") if ":\n" in part}
    for stage, names in STAGES.items():
        listed = [line.split()[0] for line in sections[stage].splitlines()[1:] if line[2] != " "]
        assert listed == [name for name in names if " " not in name]
        assert not [line for line in sections[stage].splitlines() if line.endswith("...")]
        assert sections[stage].strip()[-1] in ".)"


@pytest.mark.parametrize("name", list(LISTS))
def test_lists_in_help_name_what_there_is(name: str) -> None:
    module, listed = LISTS[name]
    found = getattr(import_module(f"steelyard.{module}"), listed)
    if callable(found):
        assert filled(f"One of {{{name}}}") == f"One of {found()}"
        return
    members = list(found)
    assert len(members) > 1
    assert filled(f"One of {{{name}:or}}.") == f"One of {', '.join(members[:-1])} or {members[-1]}."
    assert filled(f"{{{name}:,}}") == ",".join(members)


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a run of the program has imported when it ends."""
    script = (
        "import sys\nfrom steelyard.cli import app\n"
        f"try:\n    app({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_no_command_and_nothing_to_calculate_with() -> None:
    modules = loaded_by("--help")
    assert not {m for m in modules if m.startswith("steelyard.cli.")} - {"steelyard.cli.app"}
    assert not {"numpy", "rich", "scipy", "plotly", "steelyard.robot.robot"} & modules


def test_a_command_imports_no_other_command_and_no_page_it_does_not_write() -> None:
    modules = loaded_by("inspect", "rotradi", "--json")
    others = {f"steelyard.cli.{name.split()[0]}" for name in COMMANDS} - {"steelyard.cli.inspect"}
    assert not others & modules
    assert not {"rich", "plotly", "steelyard.excitation", "steelyard.estimation", "cvxpy"} & modules


@pytest.mark.parametrize("name", SINGLE)
def test_every_option_says_what_it_is_for(name: str) -> None:
    group: Any = Commands(name="steelyard")
    for word in name.split():
        group = group.get_command(None, word)
    silent = [p.name for p in group.params if not p.help and not getattr(p, "hidden", False)]
    assert group.params
    assert silent == []
