"""95 % intervals contain planted offsets, lengths, tilts and compliances as often as they state."""

from __future__ import annotations

import numpy as np
import pytest
from pin_arms import TrueArm, drawn_values, point_table, urdf

import steelyard as sy

EFFECTS = ("offsets", "axes", "compliance")


def contained(seeds: range, points: int) -> dict[str, list[bool]]:
    """Whether each interval contains the planted value, by the kind of parameter, and for what can be separated."""
    out: dict[str, list[bool]] = {}
    for seed in seeds:
        text = urdf(seed)
        robot = sy.load_robot(text, snap=0.0)
        values = drawn_values(robot, seed, EFFECTS)
        rng = np.random.default_rng([seed, 3])
        columns = point_table(TrueArm(text, values), rng.uniform(-1.8, 1.8, (60, 6)), points, 5e-5, rng)
        found = sy.calibrate(robot, columns, effects=EFFECTS)
        rows = found.parameters()
        error = np.array([row["value"] - values[row["name"]] for row in rows])
        for row, e in zip(rows, error, strict=True):
            inside = bool(abs(e) < 1.96 * row["standard_error"])
            out.setdefault(row["name"].split(".")[1].split("_")[0], []).append(inside)
        # Combinations that no change of sensor, tool and other joints imitates.
        own = found.stages["full"]
        null = found.identifiability.null_space[:, -len(error) :]
        scale = np.sqrt(own.fit.variances)
        _, s, v = np.linalg.svd(null / scale)
        combinations = v[int(np.sum(s > 1e-9 * s[0])) :] / scale
        stds = np.sqrt(np.einsum("ij,jk,ik->i", combinations, own.uncertainty.covariance, combinations))
        out.setdefault("combination", []).extend((np.abs(combinations @ error) < 1.96 * stds).tolist())
    return out


def test_intervals_contain_what_was_planted() -> None:
    """A quick look at a hundred parameters; a share of 0.85 of 116 would come once in ten thousand at 95 %."""
    everything = [inside for part in contained(range(2), 1).values() for inside in part]
    assert np.mean(everything) > 0.85


@pytest.mark.proof
@pytest.mark.parametrize("points", [1, 3])
def test_intervals_contain_planted_values_as_often_as_they_state(points: int) -> None:
    parts = contained(range(40), points)
    assert set(parts) == {"offset", "shift", "tilt", "compliance", "combination"}
    for name, inside in parts.items():
        assert 0.92 <= np.mean(inside) <= 0.98, name
