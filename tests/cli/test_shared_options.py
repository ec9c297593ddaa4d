"""An option of several commands has the same help and meaning in all of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.app import COMMANDS, Commands, app
from steelyard.cli.options import RobotOptions
from steelyard.cli.panels import COMMON_OPTIONS, PANELS, panel_of
from steelyard.cli.project_options import with_project

GROUPS = {name.split()[0] for name in COMMANDS if " " in name}


def command(name: str) -> Any:
    group: Any = Commands(name="steelyard")
    for word in name.split():
        group = group.get_command(None, word)
    return group


EVERY = {name: {p.name: p for p in command(name).params} for name in COMMANDS if name not in GROUPS}
# `watch` uses the robot of its model, so a description would be another robot. `actuator` takes one joint as its load.
OTHERS = ("watch", "actuator")
WITH_ROBOT = [name for name, params in EVERY.items() if {"robot", "model"} & set(params) and name not in OTHERS]


def declaration(param: Any) -> tuple[Any, ...]:
    return tuple(param.opts), param.metavar, param.help, param.default, param.nargs


@pytest.mark.parametrize("option", ["joints", "lock", "gravity", "snap"])
def test_commands_with_a_robot_have_the_same_description_options(option: str) -> None:
    assert len(WITH_ROBOT) > 15
    assert {declaration(EVERY[name][option]) for name in WITH_ROBOT if option in EVERY[name]} == {
        declaration(EVERY["inspect"][option])
    }
    assert [name for name in WITH_ROBOT if option not in EVERY[name]] == []


@pytest.mark.parametrize("option", ["mapping", "overwrite", "as_json"])
def test_other_shared_options_are_the_same(option: str) -> None:
    variants = {declaration(params[option]) for name, params in EVERY.items() if option in params and name != "init"}
    assert len(variants) == 1


@pytest.mark.parametrize("name", [name for name, params in EVERY.items() if len(params) > 14])
def test_long_commands_show_their_options_in_panels(name: str) -> None:
    options = [p.name for p in EVERY[name].values() if p.param_type_name == "option" and not p.hidden]
    panels = [panel_of(option) for option in options]
    assert len(set(panels)) >= 3
    assert panels.count("Options") <= 9
    shown = CliRunner().invoke(app, [*name.split(), "--help-all" if name in COMMON_OPTIONS else "--help"]).stdout
    positions = [shown.index(f"\n{panel}:") for panel in PANELS if panel in panels]
    assert positions == sorted(positions)
    last = shown[positions[-1] :]
    assert "--json" in last
    assert "--overwrite" in last or "overwrite" not in options


def test_panels_name_existing_options() -> None:
    known = {p for params in EVERY.values() for p in params} | {"help", "help_all"}
    assert {option for names in PANELS.values() for option in names} - known == set()
    for name, options in COMMON_OPTIONS.items():
        assert set(options) <= set(EVERY[name])


@pytest.mark.parametrize("name", COMMON_OPTIONS)
def test_help_shows_about_ten_options_and_help_all_every_option(name: str) -> None:
    short, whole = (CliRunner().invoke(app, [name, flag]).stdout for flag in ("--help", "--help-all"))
    options = [p.opts[-1] for p in EVERY[name].values() if p.param_type_name == "option" and not p.hidden]
    assert [option for option in options if f"{option} " not in whole.replace("\n", " ")] == []
    shown = [option for option in options if re.search(rf"^  .*{option}[ ,]", short, re.MULTILINE)]
    assert len(COMMON_OPTIONS[name]) <= len(shown) <= 16
    assert f"{len(options) - len(shown)} more options: steelyard {name} --help-all" in short
    assert "more options" not in whole


def test_joints_lock_and_gravity_reach_the_robot_as_in_python() -> None:
    read = RobotOptions(joints="q3,q1", lock=["q2=0.5", "q6 = -1"], gravity="0,9.81,0").robot("ns16")
    expected = sy.load_robot("ns16", joints=["q3", "q1"], locked={"q2": 0.5, "q6": -1.0}, gravity=(0.0, 9.81, 0.0))
    motion = np.random.default_rng(0).normal(size=(3, 7, 2))
    assert read.joint_names == ("q3", "q1")
    assert np.array_equal(sy.Model.nominal(read).torque(*motion), sy.Model.nominal(expected).torque(*motion))


def test_an_invalid_lock_is_refused_with_one_sentence() -> None:
    result = CliRunner().invoke(app, ["check", "ns16", "no.csv", "--lock", "q2"])
    assert result.exit_code == 2
    assert "--lock is 'q2'; write joint=value, e.g. --lock elbow=0.5." in result.stderr


@pytest.mark.parametrize("name", list(EVERY))
def test_the_recorded_command_contains_every_typed_option(name: str) -> None:
    """The recorded words of all options, flags and lists are parsed to the same values."""
    single = command(name)
    for on in (True, False):
        typed: list[str] = []
        for param in single.params:
            if param.param_type_name == "argument":
                typed += [f"an {param.name}'s", "-"][: 2 if param.nargs == -1 else 1]
            elif getattr(param, "is_flag", False):
                typed += [*param.opts[:1]] if on or not param.secondary_opts else [*param.secondary_opts[:1]]
            else:
                for value in ("-1,2 3", "b=c")[: 2 if param.multiple else 1]:
                    typed += [f"{param.opts[-1]}={value}"]
        context = single.context_class(single)
        read = single.make_parser(context).parse_args(args=list(typed))[0]
        recorded = with_project(single, read, None, name)
        assert single.make_parser(context).parse_args(args=list(recorded.words))[0] == read
        assert not {"--json", "--overwrite", "-o"} & set(recorded.of_result)
