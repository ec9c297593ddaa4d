"""`steelyard demo`: the complete workflow on a simulated 6-axis arm: motion, log, check, identification, report.

The arm is the built-in `ns16` with its nominal model as the truth. A simple search finds the motion, the sensors of the
log are quantised and noisy, and all further steps are those of a user.

The friction of the simulated arm has the same form as the fitted one, so that the result can be compared with the truth
within its error bars, which describe noise but not a different friction law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.excitation.motion_design import expected_noise
from steelyard.ground.arrays import Array
from steelyard.ground.folders import check_target
from steelyard.ground.outcome import Outcome
from steelyard.ground.progress import ProgressCallback, part, report_progress, reports_progress, steps
from steelyard.identification.identification import Identification
from steelyard.identification.identification_run import IdentificationRun
from steelyard.identification.identify import identify
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.library import builtin
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation.play import good_sensors, play

if TYPE_CHECKING:
    from rich.console import Console

_RATE = 1000.0  # sampling rate of the log [Hz]
_EXAMPLE_RATE = 250.0  # sampling rate of the example's logs, as of a common controller [Hz]
_EXAMPLE_LOOPS = 8  # control periods per sample; for longer periods, dry friction changes too fast at rest
# Mass and inertia of each link of the example are those of the description times one factor in this range, as after an
# estimate from CAD without cables; a common factor keeps the link physically possible.
_MASS_FACTORS = (0.75, 1.3)
DURATION = 20.0  # one period of the motion [s]
TRIALS = 40
# Joint terms of this robot, without an offset.
_TERMS = ("rotor", "coulomb", "viscous", "quadratic")
HARMONICS = np.array([1.0, 2.0, 3.0, 5.0, 8.0])


@dataclass(frozen=True)
class _Fourier:
    """A sum of five harmonics per joint around a posture, with smooth ramps so that it starts and ends at rest."""

    centre: Array
    amplitudes: Array
    phases: Array
    fundamental: float = 2.0 * np.pi / DURATION
    duration: float = DURATION

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Compute q [rad], its velocity and acceleration at the times `t` [s], shape (samples, joints)."""
        time = np.asarray(t, dtype=float)
        w = self.fundamental * HARMONICS
        angle = time[..., None, None] * w[:, None] + self.phases
        s, c = self.amplitudes * np.sin(angle), self.amplitudes * np.cos(angle)
        x, dx, ddx = s.sum(-2), (w[:, None] * c).sum(-2), (-(w[:, None] ** 2) * s).sum(-2)
        # Quintic ramps over a tenth of the period at both ends keep the acceleration continuous.
        e, de, dde = (g[..., None] for g in _envelope(time))
        return self.centre + e * x, de * x + e * dx, dde * x + 2.0 * de * dx + e * ddx


def _envelope(t: Array) -> tuple[Array, Array, Array]:
    ramp = 0.1 * DURATION
    u = np.clip(np.minimum(t, DURATION - t) / ramp, 0.0, 1.0)
    side = np.where(t < 0.5 * DURATION, 1.0, -1.0) / ramp
    e = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    de = 30.0 * u**2 * (1.0 - u) ** 2 * side
    dde = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) * side**2
    return e, de, dde


def _find_motion(robot: Robot, seed: int) -> _Fourier:
    """Choose the random series within the limits whose scaled base columns have the smallest condition number."""
    rng = np.random.default_rng(seed)
    base = base_parameters(robot)
    t = np.linspace(0.0, DURATION, 400)
    best, found = np.inf, None
    for _ in range(TRIALS):
        motion = _random_motion(robot, rng)
        w = base.regressor_columns(robot.torque_regressor(*motion.sample(t))).reshape(-1, base.rank)
        condition = float(np.linalg.cond(w / np.linalg.norm(w, axis=0)))
        if condition < best:
            best, found = condition, motion
    assert found is not None
    return found


def _random_motion(robot: Robot, rng: np.random.Generator) -> _Fourier:
    """Draw amplitudes and phases, scaled to 90 % of every limit (1.5 rad or m without one)."""
    n = robot.dof
    lower = np.array([max(j.lower, -1.5) for j in robot.joints])
    upper = np.array([min(j.upper, 1.5) for j in robot.joints])
    speed = np.array([min(j.velocity, 3.0) for j in robot.joints])
    shape = rng.uniform(0.2, 1.0, (len(HARMONICS), n)) / HARMONICS[:, None]
    motion = _Fourier(0.5 * (lower + upper), shape, rng.uniform(0.0, 2.0 * np.pi, (len(HARMONICS), n)))
    q, dq, _ = motion.sample(np.linspace(0.0, DURATION, 2000))
    room = 0.45 * (upper - lower) / np.max(np.abs(q - motion.centre), axis=0)
    return _Fourier(motion.centre, shape * np.minimum(room, 0.9 * speed / np.max(np.abs(dq), axis=0)), motion.phases)


