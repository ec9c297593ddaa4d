"""A URDF with its sidecar gives the complete model."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from exported import our_torque
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import public_robot_path, relative
from random_robots import trees

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.export import (
    ExportError,
    load_model,
    model_to_mjcf,
    model_to_sidecar,
    model_to_urdf,
    read_sidecar,
    sidecar_path,
)
from steelyard.parameters import (
    TERMS,
    AsymmetricCoulomb,
    Column,
    Coulomb,
    Custom,
    Offset,
    Rotor,
    Spring,
    StribeckAtan,
    make_term,
    terms,
)
from steelyard.robot import load_robot
from steelyard.robot.library import builtin, builtin_names

SAME = 1e-12


def there_and_back(model: Model, folder: Path, source: Path | None = None, custom=None) -> Model:
    urdf = folder / "arm.urdf"
    model_to_urdf(model, urdf, source)
    model_to_sidecar(model, sidecar_path(urdf))
    again = load_model(urdf, custom=custom)
    assert again.robot.joints == model.robot.joints
    assert again.robot.link_names == model.robot.link_names
    assert again.terms.names == model.terms.names
    assert again.robot.torque_used == model.robot.torque_used
    assert again.robot.lengths == model.robot.lengths
    return again


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_robots_come_back(name, tmp_path):
    model = Model.nominal(load_robot(name))
    again = there_and_back(model, tmp_path)
    assert relative(our_torque(again), our_torque(model)) < SAME
    # The parameters are again in the frames of the table, and the robot has the nominal terms.
    np.testing.assert_allclose(again.theta, model.theta, rtol=SAME, atol=1e-14)
    assert relative(our_torque(Model.nominal(again.robot)), our_torque(model)) < SAME


@pytest.mark.parametrize("name", ["ur10", "panda", "tiago"])
def test_public_robots_come_back(name, tmp_path):
    source = public_robot_path(name)
    model = Model.nominal(load_robot(source, gravity=(0.5, 0.0, -9.7)))
    assert relative(our_torque(there_and_back(model, tmp_path, source)), our_torque(model)) < SAME


@given(trees(max_links=6, mimic=True, own_frames=True), st.sampled_from(sorted(TERMS)), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_any_tree_with_any_term_comes_back(robot, kind, seed):
    bound = terms(robot, make_term(kind))
    values = np.random.default_rng(seed).uniform(0.1, 2.0, len(bound))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, values]))
    with tempfile.TemporaryDirectory() as folder:
        assert relative(our_torque(there_and_back(model, Path(folder))), our_torque(model)) < SAME


def cubic_model():
    robot = load_robot("irp6")
    cubic = Custom(name="cubic", parameters=(Column("F3", "u", "u"),), torque=lambda u, du: (du**3,))
    bound = terms(
        robot,
        Rotor(on="motor", where=("motor3",)),
        Coulomb(smooth=0.05),
        AsymmetricCoulomb(on="drive", dead_band=0.01, where=("motor1", "motor3")),
        StribeckAtan(Kv=300.0, where=("q2",)),
        Spring(rest=0.2, where=("q1",)),
        Offset(),
        cubic,
    )
    values = np.random.default_rng(0).uniform(0.1, 2.0, len(bound))
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, values])), cubic


def test_options_places_and_own_terms_come_back(tmp_path):
    model, cubic = cubic_model()
    again = there_and_back(model, tmp_path, custom={"cubic": cubic})
    assert relative(our_torque(again), our_torque(model)) < SAME
    with pytest.raises(ExportError, match="the custom term 'cubic'"):
        load_model(tmp_path / "arm.urdf")


def test_a_sidecar_also_works_with_mjcf(tmp_path):
    model = Model.nominal(load_robot("irp6-screws"))
    model_to_mjcf(model, tmp_path / "arm.xml")
    model_to_sidecar(model, sidecar_path(tmp_path / "arm.xml"))
    assert relative(our_torque(load_model(tmp_path / "arm.xml")), our_torque(model)) < SAME


def test_every_number_has_a_name_and_a_unit(tmp_path):
    model = Model.nominal(load_robot("ns16"))
    model_to_sidecar(model, tmp_path / "a.steelyard.json")
    side = read_sidecar(tmp_path / "a.steelyard.json")
    assert [t.kind for t in side.terms] == ["rotor", "coulomb", "viscous", "quadratic"]
    written = json.loads((tmp_path / "a.steelyard.json").read_text())
    first = written["terms"][0]["parameters"][0]
    assert (first["name"], first["unit"]) == ("Ia1", "kg m²")
    assert written["schema"] == "steelyard.sidecar/1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="other"), "not a sidecar, or is of another version"),
        (lambda d: d.update(extra=1), "unknown key 'extra'"),
        (lambda d: d.pop("gravity"), "'gravity' is missing"),
        (lambda d: d["joints"][0].update(name="q9"), "is only in one of description and sidecar"),
        (lambda d: d["joints"][0].update(torque_used=1), "must be true or false"),
        (lambda d: d["links"].pop(), "link 'link3' is only in one of description and sidecar"),
        (lambda d: d["terms"][0].update(kind="magic"), "the custom term 'magic'"),
        (lambda d: d["terms"][0].update(options={"kind": "viscous"}), "There is no option of term .* 'kind'"),
        (lambda d: d["terms"][0]["options"].update(on=5, where=6), None),
        (lambda d: d["terms"][0]["parameters"].pop(), "values for"),
        (lambda d: d["terms"][0]["parameters"][0].update(value="x"), "'x'"),
        (lambda d: d["transmission"].update(motor_from_joint=[[1, 2]]), "numbers, not 3"),
    ],
)
def test_an_error_in_a_sidecar_names_its_place(tmp_path, change, message):
    model = Model.nominal(load_robot("irp6"))
    model_to_urdf(model, tmp_path / "a.urdf")
    path = sidecar_path(tmp_path / "a.urdf")
    model_to_sidecar(model, path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    if message is None:  # the joints of a term are outside of its options, and take precedence
        load_model(tmp_path / "a.urdf")
        return
    with pytest.raises(SteelyardError, match=message):
        load_model(tmp_path / "a.urdf")


def test_a_missing_file_and_invalid_json_have_different_errors(tmp_path):
    with pytest.raises(ExportError, match="no such file"):
        read_sidecar(tmp_path / "none.steelyard.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ExportError, match="not a readable JSON"):
        read_sidecar(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("option", "value"),
    [("smooth", {"a": 1}), ("smooth", None), ("smooth", "x"), ("smooth", [1.0]), ("smooth", True), ("smooth", 1e300),
     ("dead_band", {}), ("dead_band", []), ("dead_band", "nan"), ("on", {}), ("where", 3), ("other", 1)],
)  # fmt: skip
def test_options_of_terms_are_checked_as_on_the_command_line(tmp_path, option, value):
    robot = builtin("szabo3r")
    bound = terms(robot, Coulomb(smooth=0.1))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, np.ones(len(bound))]))
    model_to_urdf(model, tmp_path / "arm.urdf")
    side = tmp_path / "arm.steelyard.json"
    model_to_sidecar(model, side)
    data = json.loads(side.read_text())
    data["terms"][0]["options"][option] = value
    side.write_text(json.dumps(data))
    if option in ("on", "where"):  # they have separate keys, which take precedence
        load_model(tmp_path / "arm.urdf")
        return
    with pytest.raises(ExportError, match=rf"arm\.urdf.*{option}"):
        load_model(tmp_path / "arm.urdf")


@pytest.mark.parametrize("kind", sorted(TERMS))
@pytest.mark.parametrize("value", [{}, [], None, "x", [[1.0]], float("nan"), 10**400, b"1", object()])
def test_invalid_options_of_terms_are_refused(kind, value):
    """The value is refused with one sentence, or the term has columns and a force."""
    for option in TERMS[kind]().options:
        try:
            term = make_term(kind, **{option: value})
        except SteelyardError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert term.columns
        term.force(0.1, 0.2)
