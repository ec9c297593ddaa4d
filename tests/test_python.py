"""Every verb takes what people hold: paths, frames and dicts for logs; names, texts and models of other libraries for
robots; names for terms. The answers are those that a `Log` and a `Robot` get."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.demo import simulated_log
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.excitation.search import SearchSettings

TERMS = "rotor, viscous,coulomb"


def frame(log: sy.Log) -> Any:
    """The log as a pandas frame with columns q_<joint> …, the time as its index."""
    pd = pytest.importorskip("pandas")
    columns = {f"{s}_{j}": x[:, k] for s, x in log.signals.items() if x is not None for k, j in enumerate(log.joints)}
    return pd.DataFrame(columns, index=pd.Index(log.t, name="t"))


def arrays(log: sy.Log) -> dict[str, Any]:
    return {"t": log.t, "q": log.q, "dq": log.dq, "tau": log.tau}


def thinned(log: sy.Log, every: int = 10) -> sy.Log:
    """Fewer samples, which suffice here: that verbs find the truth is shown elsewhere."""
    signals = {s: None if x is None else x[::every] for s, x in log.signals.items()}
    return sy.Log(log.joints, log.t[::every], **signals)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    robot = sy.load_robot("rotradi")
    truth = sy.Model.nominal(robot)
    log, other = (thinned(simulated_log(truth, seed=k)) for k in (1, 2))
    path = tmp_path_factory.mktemp("logs") / "tuesday.npz"
    other.save(path)
    found = sy.identify(robot, log, [other], terms=["rotor", "viscous", "coulomb"], check=False)
    return SimpleNamespace(robot=robot, truth=truth, log=log, other=other, path=path, found=found)


def test_identify_takes_a_frame_a_path_a_name_and_terms_in_words(case: SimpleNamespace) -> None:
    found = sy.identify("rotradi", frame(case.log), case.path, terms=TERMS, check=False)
    np.testing.assert_array_equal(found.estimate.beta, case.found.estimate.beta)
    assert [s.log for s in found.validation] == ["tuesday"]
    assert [j.rmse for j in found.validation[0].joints] == [j.rmse for j in case.found.validation[0].joints]


def test_a_pinocchio_model_and_a_dict_give_the_same(case: SimpleNamespace, tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    sy.load_robot(case.robot)
    from steelyard.export import model_to_urdf

    model_to_urdf(case.truth, tmp_path / "arm.urdf")
    other = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    found = sy.identify(other, arrays(case.log), terms=TERMS, check=False, prior="none", physical=False)
    ours = sy.identify(case.robot, case.log, terms=TERMS, check=False, prior="none", physical=False)
    s = case.other
    ddq = np.zeros_like(s.q)
    there, here = (f.predict(s.q[::50], s.dq[::50], ddq[::50]) for f in (found, ours))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-8)  # two descriptions of one robot, rounded otherwise


def test_verbs_about_logs(case: SimpleNamespace) -> None:
    one, other, path = frame(case.log), arrays(case.other), case.path
    here, there = sy.check_log(case.robot, case.log), sy.check_log("rotradi", one)
    assert (here.grade, [e.kind for e in here.entries]) == (there.grade, [e.kind for e in there.entries])
    by = sy.predict(case.found, [one, other, path])
    assert [log.name for log in by.logs] == ["log 1", "log 2", "tuesday"]
    np.testing.assert_array_equal(by.logs[1].torque, by.logs[2].torque)
    judged = sy.validate_on_logs(case.found, path)
    np.testing.assert_array_equal(
        judged.trials[0].ways[0].errors, sy.validate_on_logs(case.found.model, [case.other]).trials[0].ways[0].errors
    )
    compared = sy.compare_on_log("rotradi", one, other, estimators=["wls"], terms=TERMS)
    assert compared.results[0].nrmse_percent == pytest.approx(case.found.validation[0].mean_nrmse_percent, rel=0.05)
    joint = case.robot.joint_names[-1]
    friction = sy.measure_friction("rotradi", [one, path], joints=[joint], how="table")
    assert [j.joint for j in friction.joints] == [joint]


def test_payload_takes_frames_and_groups_of_them(case: SimpleNamespace) -> None:
    from steelyard.payload.load import Load

    robot = case.robot
    body = Load(
        robot.link_names[-1], np.array([0.5, 0.01, 0.0, 0.02, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]), np.zeros((10, 10))
    )
    carrying = thinned(simulated_log(sy.Model.nominal(body.attached(robot)), seed=3))
    alone = sy.weigh(robot, carrying, case.log, terms=TERMS)
    assert alone.load.mass == pytest.approx(0.5, abs=4 * alone.load.mass_error)
    for with_load in (frame(carrying), [arrays(carrying)], [[frame(carrying)]]):
        again = sy.weigh("rotradi", with_load, [frame(case.log)], terms=["rotor", "viscous", "coulomb"])
        np.testing.assert_array_equal(again.load.parameters, alone.load.parameters)


def test_verbs_about_robots(case: SimpleNamespace) -> None:
    plain = sy.base_parameters(case.robot, sy.terms(case.robot, "rotor", "viscous"))
    assert sy.base_parameters("rotradi", "rotor,viscous").names == plain.names
    assert len(sy.inspect_robot("rotradi", "viscous").terms) == 1
    options = {"duration": 4.0, "harmonics": 2, "rate": 10.0, "search": SearchSettings(starts=1)}
    a, b = (
        sy.excite(r, terms=t, **options)
        for r, t in (("rotradi", "viscous"), (case.robot, sy.terms(case.robot, "viscous")))
    )
    assert a.value == b.value
    assert sy.as_model("rotradi").theta.tolist() == case.truth.theta.tolist()


def test_wrong_things_get_the_sentences_of_the_commands(case: SimpleNamespace) -> None:
    with pytest.raises(UnknownNameError, match=r"There is no term 'viscos'\. Did you mean 'viscous'"):
        sy.identify("rotradi", case.log, terms="viscos,coulomb")
    with pytest.raises(SteelyardError, match="There is no file or built-in robot 'rotrady'"):
        sy.measure_friction("rotrady", case.log)
    with pytest.raises(SteelyardError, match=r"A log is given as path, Log, frame .* not as 'float'"):
        sy.check_log("rotradi", 1.5)
    with pytest.raises(SteelyardError, match=r"Joint terms are given by name, .* not as 'int'"):
        sy.identify("rotradi", case.log, terms=[3])
