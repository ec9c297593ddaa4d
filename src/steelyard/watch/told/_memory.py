"""`Memory`: the torque of friction that remembers, along a robot that is watched batch by batch."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.hysteresis import RigidLoad, Stop
from steelyard.parameters.terms import Terms, terms_named


class Memory:
    """The terms of `model` that remember, with their state; the others are left to a recursive model.

    Stops follow the positions. What goes by the load takes that of a robot at rest, and what goes by the rate of the
    torque is left out: accelerations of single samples are mostly noise.
    """

    def __init__(self, model: Model) -> None:
        self.given = model
        count = model.robot.inertial_count
        values, first = model.theta[count:], 0
        kept: list[tuple[bool, Array]] = []
        for term, _ in model.terms.placed:
            last = first + len(term.columns)
            kept.append((bool(term.history), values[first:last]))
            first = last
        remembering = tuple(t for t in model.terms.terms if t.history)
        held = [v for remembers, v in kept if remembers]
        self._terms = Terms(model.robot, remembering)
        self._model = Model(model.robot, self._terms, np.concatenate([np.zeros(count), *held]))
        self.plain = _plain(model, [v for remembers, v in kept if not remembers])
        stops = [c for a, c in self._terms.history if isinstance(a, Stop)]
        # Position and state of every stop; a position that is not a number: the next sample begins anew.
        self.state = np.column_stack([np.full(len(stops), np.nan), np.zeros(len(stops))])

    def begin(self) -> None:
        """Forget: the next sample follows a gap."""
        self.state[:, 0], self.state[:, 1] = np.nan, 0.0

    def torque(self, q: Array, dq: Array) -> Array:
        """Torque of these terms at consecutive samples, `(samples, joints)`, and the state moved on to the last one.

        Args:
            q: positions, rad or m.
            dq: velocities.
        """
        if not self._terms.terms:
            return np.zeros_like(q)
        still, postures = np.zeros_like(q), list(q.T)
        load = self.given.rigid_torque(q, dq, still) if self._terms.needs_rigid else still
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
        """The model of the `plain` parameters `theta` and the terms that remember, as they were given."""
        count = self.plain.robot.inertial_count
        both = Terms(self.plain.robot, (*self.plain.terms.terms, *self._terms.terms))
        return Model(self.plain.robot, both, np.concatenate([theta, self._model.theta[count:]]))


def _plain(model: Model, values: list[Array]) -> Model:
    """The model without terms that remember; joints whose dry friction was one of those get a Coulomb term of zero."""
    robot, count = model.robot, model.robot.inertial_count
    kept = [t for t in model.terms.terms if not t.history]
    dry = {c.name for t, c in model.terms.placed if t.dry and not t.history and t.on == "joint"}
    lost = {c.name for t, c in model.terms.placed if t.history and t.on == "joint"} - dry
    added = terms_named(robot, "coulomb", tuple(n for n in robot.joint_names if n in lost)) if lost else []
    bound = Terms(robot, (*kept, *added))
    theta = np.concatenate([model.theta[:count], *values])
    return Model(robot, bound, np.concatenate([theta, np.zeros(len(bound) + count - len(theta))]))
