"""`excite`: motions keep every limit at every instant, repeat and resume, and errors name the problem."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from excitation_cases import pendulum, szabo
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import make_tree

import steelyard as sy
from steelyard.excitation import Plane, Point, SearchSettings, box
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.regression.factor import reduce
from steelyard.regression.rows import Rows

QUICK = SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=15)
LIMITS = {"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0}


def quick(robot, **options):
    defaults = {"harmonics": 3, "duration": 4.0, "rate": 50.0, "search": QUICK}
    return sy.excite(robot, **{**defaults, **options})


def test_a_plan_is_better_than_its_start_and_reports_its_quality():
    robot, terms = szabo()
    plan = quick(robot, terms=terms, limits=LIMITS)
    q, dq, ddq = plan.trajectory.sample(plan.trajectory.times(plan.rate))
    base = sy.base_parameters(robot, terms)
    W = base.regressor_columns(sy.Dynamics(robot, terms).torque_regressor(q, dq, ddq)).reshape(-1, base.rank)
    assert plan.columns == base.names
    assert plan.condition_number == pytest.approx(np.linalg.cond(W), rel=1e-6)  # eigenvalues of WᵀW: cond² × rounding
    assert plan.value == pytest.approx(plan.condition_number)
    assert plan.value < 0.5 * plan.start_value
    assert "24 columns, columns unscaled" in plan.label
    assert plan.violation == 0.0
    assert plan.history[-1][1] == pytest.approx(plan.value, rel=1e-2)  # settled between samples afterwards
    # Least squares with noise σ_j: (Σ W_jᵀW_j/σ_j²)⁻¹
    sigma = np.array([0.5, 0.3, 0.7])
    weighted = W / np.tile(sigma, len(q))[:, None]
    expected = np.sqrt(np.diag(np.linalg.inv(weighted.T @ weighted)))
    assert plan.standard_errors(sigma) == pytest.approx(expected, rel=1e-6)
    for x in (dq[0], ddq[0]):
        assert np.abs(x).max() < 1e-12  # at rest by construction


@given(st.integers(0, 10**6), st.integers(1, 3), st.floats(0.3, 2.5), st.floats(0.2, 2.0), st.floats(0.5, 6.0))
@settings(max_examples=6)
def test_plans_keep_their_limits_on_a_grid_a_hundred_times_denser(seed, links, q, dq, ddq):
    robot = make_tree(seed, links)
    plan = quick(robot, limits={"q": q, "dq": dq, "ddq": ddq, "jerk": 8.0 * ddq}, seed=seed)
    t = np.linspace(0.0, 4.0, 20001)
    assert plan.violation == 0.0
    for size, limit in zip((*plan.trajectory.sample(t), plan.trajectory.jerk(t)), (q, dq, ddq, 8.0 * ddq), strict=True):
        assert np.abs(size).max() <= limit


def test_torque_power_and_region_are_kept_between_the_samples():
    robot = sy.load_robot("szabo3r")
    tip = Point(robot.link_names[-1], (0.5, 0.0, 0.0))  # half a metre from the elbow
    room = ([tip], [Plane.floor(0.4), Plane((1.0, 0.0, 0.0), 0.6)])
    limits = {**LIMITS, "tau": [4.0, 14.0, 7.0], "power": 20.0}
    plan = quick(robot, limits=limits, regions=[room], torque_margin=0.05)
    assert plan.violation == 0.0
    assert set(plan.margins) == {"joint limits", "torque limits", "power limits", "region"}
    q, dq, ddq = plan.trajectory.sample(np.linspace(0.0, 4.0, 20001))
    tau = sy.Model.nominal(robot).torque(q, dq, ddq)
    assert np.all(np.abs(tau) <= 0.95 * np.array([4.0, 14.0, 7.0]))
    assert np.all(np.abs(tau * dq) <= 0.95 * 20.0)
    # The tip by hand: shoulder at 0.3 m, two links of 0.5 m in a vertical plane that turns with q1.
    reach = -0.5 * np.sin(q[:, 1]) - 0.5 * np.sin(q[:, 1] + q[:, 2])
    height = 0.3 + 0.5 * np.cos(q[:, 1]) + 0.5 * np.cos(q[:, 1] + q[:, 2])
    assert height.min() >= 0.4 - 1e-9
    assert (reach * np.cos(q[:, 0])).max() <= 0.6 + 1e-9


def test_the_same_seed_gives_the_same_motion_and_another_gives_another():
    robot = sy.load_robot("szabo3r")
    first, again, other = (quick(robot, limits=LIMITS, seed=s).trajectory.coefficients for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("when", ["at once", "within a stage"])
def test_ctrl_c_gives_a_motion_within_its_limits_and_can_resume(tmp_path, monkeypatch, when):
    robot = sy.load_robot("szabo3r")
    limits = {**LIMITS, "tau": [4.0, 14.0, 7.0]}  # the best so far breaks them: settling would continue the search
    calls = itertools.count()
    stop_at = {"at once": 0, "within a stage": 100}[when]
    monkeypatch.setattr("steelyard.excitation.search.stop_wanted", lambda: next(calls) >= stop_at)
    file = tmp_path / "search.json"
    early = quick(robot, limits=limits, checkpoint=file)
    assert early.violation == 0.0
    assert next(calls) < stop_at + 10  # the search stops evaluating
    monkeypatch.undo()
    resumed = quick(robot, limits=limits, checkpoint=file)
    assert np.array_equal(resumed.trajectory.coefficients, quick(robot, limits=limits).trajectory.coefficients)


def test_a_search_reports_progress_stops_and_resumes(tmp_path):
    robot = sy.load_robot("szabo3r")
    whole = quick(robot, limits=LIMITS)
    reports = []

    def stop_after_two(progress):
        reports.append(progress)
        return len(reports) == 2

    file = tmp_path / "search.json"
    early = quick(robot, limits=LIMITS, progress=stop_after_two, checkpoint=file)
    assert [p.number for p in reports] == [1, 2]
    assert early.violation == 0.0
    assert early.value >= whole.value
    resumed = quick(robot, limits=LIMITS, checkpoint=file, progress=reports.append)
    assert [p.number for p in reports] == [1, 2, 3]
    assert [p.best for p in reports] == sorted((p.best for p in reports), reverse=True)
    assert np.array_equal(resumed.trajectory.coefficients, whole.trajectory.coefficients)
    with pytest.raises(sy.ExcitationError, match="belongs to another search"):
        quick(robot, limits=LIMITS, checkpoint=file, seed=5)
    file.write_text("{")
    with pytest.raises(sy.ExcitationError, match=r"not a readable JSON file .* delete it"):
        quick(robot, limits=LIMITS, checkpoint=file)


@pytest.mark.parametrize("criterion", ["information", "frobenius", "d", "a", "e", "sigma"])
def test_every_criterion_improves(criterion):
    robot = sy.load_robot("szabo3r")
    plan = quick(robot, limits=LIMITS, criterion=criterion)
    better = plan.value > plan.start_value if criterion in ("e", "sigma") else plan.value < plan.start_value
    assert better
    assert plan.violation == 0.0


def test_scalings():
    robot = sy.load_robot("szabo3r")
    base = sy.base_parameters(robot)
    for scaling in ("unit", "orthonormal"):
        plan = quick(robot, limits=LIMITS, scaling=scaling)
        W = robot.torque_regressor(*plan.trajectory.sample(plan.trajectory.times(50.0))).reshape(-1, 30)
        if scaling == "orthonormal":
            values = np.linalg.svd(W, compute_uv=False)
            expected = values[0] / values[base.rank - 1]  # the identifiable combinations of all 30 columns
        else:
            columns = base.regressor_columns(W)
            expected = np.linalg.cond(columns / np.linalg.norm(columns, axis=0))
        assert plan.value == pytest.approx(expected, rel=1e-6)


def test_a_motion_for_uncertain_parameters():
    """An earlier log as prior reduces the weight of parameters that it identified well."""
    robot = sy.load_robot("szabo3r")
    base = sy.base_parameters(robot)
    still = quick(robot, limits={**LIMITS, "dq": 0.1, "ddq": 0.1}, criterion="d")
    q, dq, ddq = still.trajectory.sample(still.trajectory.times(50.0))
    factor = reduce(Rows(base.structure.dynamics), q, dq, ddq, np.zeros_like(q))
    plan = quick(robot, limits=LIMITS, criterion="d", prior=factor)
    assert plan.value == pytest.approx(-np.linalg.slogdet(plan.gram + still.gram)[1], rel=1e-9)
    assert "prior" in plan.label


def test_chosen_joints_equations_and_parameters():
    robot = sy.load_robot("szabo3r")
    plan = quick(robot, limits=LIMITS, joints=["q3"], equations=["q3"], posture=[0.3, 0.2, 0.0])
    q, dq, _ = plan.trajectory.sample(plan.trajectory.times(50.0))
    assert q[:, :2] == pytest.approx(np.tile([0.3, 0.2], (len(q), 1)))
    assert np.all(dq[:, :2] == 0.0)
    assert len(plan.columns) == 3  # one link in the plane: its inertia and two first moments
    assert plan.equations == ("q3",)
    some = quick(robot, limits=LIMITS, parameters=plan.columns)
    assert some.columns == plan.columns
    wanted = quick(robot, limits=LIMITS, wanted=plan.columns, criterion="a")
    covariance = np.linalg.inv(wanted.gram)
    places = [wanted.columns.index(n) for n in plan.columns]
    assert wanted.value == pytest.approx(np.trace(covariance[np.ix_(places, places)]), rel=1e-6)


def test_torque_scaling_as_printed_and_inverse():
    robot, torque = sy.load_robot("szabo3r"), np.array([10.0, 20.0, 5.0])
    limits = {**LIMITS, "tau": torque}
    printed = quick(robot, limits=limits, weights="torque", criterion="d")
    scaled = sum(w**2 * g for w, g in zip(torque / 20.0, printed.grams, strict=True))
    assert printed.value == pytest.approx(-np.linalg.slogdet(scaled)[1])
    inverse = quick(robot, limits=limits, weights="torque-inverse", criterion="d")
    scaled = sum(g / w**2 for w, g in zip(torque / 20.0, inverse.grams, strict=True))
    assert inverse.value == pytest.approx(-np.linalg.slogdet(scaled)[1])


def test_a_plan_as_files():
    robot = sy.load_robot("szabo3r")
    plan = quick(robot, limits=LIMITS)
    document = json.loads(plan.to_json())
    again = Trajectory.from_dict(document["trajectory"])
    assert np.array_equal(again.coefficients, plan.trajectory.coefficients)
    assert document["violation"] == 0.0
    rows = list(plan.csv_rows())
    assert rows[0][:3] == ["t", "q_q1", "q_q2"]
    assert len(rows) == 1 + len(plan.trajectory.times(50.0))
    message = plan.to_ros(rate=10.0)
    assert message["joint_names"] == ["q1", "q2", "q3"]
    assert message["points"][-1]["time_from_start"] == {"sec": 4, "nanosec": 0}
    assert message["points"][15]["positions"] == pytest.approx(plan.trajectory.sample(1.5)[0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"harmonics": 1}, "2 harmonics or more"),
        ({"duration": -1.0}, "must be positive"),
        ({"duration": 0.1}, "too few samples"),
        ({"criterion": "condition"}, "no criterion 'condition'. Did you mean"),
        ({"scaling": "none"}, "no scaling"),
        ({"scheme": "power"}, "no scheme"),
        ({"joints": ["elbow"]}, "no joint 'elbow'"),
        ({"parameters": ["m99"]}, "no base parameter 'm99'"),
        ({"weights": [1.0]}, "3 positive numbers"),
        ({"weights": "torque"}, "torque limit of every joint"),
        ({"prior": np.eye(3)}, "prior has shape"),
        ({"posture": [0.0, 9.0, 0.0]}, "puts joint 'q2' at 9"),
        ({"bandwidth_hz": 0.5}, "use at most 2 harmonics"),
        ({"family": Fourier(3, 4.0, start=3.0)}, "position of joint 'q2' exceeds its limit"),
        ({"family": [Fourier(3, 4.0)]}, "has 3 joints"),
        ({"limits": {"q": [(-2, 2), (0.5, 1.2), (-0.2, 0.2)], "tau": 0.1}}, "torque limits cannot be kept"),
        ({"joints": []}, "At least one joint must move"),
        ({"regions": [([Point("nowhere")], [Plane.floor()])]}, "no link 'nowhere'"),
        ({"torque_margin": 1.5, "limits": {**LIMITS, "tau": 9.0}}, "margin"),
    ],
)
def test_bad_input_is_refused(options, sentence):
    with pytest.raises(sy.SteelyardError, match=sentence):
        quick(sy.load_robot("szabo3r"), **{"limits": LIMITS, **options})


def test_a_region_that_no_posture_reaches():
    robot = sy.load_robot("szabo3r")
    far = ([Point(robot.link_names[-1])], list(box((3.0, 3.0, 3.0), (4.0, 4.0, 4.0))))
    with pytest.raises(sy.ExcitationError, match="region cannot be kept"):
        quick(robot, limits=LIMITS, regions=[far])


def test_momentum_scheme():
    robot, terms = szabo()
    plan = quick(robot, terms=terms, limits=LIMITS, scheme="momentum", window=0.1, long_windows=True, criterion="d")
    assert plan.equations == ("q1", "q2", "q3")
    assert plan.value == pytest.approx(-np.linalg.slogdet(plan.gram)[1], rel=1e-9)
    assert plan.value < plan.start_value


def test_energy_scheme_of_a_pendulum():
    robot = pendulum()
    plan = quick(
        robot,
        terms=sy.terms(robot, "viscous", "coulomb"),
        parameters=["mx1", "Izz1", "Fv1", "Fc1"],
        scheme="energy",
        window=0.02,
        criterion="information",
        limits={"ddq": None},
        family=Fourier(5, 4.0, rest=False),
    )
    assert plan.equations == ("energy",)
    assert plan.value == pytest.approx(np.linalg.cond(plan.gram), rel=1e-6)
    assert plan.value < plan.start_value
