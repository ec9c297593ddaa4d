"""The parameter sets that Table 3 prints, in simulation."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Item, asserted, table
from steelyard.papers.printed import printed
from steelyard.papers.rotradi.lab import SCHEMES, Lab, identification_torque, validation_torque, words
from steelyard.report.elements import Column
from steelyard.robot.spatial import Array

COLUMNS = (
    "printed set",
    "under (30)–(32)",
    "under (40)–(42)",
    Column("smallest eigenvalue of M(q)", "kg m²", 3),
    Column("postures where it is negative", "%", 3),
    "real links",
)


def printed_sets(lab: Lab) -> Item:
    """Table 3 in simulation: the dashes of Table 2."""
    sets = {name: printed("rotradi", "table3").numbers(name) for name in SCHEMES}
    logs = [lab.played(signal).log() for signal in (identification_torque(), validation_torque())]
    runs = {name: [lab.replayed(theta, log) for log in logs] for name, theta in sets.items()}
    looks = {name: sy.possibility(lab.model(theta), torus()) for name, theta in sets.items()}
    rows = [
        (words(n), *map(_ending, runs[n]), looks[n].smallest_mass_eigenvalue, _share(looks[n]), looks[n].realisable)
        for n in sets
    ]
    finished = [words(n) for n, both in runs.items() if all(r.finished for r in both)]
    lost = [words(n) for n, both in runs.items() if not any(r.finished for r in both)]
    shares = [_share(looks[n]) for n in ("dynamic", "power", "supplied_energy", "filtered_dynamic")]
    best = looks["filtered_dynamic"]
    return Item(
        text="The parameters that Table 3 prints are put into the model, which is then played both sets of torques. "
        "Where M(q) is not positive definite a joint accelerates against its torque, and the simulation runs away.",
        tables=(table(COLUMNS, rows),),
        statements=(
            asserted(
                "The dashes of Table 2: with the numbers of Table 3 the two filtered schemes can be simulated for "
                "10 s; dynamic, supplied-energy and power cannot.",
                finished == ["filtered-dynamic", "filtered-power"] and len(lost) == 3,
                f"Finished: {', '.join(finished)}. Ran away: {', '.join(lost)}.",
            ),
            asserted(
                "M(q) of Table 3 fails everywhere (dynamic, power), on 9 % of the postures (supplied-energy), nowhere "
                "(filtered-dynamic).",
                np.allclose(shares, [100.0, 100.0, 9.1, 0.0], atol=1.0),  # a grid of 6°
                ", ".join(f"{x:.1f} %" for x in shares) + "; filtered-power touches "
                f"{looks['filtered_power'].smallest_mass_eigenvalue:.4f} kg m².",
            ),
            asserted(
                "Even the best set, filtered-dynamic, can be simulated but belongs to no real arm.",
                best.simulable and not best.realisable,
                "Smallest eigenvalues of the links' pseudo-inertias: "
                + ", ".join(f"{x:.2g}" for x in best.smallest_pseudo_inertia)
                + ".",
            ),
        ),
    )


def torus(points: int = 60) -> Array:
    """All q2 and q3; q1 does not enter M(q)."""
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
