"""`steelyard sequential`: a plan in a file equals the plan in Python, and errors name their place."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from model_uses import run

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.estimation.sequential.read_plan import read_plan

ARM = sy.load_robot("irp6")
TRUTH = sy.Model.nominal(ARM)
L2 = ARM.lengths["l2"]
# Kozłowski & Dutkiewicz 1996, section 5.1: parameters identified from motor 2, then motor 3 moving alone.
PLAN = f"""
terms: nominal
signals: as logged
known: {{Fv_motor2: [26, 0.2]}}
movements:
  - name: motor 2
    logs: [motor2.csv]
    moves: [motor2]
    finds:
      J2: {{Izz2: 1, Ia_motor2: 1, m3: {L2}*{L2}}}
      X7: {{mx2: 1, m3: {L2}}}
      F2c: Fc_motor2
    neglects: rest
  - name: motor 3
    logs: motor3.csv
    moves: [motor3]
    finds: {{X4: {{Izz3: 1, Ia_motor3: 1}}, X6: mx3, F3c: Fc_motor3, F3v: Fv_motor3}}
    neglects: rest
"""
TRUE = {"J2": 5.5, "X7": 8.125, "F2c": 28.75, "X4": 3.083, "X6": 0.4, "F3c": 15.0, "F3v": 18.0}


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    s = np.arange(1000) * 0.004
    for k, motor in enumerate(("motor2", "motor3")):
        w = np.array([3.0, 7.0])
        signals = [
            sy.Movement.path(ARM, {motor: (0.3 * w**d * np.sin(s[:, None] * w + d * np.pi / 2)).sum(1)})
            for d in range(3)
        ]
        noise = np.random.default_rng(k).normal(size=(1000, 3))
        sy.Log(ARM.joint_names, s, *signals, TRUTH.torque(*signals) + noise).save(tmp_path / f"{motor}.csv")
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_the_command_equals_python_and_recovers_the_truth(plan: Path, tmp_path: Path) -> None:
    process = run("sequential", "irp6", plan, "-o", tmp_path / "steps")
    assert process.exit_code == 0
    assert "are assumed to be zero" in process.output
    found = {row["name"]: row for row in csv.DictReader((tmp_path / "steps" / "found.csv").read_text().splitlines())}
    assert set(found) == set(TRUE)
    for name, row in found.items():
        # Four standard errors, plus rounding of printed values to three or four digits.
        assert abs(float(row["value"]) - TRUE[name]) < 4.0 * float(row["standard_error"]) + 1e-3 * TRUE[name]
        assert float(row["standard_error"]) >= float(row["own_error"])
    assert float(found["F2c"]["standard_error"]) > 1.01 * float(
        found["F2c"]["own_error"]
    )  # includes the error of the known friction
    movements = [
        sy.Movement(
            motor, sy.load_log(plan.with_name(f"{motor}.csv"), ARM.joint_names), (motor,), finds, neglects="rest"
        )
        for motor, finds in (
            ("motor2", {"J2": {"Izz2": 1.0, "Ia_motor2": 1.0, "m3": L2**2}, "X7": {"mx2": 1.0, "m3": L2},
                        "F2c": "Fc_motor2"}),
            ("motor3", {"X4": {"Izz3": 1.0, "Ia_motor3": 1.0}, "X6": "mx3", "F3c": "Fc_motor3", "F3v": "Fv_motor3"}),
        )
    ]  # fmt: skip
    by_hand = sy.identify_sequentially(
        ARM, movements, terms=TRUTH.terms, known={"Fv_motor2": (26.0, 0.2)}, preparation="as logged"
    )
    for name, row in found.items():
        assert np.isclose(float(row["value"]), by_hand.value(name)[0], rtol=1e-9)
    result = json.loads((tmp_path / "steps" / "result.json").read_text())
    assert [m["name"] for m in result["movements"]] == ["motor 2", "motor 3"]
    assert result["movements"][0]["found"][0]["unit"] == "kg m²"
    assert "report.html" in {p.name for p in (tmp_path / "steps").iterdir()}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("moves: [motor2]", "moves: 7", "movements: entry 1: moves: 7 is not a list"),
        ("moves: [motor2]", "moves: []", "movements: entry 1: 'moves' is empty"),
        ("moves: [motor2]", "moves: [motr2]", "movements: entry 1: moves: There is no joint or motor 'motr2'"),
        ("mx2: 1", "mx9: 1", "movements: entry 1: finds: There is no parameter 'mx9'"),
        ("X6: mx3", "X6: m3", "movements: entry 2: finds: m3 is not identifiable for 'irp6'"),
        ("known: {Fv_motor2", "known: {Fv_motor9", "known: There is no parameter 'Fv_motor9'"),
        ("[26, 0.2]", "[26]", "known: Fv_motor2: has 1 entries, not 2."),
        ("neglects: rest", "neglect: rest", "movements: entry 1: unknown key 'neglect'; did you mean 'neglects'?"),
        ("neglects: rest", "neglects: all", "movements: entry 1: neglects: "),
        ("signals: as logged", "signals: raw", "signals: "),
        ("logs: motor3.csv", "logs: none.csv", "none.csv"),
        ("movements:", "movments:", "unknown key 'movments'; did you mean 'movements'?"),
    ],
)
def test_an_error_in_a_plan_names_its_place(plan: Path, old: str, new: str, message: str) -> None:
    plan.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(SteelyardError) as caught:
        read_plan(plan, ARM)
    assert message in str(caught.value)


def test_a_movement_names_the_parameters_that_it_does_not_list(plan: Path) -> None:
    plan.write_text(PLAN.replace("    neglects: rest\n", "", 1))
    process = run("sequential", "irp6", plan)
    assert process.exit_code == 2
    assert "Movement 'motor 2' also depends on" in process.output
