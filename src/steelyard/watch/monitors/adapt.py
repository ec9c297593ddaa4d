"""Adapts the model to the robot by recursive least squares, and writes it periodically.

The estimate starts at the model of the watch, with a prior error of some percent. Forgetting is directional: it acts
only on parameters that the motion excites, so that weeks of the same work keep information from other motions. The
result is an ordinary model (URDF with sidecar) for `steelyard watch`, `predict` and `export`, with a history of its
base parameters. A permanent payload becomes part of the model. The torque of friction with memory (hysteresis) is
subtracted: its parameters stay, and its changes go to the other terms.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array
from steelyard.ground.folders import run_folder
from steelyard.ground.outcome import REPORT
from steelyard.parameters.hysteresis import RigidLoad, Stop
from steelyard.parameters.terms import Terms, terms_named
from steelyard.regression.base_parameters import base_parameters
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.monitor_base import MONITORS, Monitor, StateArrays, WatchEvent, WatchSetup

if TYPE_CHECKING:
    from steelyard.estimation.history import ParameterHistory
    from steelyard.estimation.recursion.stream import Recursive

# Highest sample rate of the estimate: robots move with a few Hz, and recursive least squares costs 30 µs per sample.
_RATE_HZ = 100.0
# Time constant of forgetting [s of motion]: friction changes over hours.
_MEMORY_S = 3600.0
# Prior standard deviation of base parameters: share of each, and share of the largest of all.
_PRIOR_STD, _MIN_STD = 0.1, 0.01
_EVERY_S = 600.0
# Number of stored points of the parameter history, evenly spaced; enough for a line in a figure.
_MOMENTS = 256


@MONITORS.register("adapt")
class AdaptMonitor(Monitor):
    """Adapts the model and writes it.

    Args:
        setup: Model and settings; option "adapt" names the folder (without it the monitor is off), "adapt_every_s" the
            period of writing [s of the robot's clock] (default: ten minutes).
    """

    title = "adapted model"

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._folder = str(setup.options.get("adapt", ""))
        self._every = float(setup.options.get("adapt_every_s", _EVERY_S))
        self._slot, self._written, self._now = np.nan, np.nan, np.nan
        self._fresh = True
        self._run: Recursive | None = None
        self._hysteresis = _HysteresisFriction(setup.model)
        if self._folder:
            self._run = self._begin(self._hysteresis.memoryless)

    @staticmethod
    def _begin(model: Model) -> Recursive:
        from steelyard.estimation.recursion.forgetting import Directional
        from steelyard.estimation.recursion.stream import recursive

        base = base_parameters(model.robot, model.terms)
        beta = base.values(model.theta)
        return recursive(
            model.robot,
            (),
            base=base,
            theta0=model.theta,
            P0=(_PRIOR_STD * np.abs(beta) + _MIN_STD * float(np.abs(beta).max())) ** 2,
            forgetting=Directional(1.0 - 1.0 / (_MEMORY_S * _RATE_HZ)),
            moments=_MOMENTS,
            eigenvalues=False,  # megabytes in every snapshot
            # The stream is decimated, so the torque is not constant between two samples.
            torque_between="sampled",
        )

    def update(self, batch: ObservedBatch) -> None:
        samples = batch.samples
        if self._run is None or not len(samples):
            return
        self._fresh = self._fresh or samples.fresh
        slots = np.floor(samples.t * _RATE_HZ)
        if self._fresh:
            self._slot = np.nan
        at = np.flatnonzero(np.diff(slots, prepend=self._slot) != 0.0)
        self._slot, self._now = slots[-1], float(samples.t[-1])
        if self._fresh:
            self._hysteresis.reset()
        tau = samples.tau - self._hysteresis.torque(samples.q, samples.dq)
        if not len(at):
            return
        self._run.feed(zip(samples.t[at].tolist(), samples.q[at], samples.dq[at], tau[at], strict=True), self._fresh)
        self._fresh = False
        if np.isnan(self._written):
            self._written = float(samples.t[0])
        # At multiples of the period by the robot's clock, so that the split into batches does not matter.
        if np.floor(self._now / self._every) > np.floor(self._written / self._every):
            self._written = self._now
            self._write()

    def finish(self) -> None:
        if self._run is not None and self._run.samples and self._now != self._written:
            self._write()

    @property
    def model(self) -> Model:
        """The present model."""
        if self._run is None:
            return self.setup.model
        return self._hysteresis.with_memory(self._run.theta)

    @property
    def parameter_history(self) -> ParameterHistory | None:
        """History of the base parameters up to now; None before the first point."""
        if self._run is None or not len(self._run.history):
            return None
        history = self._run.parameter_history
        if history.at[-1] >= self._now:
            return history
        # The last stored point may be a hundredth of the history old: hours, after a month.
        at, beta = np.append(history.at, self._now), np.vstack([history.beta, self._run.estimate])
        return replace(history, at=at, beta=beta)

    def _write(self) -> None:
        from steelyard.export.sidecar import model_to_sidecar
        from steelyard.export.urdf import model_to_urdf

        model, history = self.model, self.parameter_history
        try:
            with run_folder(self._folder, overwrite=True) as folder:
                name = model.robot.name
                model_to_urdf(model, Path(folder) / f"{name}.urdf")
                model_to_sidecar(model, Path(folder) / f"{name}.steelyard.json")
                if history is not None:
                    history.to_csv(folder / "history.csv")
                    (folder / REPORT).write_text(history.page(), "utf-8")
        except (SteelyardError, OSError) as problem:
            self.add_event(WatchEvent(self._now, "adapt", f"The adapted model cannot be written: {problem}"))

    def report(self) -> dict[str, Any]:
        if self._run is None:
            return {"adapts": False}
        before = self._run.base.values(self._hysteresis.memoryless.theta)
        scale = np.sqrt(np.mean(before**2))
        change = float(np.sqrt(np.mean((self._run.estimate - before) ** 2)) / scale)
        written = None if np.isnan(self._written) else self._written
        return {"adapts": True, "samples": self._run.samples, "change": change, "written": written}

    @property
    def state_rules(self) -> dict[str, ArrayRule]:  # type: ignore[override]
        """Where a saved state may differ from that of a new monitor; empty without `adapt`."""
        if self._run is None:
            return {}
        rules = self._run.state_rules
        return {name: replace(rules.get(name, ArrayRule()), optional=True) for name in self._run.state()}

    def state(self) -> StateArrays:
        own = np.array([self._slot, self._written, self._now, float(self._fresh)])
        memory = {"memory": self._hysteresis.state.copy()} if len(self._hysteresis.state) else {}
        return {"adapt": own, **memory, **(self._run.state() if self._run is not None else {})}

    def restore(self, state: StateArrays) -> None:
        self._slot, self._written, self._now, _ = state["adapt"].tolist()
        self._fresh = bool(state["adapt"][3])
        if self._run is not None and "samples" in state:
            self._run.restore_arrays({name: x for name, x in state.items() if name not in ("adapt", "memory")})
        if "memory" in state:
            self._hysteresis.state[:] = state["memory"]


class _HysteresisFriction:
    """Terms with memory of a model, with their state; the other terms are left to the recursive estimate.

    Stops depend on the positions. Terms that depend on the load use the torque without acceleration, and terms that
    depend on the torque rate are ignored, because accelerations of single samples are mostly noise.
    """

    def __init__(self, model: Model) -> None:
        self.full_model = model
        count = model.robot.inertial_count
        values, first = model.theta[count:], 0
        split: list[tuple[bool, Array]] = []  # whether each term has memory, and its parameters
        for term, _ in model.terms.with_coordinates:
            last = first + len(term.columns)
            split.append((bool(term.history), values[first:last]))
            first = last
        with_memory = tuple(t for t in model.terms.terms if t.history)
        values_with_memory = [v for has_memory, v in split if has_memory]
        self._terms = Terms(model.robot, with_memory)
        self._model = Model(model.robot, self._terms, np.concatenate([np.zeros(count), *values_with_memory]))
        self.memoryless = _memoryless(model, [v for has_memory, v in split if not has_memory])
        stops = [c for a, c in self._terms.history if isinstance(a, Stop)]
        # Position and state of every stop; position NaN: the next sample restarts it.
        self.state = np.column_stack([np.full(len(stops), np.nan), np.zeros(len(stops))])

    def reset(self) -> None:
        """Reset the state at a gap."""
        self.state[:, 0], self.state[:, 1] = np.nan, 0.0

    def torque(self, q: Array, dq: Array) -> Array:
        """Compute the torque of these terms at consecutive samples, shape (samples, joints), and update the state."""
        if not self._terms.terms:
            return np.zeros_like(q)
        still, postures = np.zeros_like(q), list(q.T)
        load = self.full_model.rigid_torque(q, dq, still) if self._terms.needs_rigid else still
        past, stop = np.zeros((len(q), len(self._terms.history))), 0
        for k, (along, c) in enumerate(self._terms.history):
            u = np.broadcast_to(c.position(postures), (len(q),))
            if isinstance(along, Stop):
                before, s = self.state[stop]
                start = u[0] if np.isnan(before) else before
                past[:, k] = along.follow(np.concatenate([[start], u]), s)[1:]
                self.state[stop] = u[-1], past[-1, k]
                stop += 1
            elif isinstance(along, RigidLoad):
                past[:, k] = along.signal(u, c.torque(postures, list(load.T)), None)
        return np.asarray(self._model.dynamics.inverse_dynamics(q, dq, still, self._model.theta, past))

    def with_memory(self, theta: Array) -> Model:
        """Join the parameters `theta` of the memoryless model with the unchanged terms with memory."""
        count = self.memoryless.robot.inertial_count
        both = Terms(self.memoryless.robot, (*self.memoryless.terms.terms, *self._terms.terms))
        return Model(self.memoryless.robot, both, np.concatenate([theta, self._model.theta[count:]]))


def _memoryless(model: Model, values: list[Array]) -> Model:
    """Remove terms with memory; joints that lose their only dry friction get a Coulomb term of zero."""
    robot, count = model.robot, model.robot.inertial_count
    memoryless = [t for t in model.terms.terms if not t.history]
    dry = {c.name for t, c in model.terms.with_coordinates if t.dry and not t.history and t.on == "joint"}
    without_dry = {c.name for t, c in model.terms.with_coordinates if t.history and t.on == "joint"} - dry
    coulomb = (
        terms_named(robot, "coulomb", tuple(n for n in robot.joint_names if n in without_dry)) if without_dry else []
    )
    bound = Terms(robot, (*memoryless, *coulomb))
    theta = np.concatenate([model.theta[:count], *values])
    return Model(robot, bound, np.concatenate([theta, np.zeros(len(bound) + count - len(theta))]))
