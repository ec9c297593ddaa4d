"""Equations (34) and (37), which have misprints, and the rules of integration."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.ground import Array, number
from steelyard.papers.paper import Item, assertion, paper_table, printed_table
from steelyard.papers.rotradi.lab import (
    AGREED,
    PAPER_SCHEMES,
    PERIOD,
    ZERO_ORDER_HOLD,
    Arm,
    Lab,
    clock,
    identification_torque,
    play_torque,
    scheme_words,
    validation_torque,
)
from steelyard.report import TableColumn

COLUMNS = (
    "printed set",
    "under (30)–(32)",
    "under (40)–(42)",
    TableColumn("smallest eigenvalue of M(q)", "kg m²", 3),
    TableColumn("postures where it is negative", "%", 3),
    "real links",
)


def printed_sets(lab: Lab) -> Item:
    """Table 3 in simulation: the dashes of Table 2."""
    sets = {name: printed_table("rotradi", "table3").numbers(name) for name in PAPER_SCHEMES}
    logs = [lab.play(signal).log() for signal in (identification_torque(), validation_torque())]
    runs = {name: [lab.replay(theta, log) for log in logs] for name, theta in sets.items()}
    looks = {name: sy.possibility(lab.model(theta), _torus()) for name, theta in sets.items()}
    rows = [
        (
            scheme_words(n),
            *map(_ending, runs[n]),
            looks[n].smallest_mass_eigenvalue,
            _share(looks[n]),
            looks[n].possible,
        )
        for n in sets
    ]
    finished = [scheme_words(n) for n, both in runs.items() if all(r.finished for r in both)]
    diverged = [scheme_words(n) for n, both in runs.items() if not any(r.finished for r in both)]
    shares = [_share(looks[n]) for n in ("dynamic", "power", "supplied_energy", "filtered_dynamic")]
    best = looks["filtered_dynamic"]
    return Item(
        text="The model with the parameters of Table 3 is simulated under both sets of torques. If M(q) is not "
        "positive definite, a joint accelerates against its torque, and the simulation diverges.",
        tables=(paper_table(COLUMNS, rows),),
        statements=(
            assertion(
                "The dashes of Table 2: with the numbers of Table 3 the two filtered schemes can be simulated for "
                "10 s; dynamic, supplied-energy and power cannot.",
                finished == ["filtered-dynamic", "filtered-power"] and len(diverged) == 3,
                f"Finished: {', '.join(finished)}. Diverged: {', '.join(diverged)}.",
            ),
            assertion(
                "M(q) of Table 3 fails everywhere (dynamic, power), on 9 % of the postures (supplied-energy), nowhere "
                "(filtered-dynamic).",
                np.allclose(shares, [100.0, 100.0, 9.1, 0.0], atol=1.0),  # a grid of 6°
                ", ".join(f"{x:.1f} %" for x in shares) + "; filtered-power touches "
                f"{looks['filtered_power'].smallest_mass_eigenvalue:.4f} kg m².",
            ),
            assertion(
                "Even the best set, filtered-dynamic, can be simulated but is impossible for a real arm.",
                best.simulable and not best.possible,
                "Smallest eigenvalues of the links' pseudo-inertias: "
                + ", ".join(f"{number(x, 2)}" for x in best.smallest_pseudo_inertia)
                + ".",
            ),
        ),
    )


def _torus(points: int = 60) -> Array:
    """Return all q2 and q3; M(q) does not depend on q1."""
    angles = np.linspace(-np.pi, np.pi, points, endpoint=False)
    q2, q3 = (x.ravel() for x in np.meshgrid(angles, angles))
    return np.column_stack([np.zeros_like(q2), q2, q3])


def _share(look: sy.Possibility) -> float:
    return 100.0 * look.indefinite_share


def _ending(run: sy.Replay) -> str:
    if run.finished:
        return "finished"
    _, _, when = run.reason.partition(" at t = ")
    return f"fails at {when.rstrip('.')}" if when else "fails at once"


def equations_34_and_37(_: Lab) -> Item:
    """Equations (34) and (37): as printed and as corrected."""
    arm = Arm("viscous", AGREED)
    logs = [play_torque(arm.truth, identification_torque(1), clock(period=h)).log() for h in (PERIOD, PERIOD / 4)]

    def error(log: int, scheme: str) -> float:
        return float(np.mean(arm.percent(arm.fit(logs[log], scheme))))

    exact = max(error(0, PAPER_SCHEMES[name]) for name in ("dynamic", "power"))
    corrected, as_printed, outside = (
        [float(np.mean(arm.percent(arm.fit_by_34(log, reading)))) for log in logs]
        for reading in ("corrected", "printed", "outside")
    )
    ranks = [arm.rank_of_37(logs[0], as_printed=as_printed) for as_printed in (True, False)]
    by_work = {name: (error(0, PAPER_SCHEMES[name]), error(0, scheme)) for name, scheme in ZERO_ORDER_HOLD.items()}
    regressors = paper_table(
        ("regressor", TableColumn("mean error, h = 2.5 ms", "%", 3), TableColumn("h = 0.625 ms", "%", 3)),
        (
            ("(33) dynamic, (36) power", exact, None),
            ("(34) corrected", *corrected),
            ("(34) as printed", *as_printed),
            ("(34) as printed, f1 acting on the velocities alone", *outside),
        ),
    )
    work = paper_table(
        ("scheme", TableColumn("work as printed", "%", 3), TableColumn("work with zero-order hold", "%", 3)),
        ((scheme_words(name), *both) for name, both in by_work.items()),
        "Half a sample of delay: mean error",
    )
    return Item(
        text="Without noise, and with one law of friction in the arm and in the regressor, only the equations "
        "differ. f1 also differentiates the cosines and sines, which the printed (34) then counts a second time. "
        "The corrected rule needs no formula of the arm: f1 of the momentum's regressor plus f2 of the remainder's.",
        tables=(regressors, work),
        statements=(
            assertion(
                "Without noise the dynamic and power schemes are exact.",
                exact < 1e-6,  # [%]; rounding error times a condition number of some hundreds
                f"Mean error {exact:.0e} %.",
            ),
            assertion(
                "The error of (34) as printed does not depend on the clock; corrected, a quarter of the period leaves "
                "less than a third of the error.",
                min(as_printed) > 20.0
                and abs(as_printed[1] / as_printed[0] - 1.0) < 0.1
                and corrected[1] < corrected[0] / 3.0,
                f"Printed {as_printed[0]:.0f} % and {as_printed[1]:.0f} %, corrected {corrected[0]:.2f} % and "
                f"{corrected[1]:.2f} %. With f1 on the velocities alone: {outside[0]:.0f} % and {outside[1]:.0f} %.",
            ),
            assertion(
                "(37) as printed, with friction under f1, has rank 19 of 21.",
                ranks == [19, 21],
                f"Rank {ranks[0]} as printed, {ranks[1]} with f2.",
            ),
            assertion(
                "Work computed as τ(k−1)·(q(k) − q(k−1)) removes the bias of the supplied-energy and filtered-power "
                "schemes.",
                all(before > 2.0 and after < 0.1 for before, after in by_work.values()),
                "; ".join(f"{scheme_words(name)} {a:.0f} % → {b:.3f} %" for name, (a, b) in by_work.items()) + ".",
            ),
        ),
    )
