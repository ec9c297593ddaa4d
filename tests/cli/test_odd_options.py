"""Impossible numbers of options are refused with one sentence that names the option, before any work."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli.app import COMMANDS, Commands, app
from steelyard.errors import ExcitationError, LogError, SteelyardError
from steelyard.excitation.excite import excite
from steelyard.excitation.motion_design import design_motions, expected_noise
from steelyard.robot.library import builtin
from steelyard.signals.excerpt import average_periods
from steelyard.signals.filters import LowPass
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation

IMPOSSIBLE = ("nan", "inf", "-inf", "1e308")


def numeric_options() -> list[tuple[str, str, bool]]:
    """Return all numeric options: command, option, whether it is an integer."""
    options = []
    for name in COMMANDS:
        above, _, last = name.rpartition(" ")
        command = Commands(above=above).get_command(None, last)
        for option in getattr(command, "params", ()):
            kinds = getattr(option.type_descriptor.annotation, "__args__", (option.type_descriptor.annotation,))
            if {int, float} & set(kinds):
                options.append((name, option.opts[-1], int in kinds))
    return options


OPTIONS = numeric_options()


def test_there_are_many_numeric_options() -> None:
    assert len(OPTIONS) > 30


def arguments(name: str) -> list[str]:
    needed = {"payload": ["--with", "none.x"], "local recalibrate": ["none.x", "none.x", "--log", "none.x"]}
    two = (
        "identify",
        "check",
        "rehearse",
        "local design",
        "local identify",
        "local validate",
        "compare schemes",
        "sequential",
        "predict",
        "gravity",
        "elastic",
        "match",
    )
    return [*name.split(), "none.x", *needed.get(name, ["none.x"] if name in two else [])]


@pytest.mark.parametrize(("name", "option", "integer"), OPTIONS, ids=lambda v: str(v))
def test_every_option_is_checked_before_anything_is_read(name: str, option: str, integer: bool) -> None:
    for value in ("-7", "9" * 40) if integer else IMPOSSIBLE:
        result = CliRunner().invoke(app, [*arguments(name), f"{option}={value}"])
        assert result.exit_code == 2
        assert option in result.output.replace("\n", "")


@pytest.mark.parametrize(
    "typed",
    [
        ["identify", "rotradi", "none.csv", "--cutoff", "1e-308"],
        ["identify", "rotradi", "none.csv", "--score-cutoff", "1e-308"],
        ["identify", "rotradi", "none.csv", "--delay", "nan"],
        ["identify", "rotradi", "none.csv", "--period", "1e308"],
        ["excite", "rotradi", "--seed", "-1"],
        ["excite", "rotradi", "--noise", "1,2,3,4,5"],
        ["excite", "rotradi", "--noise", "nan"],
        ["excite", "rotradi", "--floor", "nan"],
        ["excite", "rotradi", "--posture", "nan,0,0"],
        ["excite", "rotradi", "--box", "0,inf,0,1,0,1"],
        ["excite", "rotradi", "--dq", "nan"],
        ["excite", "rotradi", "--gravity", "0,0,1e308"],
        ["excite", "rotradi", "--harmonics", "100000"],
        ["excite", "rotradi", "--duration", "1e6", "--rate", "1e6"],
    ],
    ids=" ".join,
)
def test_the_error_is_one_sentence(typed: list[str]) -> None:
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    message = result.output.strip().splitlines()[-1]
    assert message.startswith("steelyard: ")
    assert len(message) <= 320
    assert typed[-2].strip("-") in message


ARM = builtin("rotradi")
STILL = Log(ARM.joint_names, np.arange(100) * 0.01, np.zeros((100, ARM.dof)))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Preparation(cutoff_hz=1e-308), LogError),
        (lambda: Preparation(delay=float("nan")), LogError),
        (lambda: Preparation(mask=-1.0), LogError),
        (lambda: Preparation(order=0), LogError),
        (lambda: LowPass(1e-308, 0.001), SteelyardError),
        (lambda: average_periods(STILL, 1e308), LogError),
        (lambda: average_periods(STILL, float("nan")), LogError),
        (lambda: average_periods(STILL, 2.0), LogError),
        (lambda: excite(ARM, seed=-1), ExcitationError),
        (lambda: excite(ARM, floor=float("nan")), ExcitationError),
        (lambda: excite(ARM, duration=1e9, rate=1e9), ExcitationError),
        (lambda: expected_noise(ARM, [1.0, 2.0, 3.0, 4.0, 5.0]), ExcitationError),
        (lambda: design_motions(ARM, noise=float("nan")), ExcitationError),
    ],
)
def test_the_library_refuses_the_same_values(call, error) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error


def test_a_warning_shows_no_source_line() -> None:
    code = (
        "import warnings; from importlib import import_module; program = import_module('steelyard.cli.app'); "
        "program.app = lambda **_: warnings.warn('Mind this.'); program.main()"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert output == "steelyard: note: Mind this.\n"
