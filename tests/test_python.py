"""Every verb takes what people hold: paths, frames and dicts for logs; names, texts and models of other libraries for
robots; names for terms. The answers are those that a `Log` and a `Robot` get."""

from __future__ import annotations

import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.demo import simulated_log
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.excitation.motion_design import design_motions
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
    from steelyard.payload.payload import Payload

    robot = case.robot
    body = Payload(
        robot.link_names[-1], np.array([0.5, 0.01, 0.0, 0.02, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]), np.zeros((10, 10))
    )
    carrying = thinned(simulated_log(sy.Model.nominal(body.attach_to(robot)), seed=3))
    alone = sy.identify_payload(robot, carrying, case.log, terms=TERMS)
    assert alone.load.mass == pytest.approx(0.5, abs=4 * alone.load.mass_error)
    for with_load in (frame(carrying), [arrays(carrying)], [[frame(carrying)]]):
        again = sy.identify_payload("rotradi", with_load, [frame(case.log)], terms=["rotor", "viscous", "coulomb"])
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
    with pytest.raises(SteelyardError, match=r"Joint terms must be names or terms, .* not 'int'"):
        sy.identify("rotradi", case.log, terms=[3])


# ---------------------------------------------------------------- what a result looks like, and becomes


@pytest.fixture(scope="module")
def results(case: SimpleNamespace) -> dict[str, Any]:
    """One of each kind."""
    slow = SearchSettings(starts=1)
    return {
        "identification": case.found,
        "check": sy.check_log(case.robot, case.log),
        "payload": sy.PayloadResult((_load(),), np.ones(3), 5.0),
        "friction": sy.measure_friction("rotradi", case.log, joints=case.robot.joint_names[-1:], how="table"),
        "comparison": sy.compare_on_log("rotradi", case.log, case.other, estimators=["wls", "cloe"], terms=TERMS),
        "excitation": sy.excite("rotradi", duration=4.0, harmonics=2, rate=10.0, search=slow),
        "motions": design_motions("rotradi", duration=4.0, harmonics=2, rate=10.0, search=slow),
        "validation": sy.validate_on_logs(case.found, case.path),
        "prediction": sy.predict(case.found, case.path),
    }


def _load() -> Any:
    from steelyard.payload.payload import Payload

    return Payload("tool", np.array([2.0, 0.2, 0.0, 0.4, 0.2, 0.0, 0.2, 0.0, 0.0, 0.2]), np.diag(np.full(10, 1e-4)))


KINDS = [
    "identification", "check", "payload", "friction", "comparison", "excitation", "motions", "validation", "prediction",
]  # fmt: skip


