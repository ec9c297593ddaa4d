"""Logs of real robots, split as their READMEs say: what docs/scoreboard.md claims for the default command.

The baselines are weighted least squares with Pinocchio's regressor, rotor, viscous, Coulomb and offset columns; root
mean square errors in N m (N) after the score's low-pass, as published with the data. Our inputs are only the
mapping, the joints, the split and the score's cut-off, which only scores.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.identification.identification import Identification
from steelyard.identification.identify_files import identify_files
from steelyard.robot import load_robot

DATA = os.environ.get("STEELYARD_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")

MAPS = Path(__file__).parents[1] / "benchmarks" / "maps"


@dataclass(frozen=True)
class Set:
    """A README's split, its baseline, and what we claim: the mean ratio over joints and hold-outs, the worst joint's,
    and the error (% of the torque's standard deviation, mean over joints) that physical possibility may cost."""

    folder: str
    logs: tuple[str, ...]
    validate: tuple[str, ...]
    baseline: tuple[tuple[float, ...], ...]
    options: dict[str, Any]
    mean: float
    worst: float
    joints: tuple[str, ...] | None = None
    snap: float = 0.0
    cost: float = 1.10


SETS = {
    "ur10e": Set(
        "ur10e",
        ("ident__20_02_10-30sec_12harm",),
        ("ident__20_02_12-50sec_12harm", "ident__20_02_12-40sec_12harm", "val__20_01_17-ptp_10_points"),
        (
            (2.215, 2.965, 1.117, 0.318, 0.427, 0.265),
            (2.017, 3.394, 1.515, 0.383, 0.378, 0.324),
            (1.894, 2.799, 1.172, 0.278, 1.065, 1.322),
        ),
        {"score_cutoff_hz": 5.0, "mapping": str(MAPS / "ur10e.toml")},
        0.51,
        0.71,
    ),
    "panda_gaz": Set(
        "panda_gaz",
        ("trajectory_1",),
        (),
        ((0.147, 0.212, 0.134, 0.171, 0.068, 0.031, 0.050),),
        {"score_cutoff_hz": 10.0, "holdout": 0.3},
        0.80,
        1.10,
    ),
    "staubli_tx40": Set(
        "staubli_tx40",
        ("trajectory",),
        (),
        ((1.800, 4.305, 1.115, 0.578, 0.956, 1.139),),
        {"score_cutoff_hz": 20.0, "holdout": 0.3, "mapping": str(MAPS / "tx40.toml")},
        0.85,
        1.09,
    ),
    "staubli_tx40 blocks": Set(
        "staubli_tx40",
        ("trajectory",),
        (),
        ((1.474, 4.228, 1.482, 0.783, 1.175, 0.839),),
        {"score_cutoff_hz": 20.0, "holdout_blocks": "0.5:3", "mapping": str(MAPS / "tx40.toml")},
        0.77,
        1.00,
    ),
    "tiago": Set(
        "tiago",
        ("trajectory",),
        (),
        ((0.231, 0.545, 1.720, 0.701, 0.925),),
        {"score_cutoff_hz": 3.0, "holdout": 0.3, "mapping": str(MAPS / "tiago.toml")},
        0.63,
        0.94,
        ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))),
    ),
    "krang_arm": Set(
        "krang_arm",
        ("train",),
        ("test",),
        ((9.266, 7.863, 9.739, 9.686, 4.562, 7.101, 3.600),),
        {"score_cutoff_hz": 3.0, "mapping": str(MAPS / "krang.toml")},
        0.80,
        1.04,
    ),
    "airbot_play": Set(
        "airbot_play",
        ("vali_ptrnSrch_N7T25QR-5", "vali_ptrnSrch_N7T25QR-6", "vali_opt"),
        ("vali_ptrnSrch_N7T25QR-7", "vali_ga_N12T25", "vali_ptrnSrch_N7T25QR-7_rep1", "vali_ga_N12T25_rep1"),
        (
            (0.065, 0.138, 0.133, 0.027, 0.018, 0.016),
            (0.072, 0.142, 0.069, 0.027, 0.024, 0.020),
            (0.068, 0.147, 0.123, 0.025, 0.017, 0.013),
            (0.079, 0.144, 0.072, 0.027, 0.023, 0.019),
        ),
        {"score_cutoff_hz": 6.0},
        0.90,
        1.09,
        snap=1e-4,
    ),
    # Joint 2 has a counterbalance, which no body without a negative mass can stand in for; the default finds it.
    "kuka_kr300": Set(
        "kuka_kr300",
        ("trajectory_A", "trajectory_B"),
        ("trajectory_C",),
        ((199.371, 575.652, 315.381, 52.990, 100.465, 41.894),),
        {"score_cutoff_hz": 6.0},
        0.77,
        0.88,
    ),
    "panda_unisa": Set(
        "panda_unisa",
        ("exciting",),
        (),
        ((0.313, 0.171, 0.218, 0.168, 0.112, 0.064, 0.057),),
        {"score_cutoff_hz": 3.0, "holdout": 0.3},
        0.82,
        0.96,
    ),
    "dfki_dp_c1": Set(
        "dfki_dp_c1",
        ("run_143339", "run_143524", "run_143704", "run_154220"),
        ("run_143601", "run_154548"),
        ((0.1755, 0.0908), (0.1313, 0.1072)),
        {"score_cutoff_hz": 7.0},
        0.95,
        1.04,
    ),
    # Commanded torques, logged 20 and 12 ms before they act.
    "unitree_z1": Set(
        "unitree_z1",
        ("chirp",),
        (),
        ((1.8173, 1.3995, 1.3197, 1.2675, 1.3418, 1.4501),),
        {"score_cutoff_hz": 5.0, "holdout": 0.3},
        0.48,
        0.79,
    ),
    "unitree_aliengo_legs": Set(
        "unitree_aliengo_legs",
        ("chirp",),
        (),
        ((0.1828, 0.1987, 0.3846, 0.2068, 0.2150, 0.2770, 0.1857, 0.1856, 0.3266, 0.2822, 0.1831, 0.3531),),
        {"score_cutoff_hz": 10.0, "holdout": 0.3},
        0.42,
        0.95,
    ),
    "berkeley_blue": Set(
        "berkeley_blue",
        ("freq",),
        (),
        ((0.7400, 0.3897, 0.2328, 0.5628, 0.2921, 0.2239, 0.2496),),
        {"score_cutoff_hz": 3.0, "holdout_blocks": "5:3", "mapping": str(MAPS / "blue.toml")},
        0.93,
        1.12,
        cost=1.15,  # friction of three differentials, which the description has not
    ),
}
# What is wrong with two logs. The TIAGo's torso carries 19 kg with a "torque" of 1.1 N: its constant is a placeholder.
# With the coupling corrected, Blue's left-out torques are predicted better on every joint, of elbow_roll by half.
REFUTED = {
    "tiago": {"torque scale of 'torso_lift_joint'"},
    "berkeley_blue": {"torque coupling of 'elbow_roll' by 'elbow_lift'"},
}
# Another BLAS or compiler rounds otherwise, and may choose a term that is as good within its doubt.
MARGIN = 1.05


