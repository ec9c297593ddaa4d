"""Equations (34) and (37), which are printed wrong, and the rules of integration."""

from __future__ import annotations

import numpy as np

from steelyard.papers.paper import Item, asserted, table
from steelyard.papers.rotradi.lab import (
    AGREED,
    HELD,
    PERIOD,
    SCHEMES,
    Arm,
    Lab,
    clock,
    identification_torque,
    played,
    words,
)
from steelyard.report.elements import Column


def equations_34_and_37(_: Lab) -> Item:
    """Equations (34) and (37): as printed and as corrected."""
    arm = Arm("viscous", AGREED)
    logs = [played(arm.truth, identification_torque(1), clock(period=h)).log() for h in (PERIOD, PERIOD / 4)]

    def error(log: int, scheme: str) -> float:
        return float(np.mean(arm.percent(arm.fitted(logs[log], scheme))))

    exact = max(error(0, SCHEMES[name]) for name in ("dynamic", "power"))
    right, wrong, outside = (
        [float(np.mean(arm.percent(arm.fitted_by_34(log, reading)))) for log in logs]
        for reading in ("corrected", "printed", "outside")
    )
    ranks = [arm.rank_of_37(logs[0], as_printed=as_printed) for as_printed in (True, False)]
    held = {name: (error(0, SCHEMES[name]), error(0, scheme)) for name, scheme in HELD.items()}
    regressors = table(
        ("regressor", Column("mean error, h = 2.5 ms", "%", 3), Column("h = 0.625 ms", "%", 3)),
        (
            ("(33) dynamic, (36) power", exact, None),
            ("(34) corrected", *right),
            ("(34) as printed", *wrong),
            ("(34) as printed, f1 acting on the velocities alone", *outside),
        ),
    )
    work = table(
        ("scheme", Column("work as printed", "%", 3), Column("work of a held torque", "%", 3)),
        ((words(name), *both) for name, both in held.items()),
        "Half a sample of delay: mean error",
    )
    return Item(
        text="Without noise, and with one law of friction in the arm and in the regressor, nothing but the equations "
        "differs. f1 differentiates the cosines and sines too, which the printed (34) then counts a second time. "
        "The corrected rule needs no formula of the arm: f1 of the momentum's regressor plus f2 of the remainder's.",
        tables=(regressors, work),
        statements=(
            asserted(
                "Without noise the dynamic and power schemes are exact.",
                exact < 1e-6,  # percent: rounding, times a condition number of some hundreds
                f"Mean error {exact:.0e} %.",
            ),
            asserted(
                "(34) as printed stays wrong however fine the clock; corrected, a quarter of the period leaves less "
                "than a third of the error.",
                min(wrong) > 20.0 and abs(wrong[1] / wrong[0] - 1.0) < 0.1 and right[1] < right[0] / 3.0,
                f"Printed {wrong[0]:.0f} % and {wrong[1]:.0f} %, corrected {right[0]:.2f} % and {right[1]:.2f} %. Read "
                f"with f1 on the velocities alone: {outside[0]:.0f} % and {outside[1]:.0f} %.",
            ),
            asserted(
                "(37) as printed, with friction under f1, has rank 19 of 21.",
                ranks == [19, 21],
                f"Rank {ranks[0]} as printed, {ranks[1]} with f2.",
            ),
            asserted(
                "Work counted as τ(k−1)·(q(k) − q(k−1)) takes the bias from the supplied-energy and filtered-power "
                "schemes.",
                all(before > 2.0 and after < 0.1 for before, after in held.values()),
                "; ".join(f"{words(name)} {a:.0f} % → {b:.3f} %" for name, (a, b) in held.items()) + ".",
            ),
        ),
    )