def simulated_log(truth: Model, seed: int) -> Log:
    """Simulate a robot that follows a motion under its own controller, and the log of its sensors.

    Args:
        truth: Model of the robot.
        seed: Seed of motion and noise.
    """
    motion = _find_motion(truth.robot, seed)
    return play(truth, motion, _RATE).log(sensors=good_sensors(expected_noise(truth.robot), seed))


def example_truth(robot: Robot) -> Model:
    """Return the model of the example's arm: the masses and inertias of `robot` are scaled, link by link."""
    described = Model.nominal(robot)
    theta = described.theta.copy()
    links = theta[: robot.inertial_count].reshape(-1, 10)
    links *= np.random.default_rng(7).uniform(*_MASS_FACTORS, (len(links), 1))
    return Model(robot, described.terms, theta)


def write_example_logs(robot: str, paths: Sequence[str]) -> None:
    """Write logs of a simulated arm whose masses differ from its description, one motion per log.

    Args:
        robot: Built-in robot.
        paths: Files to write.
    """
    arm = builtin(robot)
    truth = example_truth(arm)
    for seed, path in enumerate(paths, start=1):
        motion, sensors = _find_motion(arm, seed), good_sensors(expected_noise(arm), seed)
        play(truth, motion, _EXAMPLE_RATE, loops=_EXAMPLE_LOOPS).log(sensors=sensors).save(Path(path))


@dataclass(frozen=True, eq=False)
class Demo(Outcome):
    """Result of the demo."""

    truth: Model
    found: Identification
    check: Any
    folder: Path

    @property
    def rows(self) -> list[dict[str, Any]]:
        """True and identified base parameters."""
        names = {p.name: v for p, v in zip(self.truth.dynamics.parameters, self.truth.theta, strict=True)}
        base = self.found.base
        true = base.values(np.array([names.get(p.name, 0.0) for p in base.parameters]))
        errors = self.found.estimate.standard_errors
        return [
            {"formula": f, "unit": u, "true": float(t), "found": float(b), "standard_error": float(e)}
            for f, u, t, b, e in zip(base.formulas, base.units, true, self.found.estimate.beta, errors, strict=True)
        ]

    @property
    def covered(self) -> int:
        """Number of base parameters within two standard errors of the truth."""
        return sum(abs(r["found"] - r["true"]) < 2.0 * r["standard_error"] for r in self.rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "robot": self.found.robot.name,
            "base_parameters": {
                "count": self.found.base.rank,
                "within_two_standard_errors": self.covered,
                "list": self.rows,
            },
            "validation": [s.to_json() for s in self.found.validation],
            "verdict": self.found.verdict.sentence,
            "run": str(self.folder),
        }

    def print_to(self, out: Console, folder: str = "") -> None:
        _print_demo(self, out)


def demo_truth(robot: Robot) -> Model:
    """Return the nominal model of `robot` with the fitted terms."""
    return Model(robot, identification_terms(robot, _TERMS), Model.nominal(robot).theta)


@reports_progress
def run_demo(folder: Path, progress: ProgressCallback | None = None) -> Demo:
    """Run motion, log, check, identification and report.

    Args:
        folder: Run folder; an existing run in it is replaced.
        progress: Callback for progress (`steelyard.ground.progress`).
    """
    from steelyard.check import check_log

    check_target(folder, overwrite=True)
    robot = builtin("ns16")
    truth = demo_truth(robot)
    log, other = (simulated_log(truth, seed) for seed in steps((1, 2), "Simulating a motion", str, 0.0, 0.35))
    report_progress("Checking the log", 0.35)
    check = check_log(robot, log, _TERMS)
    with part(0.45, 0.85):
        found = identify(robot, log, [other], terms=_TERMS, names=["first motion"], validate_names=["second motion"])
    report_progress("Writing the report", 0.85)
    IdentificationRun(found).save(folder, overwrite=True)
    return Demo(truth, found, check, folder)


def _print_demo(demo: Demo, console: Console) -> None:
    from steelyard.ground.numbers import Known, number
    from steelyard.identification.page import print_identification
    from steelyard.report.terminal import bold, say, table

    say(console, "A simulated 6-axis arm (ns16) plays two motions; encoders quantise, torque is noisy.\n")
    largest = sorted(demo.rows, key=lambda r: -abs(r["true"]))[:10]
    cells = [
        [
            r["formula"],
            r["unit"],
            *(str(Known(r[key], r["standard_error"])) for key in ("true", "found")),
            number(r["standard_error"], 2),
        ]
        for r in largest
    ]
    columns = ["base parameter", "unit", "true", "found", "± standard error"]
    say(console, bold("Check of the log:"), f" {demo.check.verdict}\n")
    console.print(table("The ten largest base parameters", columns, cells, right=columns[2:]))
    say(
        console,
        f"{demo.covered} of all {len(demo.rows)} lie within two standard errors of the truth "
        f"(expected: about {round(0.95 * len(demo.rows))}).\n",
    )
    print_identification(demo.found, console, str(demo.folder))