def identified(s: Set) -> Identification:
    assert DATA is not None
    folder = Path(DATA) / s.folder
    robot = load_robot(folder / "robot.urdf", joints=s.joints, snap=s.snap)
    logs, validate = ([folder / f"{name}.parquet" for name in names] for names in (s.logs, s.validate))
    return identify_files(robot, logs, validate, **s.options)


# Five seconds of a quiet machine are more than one test may take.
SLOW = (
    "krang_arm", "tiago", "airbot_play", "staubli_tx40 blocks", "panda_unisa", "dfki_dp_c1", "unitree_z1",
    "unitree_aliengo_legs", "berkeley_blue",
)  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.proof) if n in SLOW else n for n in SETS])
def test_the_default_model_keeps_what_the_scoreboard_says(name: str) -> None:
    s = SETS[name]
    found = identified(s)
    assert found.possible
    pairs = zip(found.validation, s.baseline, strict=True)
    ratio = np.array([np.array([j.rmse for j in score.joints]) / baseline for score, baseline in pairs])
    assert ratio.mean() < MARGIN * s.mean, ratio
    assert ratio.max() < MARGIN * s.worst, ratio
    ours = np.mean([s.mean_nrmse_percent for s in found.validation])
    free = np.mean([s.mean_nrmse_percent for s in found.free_validation])
    assert ours < s.cost * free
    assert found.assumptions is not None
    contradicted = {
        e.suspect.name for e in found.assumptions.refuted if max(e.least_harm_percent, e.elsewhere_percent) > 50.0
    }
    assert contradicted == REFUTED.get(name, set())
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (10_000, found.robot.dof))
    assert np.linalg.eigvalsh(found.model.mass_matrix(poses)).min() > 0.0


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, (3.47, 3.83)),
        ({"terms": ("viscous-asymmetric", "coulomb-asymmetric"), "tune": True, "cutoff_hz": 100.0}, (1.97, 2.73)),
    ],
    ids=["default", "told what the published fit is told"],
)
def test_emps_is_identified_to_the_published_errors(options: dict[str, Any], limits: tuple[float, float]) -> None:
    """The benchmark of the field: 4.08 % on its own log and 5.98 % on the pulses are published for symmetric friction.

    By the published definition: 100 Hz, central differences, 50 samples cut at both ends (which gives the published
    figures for the published fit), torque and prediction decimated by ten. The published fit sees all up to 100 Hz and,
    at its best (3.11 %), has both directions apart; the default sees what twenty times the motion's band holds.
    """
    from scipy.signal import decimate

    from steelyard.signals.filters import LowPass
    from steelyard.signals.read import read_log

    assert DATA is not None
    folder = Path(DATA) / "emps"
    robot = load_robot(folder / "robot.urdf")
    paths = [folder / f"{name}.parquet" for name in ("ident", "val_pulses")]
    found = identify_files(robot, paths[:1], paths[1:], score_cutoff_hz=100.0, **options)
    low_pass = LowPass(100.0, 1e-3)
    for path, limit in zip(paths, limits, strict=True):
        log = read_log(path, robot)
        assert log.tau is not None
        q = low_pass(log.q)
        dq = np.gradient(q, 1e-3, axis=0)
        predicted = found.model.torque(q, dq, np.gradient(dq, 1e-3, axis=0), 1e-3)
        seen, said = (decimate(x[50:-50, 0], 10, zero_phase=True) for x in (log.tau, predicted))
        assert 100.0 * np.linalg.norm(seen - said) / np.linalg.norm(seen) < MARGIN * limit
    inertia = found.base.names.index("m1")
    assert found.estimate.beta[inertia] == pytest.approx(95.1089, rel=0.01)
