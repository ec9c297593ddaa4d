"""Checks that every joint term must pass, and a two-link arm with the term."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from export.exported import Compiled
from scipy.integrate import solve_ivp
from simulation.simulated_robots import block, double_pendulum, model_of

import steelyard as sy
from steelyard.assessment.replay import replay
from steelyard.check import check_log
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.export import load_model, model_to_sidecar, model_to_urdf, sidecar_path
from steelyard.parameters import TERMS, RigidLoad, Stop, Term, identification_terms, make_term, terms
from steelyard.regression.schemes.still import STILL, KnownFriction, Stillness
from steelyard.signals.log import Log
from steelyard.simulation import ComputedTorque, simulate

RATE = 500.0


def values_of(bound: sy.Terms) -> np.ndarray:
    """Different possible values for all parameters; a tenth of the load, some ms of lag."""
    units = {"1": 0.1, "s": 0.01, "s²": 1e-4}
    return np.linspace(0.4, 0.8, len(bound)) * [units.get(p.unit, 1.0) for p in bound.parameters]


def arm(*which: str | Term) -> Model:
    robot = double_pendulum()
    bound = identification_terms(robot, which)
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, values_of(bound)]))


class Swings:
    """Harmonics that cover all speeds from 0 to beyond 2 rad/s, mostly slow ones."""

    def sample(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w, a = np.array([0.7, 1.9, 4.3]), np.array([[0.9, -0.7], [0.35, 0.5], [-0.25, 0.2]])
        phase = np.multiply.outer(np.asarray(t, dtype=float), w) + np.array([0.2, 1.0, 2.2])
        return np.sin(phase) @ a, (w * np.cos(phase)) @ a, (-(w**2) * np.sin(phase)) @ a


def loaded(term: Term) -> bool:
    """Whether the term depends on the load."""
    return any(isinstance(a, RigidLoad) for a in term.history)


def log_of(model: Model, seconds: float = 20.0) -> Log:
    """The log of a motion of the arm with its exact torque."""
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, dq, ddq = Swings().sample(t)
    return Log(model.robot.joint_names, t, q, dq=dq, tau=model.torque(q, dq, ddq, 1.0 / RATE))


def comes_back_from_a_file(kind: str, folder: Path) -> None:
    model, urdf = arm(kind), folder / "arm.urdf"
    model_to_urdf(model, urdf)
    model_to_sidecar(model, sidecar_path(urdf))
    again = load_model(urdf)
    assert again.terms.terms == model.terms.terms
    s = Swings().sample(np.linspace(0.0, 9.0, 50))
    # The file rounds the frames of the links, but not the terms.
    np.testing.assert_allclose(again.torque(*s), model.torque(*s), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(Model.nominal(again.robot).torque(*s), model.torque(*s), rtol=0.0, atol=1e-12)


def is_the_same_in_c(kind: str, folder: Path) -> None:
    model = arm(kind)
    s = Swings().sample(np.linspace(0.0, 9.0, 20))
    theirs = Compiled(model, folder)("inverse_dynamics", (2,), *s)
    # In C stops start relaxed; the start is forgotten after two widths, here after the first step.
    first = 1 if model.has_memory else 0
    np.testing.assert_allclose(theirs[first:], model.torque(*s)[first:], rtol=0.0, atol=1e-12)


def excludes_standstill_if_it_jumps(kind: str, folder: Path) -> None:
    """Rows near standstill are excluded if, and only if, a term's torque jumps there."""
    term = make_term(kind)
    slow = STILL["revolute"]
    stops = any(isinstance(a, Stop) for a in term.history)  # the force of a stop is defined at rest
    jump = 0.0 if stops else np.subtract(term.force(0.3, slow), term.force(0.3, -slow))
    robot = double_pendulum()
    seen = Stillness.of(Dynamics(robot, terms(robot, term)), KnownFriction.of(robot, {}), None, 0.0)
    assert len(seen.limits) == (2 if np.max(np.abs(jump)) > 0.2 else 0)


