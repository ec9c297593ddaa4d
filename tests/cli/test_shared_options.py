"""An option that several commands have is one option: it says and means the same in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.app import COMMANDS, Commands, app
from steelyard.cli.filling import with_project
from steelyard.cli.options import Described
from steelyard.cli.panels import PANELS, panel_of

GROUPS = {name.split()[0] for name in COMMANDS if " " in name}


def command(name: str) -> Any:
    found: Any = Commands(name="steelyard")
    for word in name.split():
        found = found.get_command(None, word)
    return found


EVERY = {name: {p.name: p for p in command(name).params} for name in COMMANDS if name not in GROUPS}
# A watch goes by a model whose robot is the one at hand: another description would be another robot.
WITH_ROBOT = [name for name, params in EVERY.items() if {"robot", "model"} & set(params) and name != "watch"]


def said(param: Any) -> tuple[Any, ...]:
    return tuple(param.opts), param.metavar, param.help, param.default, param.nargs


@pytest.mark.parametrize("option", ["joints", "lock", "gravity", "snap"])
def test_every_command_with_a_robot_reads_its_description_by_the_same_options(option: str) -> None:
    assert len(WITH_ROBOT) > 15
    assert {said(EVERY[name][option]) for name in WITH_ROBOT if option in EVERY[name]} == {
        said(EVERY["inspect"][option])
    }
    assert [name for name in WITH_ROBOT if option not in EVERY[name]] == []


@pytest.mark.parametrize("option", ["mapping", "overwrite", "as_json"])
def test_other_options_of_many_commands_are_one(option: str) -> None:
    found = {said(params[option]) for name, params in EVERY.items() if option in params and name != "init"}
    assert len(found) == 1


@pytest.mark.parametrize("name", [name for name, params in EVERY.items() if len(params) > 14])
def test_long_commands_show_their_options_in_panels(name: str) -> None:
    options = [p.name for p in EVERY[name].values() if p.param_type_name == "option" and not p.hidden]
    panels = [panel_of(option) for option in options]
    assert len(set(panels)) >= 3
    assert panels.count("Options") <= 9
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
    places = [shown.index(f"\n{panel}:") for panel in PANELS if panel in panels]
    assert places == sorted(places)
    last = shown[places[-1] :]
    assert "--json" in last
    assert "--overwrite" in last or "overwrite" not in options


def test_what_is_in_a_panel_is_an_option() -> None:
    known = {p for params in EVERY.values() for p in params} | {"help"}
    assert {option for names in PANELS.values() for option in names} - known == set()


def test_joints_lock_and_gravity_reach_the_robot_as_in_python() -> None:
    read = Described(joints="q3,q1", lock=["q2=0.5", "q6 = -1"], gravity="0,9.81,0").robot("ns16")
    asked = sy.load_robot("ns16", joints=["q3", "q1"], locked={"q2": 0.5, "q6": -1.0}, gravity=(0.0, 9.81, 0.0))
    motion = np.random.default_rng(0).normal(size=(3, 7, 2))
    assert read.joint_names == ("q3", "q1")
    assert np.array_equal(sy.Model.nominal(read).torque(*motion), sy.Model.nominal(asked).torque(*motion))


def test_a_lock_that_is_none_is_refused_in_one_sentence() -> None:
    done = CliRunner().invoke(app, ["check", "ns16", "no.csv", "--lock", "q2"])
    assert done.exit_code == 2
    assert "--lock is 'q2'; give joint=value, e.g. --lock elbow=0.5." in done.stderr


@pytest.mark.parametrize("name", list(EVERY))
def test_the_command_that_is_recorded_says_every_option_as_it_was_typed(name: str) -> None:
    """Typed with all options there are, flags both ways, lists twice: the words that are kept are read the same."""
    found = command(name)
    for on in (True, False):
        typed: list[str] = []
        for param in found.params:
            if param.param_type_name == "argument":
                typed += [f"an {param.name}'s", "-"][: 2 if param.nargs == -1 else 1]
            elif getattr(param, "is_flag", False):
                typed += [*param.opts[:1]] if on or not param.secondary_opts else [*param.secondary_opts[:1]]
            else:
                for value in ("-1,2 3", "b=c")[: 2 if param.multiple else 1]:
                    typed += [f"{param.opts[-1]}={value}"]
        context = found.context_class(found)
        read = found.make_parser(context).parse_args(args=list(typed))[0]
        kept = with_project(found, read, None, name)
        assert found.make_parser(context).parse_args(args=list(kept.words))[0] == read
        assert not {"--json", "--overwrite", "-o"} & set(kept.of_result)
