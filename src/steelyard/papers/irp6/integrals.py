"""Section 5.1: short and long integrals and the differential model, motor 2 alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import steelyard as sy
from steelyard.ground import Array
from steelyard.papers.irp6._lab import LONG, PAPER_SCHEMES, SHORT, Lab, settled, splines
from steelyard.papers.paper import Item, PaperFigure, asserted, paper_table, shown
from steelyard.report import Line, Panel, TableColumn

MOVES = splines((0, 30, -30, 25, -20, 35, -35, 10, 0))
NAMES = ("I2zz + n2²Ia2 + m3 l2²", "F2v", "F2c", "X7")
UNITS = ("kg m²", "N m s", "N m", "kg m")
Trouble = Callable[[sy.Log, np.random.Generator], sy.Log]


def motor_2(lab: Lab) -> Item:
    """Section 5.1: four parameters of motor 2."""
    axis, log = lab.second, lab.second.log(MOVES)
    found = {name: axis.of(sy.fit_log(axis.base, log, scheme=scheme).beta) for name, scheme in PAPER_SCHEMES.items()}
    worst = {name: float(np.max(np.abs(values / axis.values - 1.0))) for name, values in found.items()}
    t, history = axis.history(log)
    time = settled(t, history, axis.values, 0.05)
    rows = zip(NAMES, UNITS, axis.values, *found.values(), strict=True)
    lines = [
        Panel(f"{name} [{unit}]", (Line.of("short integral", t[5:], x[5:]), Line.of("printed", t[[5, -1]], [true] * 2)))
        for name, unit, x, true in zip(NAMES, UNITS, history.T, axis.values, strict=True)
    ]
    return Item(
        text="Motor 2 moves, motor 3 stands: the forearm keeps its direction, and of the arm a pendulum is left that "
        "stands upright. The printed values are the truth of the simulation; eight moves of 0.5 s at 0.5 ms, no noise.",
        tables=(
            paper_table(("parameter", "unit", TableColumn("paper"), *(TableColumn(f"ours, {n}") for n in found)), rows),
        ),
        figures=(PaperFigure("Recursive least squares, windows of 5 ms", tuple(lines)),),
        statements=(
            asserted(
                "All three models return the printed values within 1 %.",
                max(worst.values()) < 0.01,
                ", ".join(f"{name} {100 * x:.1g} %" for name, x in worst.items()) + " at worst.",
            ),
            asserted(
                "The recursion over short windows settles within 1.5 s.",
                time < 1.5,
                f"Within 5 % after {time:.2f} s; 1–1.5 s in the paper, whose motion is not printed.",
            ),
        ),
        differences=("F2c is printed in km; it is N m. The stiction of the same joint, 16.8 N m, is less than that.",),
    )


def long_windows(lab: Lab) -> Item:
    """Section 5.1: whether long integrals are worse."""
    rows = []
    for name, trouble in TROUBLES.items():
        short, long = (
            float(np.median([_error(lab, trouble, seed, scheme) for seed in range(lab.runs)]))
            for scheme in (SHORT, LONG)
        )
        rows.append((name, short, long, long / short))
    (_, *drift), (_, *noise) = rows[0], rows[1]
    head = ("trouble", TableColumn("short", "%", 3), TableColumn("long", "%", 3), TableColumn("long/short", digits=2))
    return Item(
        text=f"The largest error of the four parameters of motor 2, median over {lab.runs} runs, when something is "
        "wrong with the measurement.",
        tables=(paper_table(head, rows),),
        statements=(
            shown(
                "Long integrals are significantly worse, when friction falls by a fifth during the run.",
                drift[1] > 2.0 * drift[0],
                f"Largest error {drift[0]:.0f} % (short) and {drift[1]:.0f} % (long).",
            ),
            shown(
                "Long integrals are significantly worse, when the velocity has white noise of 0.01 rad/s.",
                noise[1] > 2.0 * noise[0],
                f"Largest error {noise[0]:.0f} % (short) and {noise[1]:.1f} % (long): over 5 ms most of the change of "
                "½q̇² is noise.",
            ),
        ),
        differences=("The paper calls long integrals worse in general; which one is depends on what goes wrong.",),
    )  # fmt: skip


def _warming(log: sy.Log, rng: np.random.Generator) -> sy.Log:
    """Viscous friction falls by a fifth."""
    fall = np.linspace(0.0, 0.2, len(log))[:, None]
    return replace(log, tau=_torque(log) - 26.0 * fall * np.asarray(log.dq))


def _noisy_velocity(log: sy.Log, rng: np.random.Generator) -> sy.Log:
    return replace(log, dq=np.asarray(log.dq) + 0.01 * rng.normal(size=log.q.shape))


def _slow_disturbance(log: sy.Log, rng: np.random.Generator) -> sy.Log:
    return replace(log, tau=_torque(log) + 3.0 * np.sin(0.2 * np.pi * log.t + rng.uniform(0.0, 6.28))[:, None])


def _offset(log: sy.Log, rng: np.random.Generator) -> sy.Log:
    return replace(log, tau=_torque(log) + 3.0)


def _gain(log: sy.Log, rng: np.random.Generator) -> sy.Log:
    return replace(log, dq=1.01 * np.asarray(log.dq))


TROUBLES: dict[str, Trouble] = {
    "viscous friction falls by 20 %": _warming,
    "white velocity noise, 0.01 rad/s": _noisy_velocity,
    "slow disturbance, 3 N m at 0.1 Hz": _slow_disturbance,
    "torque offset, 3 N m": _offset,
    "tachometer reads 1 % too much": _gain,
}


def _error(lab: Lab, trouble: Trouble, seed: int, scheme: str) -> float:
    rng = np.random.default_rng(seed)
    log = lab.second.log(MOVES)
    log = trouble(replace(log, tau=_torque(log) + rng.normal(size=log.q.shape)), rng)
    found = lab.second.of(sy.fit_log(lab.second.base, log, scheme=scheme).beta)
    return float(100.0 * np.max(np.abs(found / lab.second.values - 1.0)))


def _torque(log: sy.Log) -> Array:
    return np.asarray(log.tau)