def moves_by_its_formula(kind: str, folder: Path) -> None:
    """A block that slides on a rail under the term, smoothed or with stiction, agrees with SciPy on the formula."""
    term, mass = make_term(kind), 2.0
    theta = np.linspace(0.4, 0.8, len(term.columns))
    carried = mass + (theta[0] if term.inertial else 0.0)
    if loaded(term):  # m a + μ |m a| moves like more mass, as long as a > 0
        carried = mass * (1.0 + theta[0])
    rubs = 0.0 if loaded(term) else theta

    def rates(_: float, x: np.ndarray) -> list[float]:
        return [x[1], (3.0 - float(np.sum(rubs * np.array(term.force(x[0], x[1]))))) / carried]

    t = np.linspace(0.0, 0.4, 11)
    truth = solve_ivp(rates, (0.0, 0.4), [0.2, 0.5], t_eval=t, rtol=1e-11, atol=1e-12, max_step=1e-3)
    model = model_of(block(mass), term, values=tuple(theta))
    for friction in ("smooth", "stick"):
        made = simulate(model, np.array([3.0]), times=t, step=1e-3, q0=[0.2], dq0=[0.5], friction=friction)
        # The speed is never near zero. Runge–Kutta steps over the knots of a table are accurate to 1e-7.
        np.testing.assert_allclose(made.q[:, 0], truth.y[0], rtol=0.0, atol=1e-6)


def holds_a_joint_at_rest(kind: str, folder: Path) -> None:
    """Half the level moves nothing at rest and twice the level does; without a level every force does."""
    term = make_term(kind)
    theta = np.linspace(0.4, 0.8, len(term.columns))
    level = float(np.dot(theta, term.force(0.0, 1e-9))) if term.dry and not loaded(term) else 0.0
    model = model_of(block(), term, values=tuple(theta))
    for push in (0.5 * level, 2.0 * level + 5.0):
        made = simulate(model, np.array([push]), duration=0.1, friction="stick")
        assert np.any(made.q) == (push > level) or level < 1e-3  # an arctangent creeps


def replays_its_own_log(kind: str, folder: Path) -> None:
    model = arm(kind)
    control = ComputedTorque.for_model(model)
    q, dq, _ = Swings().sample(np.zeros(1))
    t = np.arange(0.0, 1.0, 1.0 / RATE)
    played = simulate(model, control, reference=Swings(), times=t, step=1.0 / RATE / 4, q0=q[0], dq0=dq[0])
    log = Log(model.robot.joint_names, t, played.q, dq=played.dq, tau=played.tau)
    again = replay(model, log)
    assert again.finished, again.reason
    # The simulation's own steps against those of an adaptive method.
    assert np.max(np.abs(again.q - log.q)) < 1e-4


def is_checked(kind: str, folder: Path) -> None:
    """A log with the term raises no alarm; the torque of a joint with the wrong sign does, where friction shows it."""
    model = arm(kind)
    found = check_log(model.robot, log_of(model), [kind])
    # Without friction and noise, torques equal those of the description, and the check reports this.
    assert not [e for e in found.entries if e.severity == "problem" and e.kind != "echo"]
    log = log_of(model)
    signs = check_log(model.robot, replace(log, tau=log.tau * [1.0, -1.0]), [kind]).of("sign")
    # Of two joints either may be the one, unless its friction shows it.
    if make_term(kind).dissipative:
        assert signs
        assert all("'joint2'" in e.message for e in signs)


def is_identified(kind: str, folder: Path) -> None:
    """The torque of the term comes back from a log without noise, on a motion that was not logged."""
    model = arm(kind)
    found = sy.identify(model.robot, log_of(model), terms=[kind])
    q, dq, ddq = (x[::7] for x in Swings().sample(np.linspace(30.0, 60.0, 700)))
    truth = model.torque(q, dq, ddq)
    # The remaining error is the filter's: steps of dry friction are a few of its samples wide.
    rms = np.sqrt(np.mean((found.model.torque(q, dq, ddq) - truth) ** 2, axis=0) / np.mean(truth**2, axis=0))
    assert np.all(rms < 0.01), rms


ROADS = (
    comes_back_from_a_file,
    is_the_same_in_c,
    excludes_standstill_if_it_jumps,
    moves_by_its_formula,
    holds_a_joint_at_rest,
    replays_its_own_log,
    is_checked,
    is_identified,
)
KINDS = tuple(sorted(TERMS))