class _Tags(HTMLParser):
    """Which elements were opened and closed, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_shows_itself_in_a_line_and_in_a_notebook(kind: str, results: dict[str, Any]) -> None:
    found = results[kind]
    line = repr(found)
    assert line.startswith(f"<{type(found).__name__}: ")
    assert "\n" not in line
    assert len(line) < 400
    page = found._repr_html_()
    read = _Tags(page)
    assert not read.open
    assert "table" in read.seen
    assert not {"script", "link", "style", "img"} & set(read.seen)
    assert found.headline().sentence in read.text
    assert len(page) < 40_000
    for figure in found.figures():
        assert f".plot.{figure}()" in page


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_of_a_result_is_a_frame(kind: str, results: dict[str, Any]) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    found = results[kind]
    for name, make in found.tables().items():
        frame, columns = found.to_pandas(name), make()
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == list(columns)
        assert len(frame) > 0
        assert pl.from_arrow(found.to_arrow(name)).shape == frame.shape
    with pytest.raises(UnknownNameError, match="There is no table 'nothing'"):
        found.to_pandas("nothing")


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_of_a_result_is_one_that_plotly_takes(kind: str, results: dict[str, Any]) -> None:
    pytest.importorskip("plotly")
    found = results[kind]
    assert sorted(dir(found.plot)) == sorted(found.figures())
    for name in dir(found.plot):
        figure = getattr(found.plot, name)()
        bundle = figure._repr_mimebundle_()
        drawn = figure.to_plotly()  # plotly checks every word
        assert len(drawn.data) == len(bundle["application/vnd.plotly.v1+json"]["data"]) > 0
    with pytest.raises(AttributeError, match="There is no figure 'nothing'"):
        _ = found.plot.nothing


def test_the_tables_say_what_was_found(case: SimpleNamespace) -> None:
    pytest.importorskip("pandas")
    found = case.found
    parameters = found.to_pandas().set_index("name")
    for k, name in enumerate(found.base.names):
        assert parameters.value[name] == found.estimate.beta[k]
        assert parameters.standard_error[name] == found.estimate.standard_errors[k]
    scores = found.to_pandas("scores")
    judged = scores[scores.role == "judged by"]
    assert judged.nrmse_percent.tolist() == [j.nrmse_percent for j in found.validation[0].joints]
    signals, joint = found.to_pandas("signals"), case.robot.joint_names[0]
    error = signals[f"measured_{joint}"] - signals[f"predicted_{joint}"]
    assert np.sqrt(np.mean(error**2)) == pytest.approx(found.validation[0].joints[0].rmse, rel=0.05)
    assert found.to_pandas("model").value.tolist() == found.model.theta.tolist()


def test_residuals_are_drawn_over_what_is_asked_for(case: SimpleNamespace) -> None:
    for over in ("time", "velocity", "position", "frequency", "correlation"):
        assert case.found.plot.residuals(over).data
    with pytest.raises(UnknownNameError, match="There is no axis 'colour'"):
        case.found.plot.residuals("colour")
    with pytest.raises(UnknownNameError, match="There is no log 'monday'"):
        case.found.plot.torque("monday")


def test_without_plotly_and_pandas(case: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure is then a page in a frame, and a table of numbers is a sentence that names the package to install."""
    monkeypatch.setattr("steelyard.report.notebook.find_spec", lambda name: None)
    figure = case.found.plot.torque()
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/html"].startswith("<iframe srcdoc=")
    assert "https://" not in bundle["text/html"].split("plotly-js")[0]
    with pytest.raises(SteelyardError, match="to_plotly needs plotly"):
        figure.to_plotly()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SteelyardError, match=r"to_pandas needs pandas, .*to_arrow\(\)"):
        case.found.to_pandas()


def test_names_of_others_are_text_in_a_notebook() -> None:
    from dataclasses import replace

    found = replace(_load(), frame="<script>alert(1)</script>", notes=("<b>bold</b>",))
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<b>" not in page


MESHES = """<robot name="arm"><link name="base"/>
<link name="a"><visual><geometry><mesh filename="package://arm/a.stl"/></geometry></visual>
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""


def test_a_written_urdf_keeps_the_meshes_of_the_one_that_was_read(case: SimpleNamespace, tmp_path: Path) -> None:
    from dataclasses import replace

    (tmp_path / "arm.urdf").write_text(MESHES)
    robot = sy.load_robot(tmp_path / "arm.urdf")
    found = replace(
        case.found,
        robot=robot,
        model=sy.Model.nominal(robot.with_inertial_parameters([2.0, *[0.1] * 3, 9.0, 0, 9.0, 0, 0, 9.0])),
        formats=(),  # those are of the arm that was identified
    )
    found.to_urdf(tmp_path / "found.urdf")
    text = (tmp_path / "found.urdf").read_text()
    assert 'filename="package://arm/a.stl"' in text
    assert sy.load_robot(tmp_path / "found.urdf").links[0].inertia[0] == 2.0


def test_a_result_becomes_an_object_of_other_libraries(case: SimpleNamespace) -> None:
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dry friction that is rounded off is neither library's
        arm, scene = case.found.to_pinocchio(), case.found.to_mujoco()
    assert list(arm.names)[1:] == list(case.robot.joint_names)
    named = {p.name: v for p, v in zip(case.found.model.dynamics.parameters, case.found.model.theta, strict=True)}
    for k in range(case.robot.dof):
        assert arm.damping[k] == pytest.approx(named[f"Fv{k + 1}"])
        assert arm.armature[k] == pytest.approx(scene.dof_armature[k]) == pytest.approx(named[f"Ia{k + 1}"])
