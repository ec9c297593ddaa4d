"""Table 6 and Figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from steelyard.assessment import Sensitivity, rms, sweep
from steelyard.ground import Array
from steelyard.papers.paper import Item, PaperFigure, Statement, asserted, listed, measured, paper_table, printed
from steelyard.papers.prrrp._lab import LAMBDAS, TABLE4, Lab, MixedMotion
from steelyard.papers.prrrp.validation import followed, implied_gains
from steelyard.report import Line, Panel, TableColumn
from steelyard.simulation import FeedForward

TABLE6 = printed("prrrp", "table6")
_GAPS = "Gaps: no robot has such a λ, or it ran away."
# With l2 = l3 no robot has λ6 without λ7.
SWEPT = (*LAMBDAS[:5], "λ6 = λ7", LAMBDAS[7])


def table_6(lab: Lab) -> Item:
    """Table 6: ranges of the sweep."""
    centre = TABLE4.numbers("least_squares")
    low, high = TABLE6.numbers("min"), TABLE6.numbers("max")
    # Both ends are rounded to four decimals, and so is the centre.
    wrong = [n for n, a, b, c in zip(LAMBDAS, low, high, centre, strict=True)
             if abs(a - 0.5 * c) > 1e-4 or abs(b - 1.5 * c) > 1.3e-4]  # fmt: skip
    columns = ("parameter", "least squares", "min, paper", "min, ours", "max, paper", "max, ours")
    return Item(
        tables=(paper_table([TableColumn(c, places=4) for c in columns],
                      zip(LAMBDAS, centre, low, 0.5 * centre, high, 1.5 * centre, strict=True)),),
        statements=(
            asserted(
                "The ranges are ±50 % of the least squares column of Table 4, but for λ1 and λ4.",
                wrong == ["λ1", "λ4"],
                f"λ1 is swept about {0.5 * (low[0] + high[0]):.3f}, not {centre[0]:.4f}; λ4 from {low[3]:.4f}, not "
                f"{0.5 * centre[3]:.4f}.",
            ),
        ),
    )  # fmt: skip


def figure_8(lab: Lab) -> Item:
    """Figure 8: how much the trajectories change with a parameter."""
    motion, shares = MixedMotion(), np.linspace(0.5, 1.5, 3 if lab.fast else 11)
    q, dq, _ = motion.sample(np.zeros(1))
    seconds = 1.0 if lab.fast else 10.0
    told = _in_the_controller(lab, shares, seconds)
    start = {"q0": q[0], "dq0": dq[0], "names": SWEPT, "directions": _directions(lab), "steps": len(shares)}
    loop = FeedForward.beside(implied_gains(lab), lab.truth)
    built = sweep(lab.truth, loop, reference=motion, duration=seconds, step=2e-4, record_every=50, **start)
    t = np.arange(0.0, 1.0, 1e-3)
    free = sweep(lab.truth, lab.truth.torque(*motion.sample(t)), times=t, **start)
    return Item(
        text="Three readings. λ is wrong in the controller's feed-forward, with the gains that Table 5 implies; λ is "
        "another in the robot under that controller; and another in the robot without any, under the torques of the "
        "first second.",
        figures=(
            PaperFigure("λ in the controller", _panels(lab.robot.joint_names, LAMBDAS, shares, told)),
            PaperFigure("λ in the robot, controlled", _panels(built.joints, SWEPT, shares, built.rms), _GAPS),
            PaperFigure("λ in the robot, without controller", _panels(free.joints, SWEPT, shares, free.rms), _GAPS),
        ),
        statements=(_loop_hides(told, free), _impossible(built), _ranking(told)),
        differences=(
            "Controller and motion are not printed, nor which reading Figure 8 has.",
            "In the robot λ6 and λ7 are swept as one: they are l2 and l3 times the same moment.",
        ),
    )


def _in_the_controller(lab: Lab, shares: Array, seconds: float) -> Array:
    """RMS `(λ, shares, joints)` of the true robot's positions against those under its own feed-forward."""
    run = partial(followed, lab, gains=implied_gains(lab), step=2e-4, seconds=seconds)
    nominal = run(lab.truth).q
    return np.array(
        [
            [rms(nominal, run(lab.with_lambdas(changed)).q) for changed in _changed(lab.true, k, shares)]
            for k in range(8)
        ]
    )


def _changed(values: Array, index: int, shares: Array) -> Array:
    """One of them times each share."""
    out = np.tile(values, (len(shares), 1))
    out[:, index] *= shares
    return out


def _directions(lab: Lab) -> Array:
    """The changes of the full parameters that double one λ and leave the others."""
    change = np.diag(lab.true)
    change = np.vstack([change[:5], change[5] + change[6], change[7]])
    return np.asarray(np.linalg.lstsq(lab.own.matrix, change.T, rcond=None)[0].T)


def _loop_hides(told: Array, free: Sensitivity) -> Statement:
    controlled, alone = told.max(axis=(1, 2)), np.nanmax(free.rms, axis=(1, 2))
    return asserted(
        '"Sensitivity is low" speaks of the closed loop, not of the model.',
        # λ6 and λ7 apart in the one, together in the other
        np.all(np.isfinite(told)) and np.all(alone > 100.0 * controlled[[0, 1, 2, 3, 4, 5, 7]]),
        f"Half of a λ more or less in the controller moves a joint by at most {listed(controlled)} rad or m (λ1 to λ8; "
        f"root mean square); in a robot without controller, by {listed(alone)} within a second ({', '.join(SWEPT)}).",
    )


def _impossible(built: Sensitivity) -> Statement:
    lost = [
        f"{name} at {', '.join(f'{100.0 * (s - 1.0):+.0f} %' for s in built.shares[~row])}"
        for name, row in zip(built.names, built.completed, strict=True)
        if not row.all()
    ]
    return measured(
        "Whether robots with the λ of Table 6 can exist.",
        f"Not all: {'; '.join(lost)} cannot, or run away. A sweep over the whole of Table 6 is one of the controller's "
        "model, not of the robot.",
    )


def _ranking(told: Array) -> Statement:
    turning, sliding = told[..., 1:4].max(axis=(1, 2)), told[..., [0, 4]].max(axis=(1, 2))
    first = [", ".join(LAMBDAS[k] for k in np.argsort(-x, kind="stable")[:n]) for x, n in ((turning, 3), (sliding, 2))]
    return measured(
        "Which λ matter most in the controller.", f"{first[0]} to the rotary joints, {first[1]} to the prismatic ones."
    )


def _panels(joints: Sequence[str], names: Sequence[str], shares: Array, found: Array) -> tuple[Panel, ...]:
    change = 100.0 * (shares - 1.0)
    return tuple(
        Panel(
            joint,
            tuple(Line.of(name, change, found[k, :, j]) for k, name in enumerate(names)),
            x="change of the parameter [%]",
            y="RMS [rad, m]",
        )
        for j, joint in enumerate(joints)
    )
