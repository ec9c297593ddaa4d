"""A quadruped in MuJoCo with planted bodies, imperfect sensors and unknown contact forces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from legged_plants import GO1, Plant, Sensors, mapping_of, measured, motion
from legged_scores import classical_fit, composite, judged
from pyarrow import parquet

from steelyard.floating import identify_floating
from steelyard.payload import identify_payload

pytestmark = [pytest.mark.proof]


def logs_of(plant: Plant, folder: Path, name: str, kinds: tuple[tuple[str, float], ...], seed: int) -> list[Path]:
    paths = []
    for k, (kind, seconds) in enumerate(kinds):
        columns = measured(plant.play(*motion(GO1, kind, seconds, seed + k)), Sensors(), seed + k)
        paths.append(folder / f"{name}_{kind}.parquet")
        parquet.write_table(pa.table(columns), paths[-1])
    return paths


@pytest.mark.parametrize("phases", ["state", "from_torques"])
def test_the_whole_body_of_a_quadruped_comes_back(phases: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    plant = Plant(GO1, seed=4)
    paths = logs_of(plant, tmp_path, "log", (("sway", 15.0), ("squat", 10.0), ("trot", 15.0)), 40)
    mapping = mapping_of(GO1, plant.robot, phases)
    result = identify_floating(plant.robot, paths, mapping=mapping, holdout=0.25)
    truth = plant.truth(result)
    errors, inside = composite(result, truth), judged(result, truth)
    assert abs(errors["mass_percent"]) < 1.0
    assert errors["centre_mm"] < 2.0
    assert inside["possible_inside_percent"] > 90.0
    assert inside["free_inside_percent"] > 85.0
    assert classical_fit(plant, paths, mapping, result, truth)["held_out_ratio"] < 1.05
    assert result.errors is not None
    expected = [Sensors().torque_delay, Sensors().imu_delay, *Sensors().accelerometer_bias]
    assert np.all(np.abs(result.errors.values - expected) < [5e-4, 5e-4, 0.03, 0.03, 0.03])


def test_a_backpack_on_the_trunk_is_a_payload(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    kinds = (("sway", 12.0), ("trot", 12.0))
    bare, loaded = Plant(GO1, seed=5), Plant(GO1, seed=5, load=(2.0, (0.05, -0.03, 0.12)))
    paths = [logs_of(p, tmp_path, n, kinds, 50) for n, p in (("bare", bare), ("loaded", loaded))]
    load = identify_payload(bare.robot, paths[1], paths[0], mapping=mapping_of(GO1, bare.robot)).load
    assert load.mass == pytest.approx(2.0, abs=max(3.0 * load.mass_error, 0.02))
    assert np.all(
        np.abs(load.center_of_gravity - [0.05, -0.03, 0.12]) < np.maximum(3 * load.center_of_gravity_error, 3e-3)
    )
