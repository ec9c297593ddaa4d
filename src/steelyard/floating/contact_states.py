"""Contacts along a log: when a foot stands, where it slides, and which samples are usable.

The states come from a column, from a foot's force sensor, or from joint torques: the residual τ − Y θ of the described
robot, divided by the Jacobian of the foot in the joints of its leg, is the force of the ground. A contact closes when
its force exceeds the level of the free foot by six standard deviations of that level, and opens below three: the
scatter of the free foot contains the noise and the errors of the description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import LogError
from steelyard.floating.setup import CONTACT_ROWS, ContactColumns
from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass

if TYPE_CHECKING:
    from steelyard.floating.log_piece import LogPiece
    from steelyard.floating.motion import Preparer

# Step between samples of a foot's speed, in periods of the cut-off: the speed is smooth.
_SPEED_STEP = 0.1
# Duration of an impact of stiff feet [s]: feet slip and bounce around a change of contacts.
_IMPACT = 0.02
# A contact with a smaller share of its usual force is open.
_RELEASED = 0.1
# A contact closes and opens at these numbers of standard deviations of the free foot's force.
_CLOSES, _OPENS = 6.0, 3.0
# Rounds of free samples and the friction that they show, and the speed at which dry friction is smooth [rad/s].
_ROUNDS, _SLOW = 15, 0.05
# A foot slides if its speed exceeds this number of standard deviations of the speed at rest.
_SLIDES = 6.0


def _border(force: Array) -> float:
    """Return a force between those of the free foot and of the loaded one.

    A foot that shares the weight with all others carries about half of its largest force; the border is half of that.
    """
    low, high = np.quantile(force, (0.05, 0.95))
    return float(low + 0.25 * (high - low))


def _opens(force: Array) -> bool:
    """Whether a contact opens: it carries a small share of its usual force for some time."""
    low, high = np.quantile(force, (0.05, 0.95))
    return bool(low < _RELEASED * high)


def _free_level(force: Array) -> tuple[float, float]:
    """Return the force of the free foot and its standard deviation, from the lower mode.

    The scatter is that of the lower side, because edges of the contacts are on the upper one.
    """
    level, below = np.quantile(force[force < _border(force)], (0.5, 0.16))
    return float(level), float(level - below)


def _inside(flags: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Return flags whose neighbours up to `reach` samples away are true as well."""
    sums = np.concatenate([[0], np.cumsum(~flags)])
    at = np.arange(len(flags))
    return np.asarray(sums[np.minimum(at + reach + 1, len(flags))] == sums[np.maximum(at - reach, 0)])


def _friction(turn: Array, speed: Array, torque: Array, free: NDArray[np.bool_]) -> Array:
    """Return the torque of rotor, friction and offset of a joint, from samples of a free leg.

    Args:
        turn: Acceleration of the joint.
        speed: Velocity of the joint.
        torque: Torque that the links do not explain.
        free: Samples of the free leg.
    """
    from scipy.optimize import nnls

    one = np.ones(len(turn))
    table = np.column_stack([turn, speed, np.tanh(speed / _SLOW), one, -one])
    size = np.maximum(np.linalg.norm(table[free], axis=0), 1e-300)
    root = np.asarray(np.linalg.qr(np.column_stack([table[free] / size, torque[free]]), mode="r"))
    return np.asarray(table @ (nnls(root[:, :-1], root[:, -1])[0] / size))


class ContactStates:
    """States of the contacts of a robot.

    Args:
        preparer: Robot, contacts and filters.
    """

    def __init__(self, preparer: Preparer) -> None:
        self.preparer = preparer
        self.thresholds: dict[str, tuple[float, float]] = {}  # force at which a contact closes and opens

    def standing(self, joints: Sequence[str], piece: LogPiece) -> NDArray[np.bool_]:
        """Return which unknown contacts are closed, `(samples, contacts)`.

        Args:
            joints: Joints of the columns of the piece.
            piece: Piece of a log.
        """
        preparer = self.preparer
        out = np.ones((len(piece.t), len(preparer.unknown)), dtype=bool)
        forces: Array | None = None
        h = piece.period
        for k, contact in enumerate(preparer.unknown):
            if contact.state:
                out[:, k] = piece.channels[f"contact.{contact.frame}.state"][:, 0] > 0.5
            elif contact.force:
                out[:, k] = self._switched(contact, np.abs(piece.channels[f"contact.{contact.frame}.force"][:, 0]), h)
            elif contact.from_torques:
                forces = self._forces(joints, piece) if forces is None else forces
                out[:, k] = self._switched(contact, forces[:, k], h)
        return out

    def sentences(self) -> list[str]:
        """State how the contact phases were found."""
        out = []
        for contact in self.preparer.unknown:
            if contact.frame in self.thresholds:
                close, free = self.thresholds[contact.frame]
                source = "its force sensor" if contact.force else "the joint torques"
                unit = "" if contact.force else " N"
                levels = f"closed above {close:.3g}{unit}, open below {free:.3g}{unit}"
                out.append(f"Contact '{contact.frame}' by {source}: {levels}.")
        return out

    def _switched(self, contact: ContactColumns, force: Array, period: float) -> NDArray[np.bool_]:
        """Return when a contact is closed, by its force and a threshold with hysteresis."""
        if not _opens(force):
            return np.ones(len(force), dtype=bool)
        high = float(np.quantile(force, 0.95))
        border, (level, scatter) = _border(force), _free_level(force)
        loaded = force[force >= border]
        close, leave = level + _CLOSES * scatter, level + _OPENS * scatter
        # Rounded readings have no scatter, so the thresholds need a minimum: a free foot measures less than a tenth of
        # the usual force.
        close, leave = max(close, _RELEASED * high), max(leave, 0.5 * _RELEASED * high)
        # Where both modes overlap, the border separates best.
        close, leave = min(close, border), min(leave, 0.5 * (border + level))
        if float(np.median(loaded)) - level < _OPENS * scatter:
            raise LogError(
                f"The phases of contact '{contact.frame}' are not visible: its force is {high:.3g} in contact and "
                f"scatters by {scatter:.2g} in the air; name a column with its state (state = …)."
            )
        event = np.where(force > close, 1, np.where(force < leave, 0, -1))
        known = np.where(event >= 0, np.arange(len(event)), 0)
        last = np.maximum.accumulate(known)
        start = np.argmax(event >= 0)
        state = event[last]
        state[:start] = event[start]
        closed = np.asarray(state == 1)
        if len(closed) * period < 2.0 * _IMPACT * np.count_nonzero(closed[1:] != closed[:-1]):
            raise LogError(
                f"The force of contact '{contact.frame}' does not show its phases: they would be shorter than an "
                "impact; name a column with its state (state = …)."
            )
        self.thresholds[contact.frame] = (close, leave)
        return closed

    def _forces(self, joints: Sequence[str], piece: LogPiece) -> Array:
        """Compute the forces of all unknown contacts along gravity from joint torques, `(samples, contacts)`."""
        preparer, robot = self.preparer, self.preparer.robot
        if not robot.has_inertia:
            raise LogError(f"{robot.name} has no inertias, so torques do not show its contacts; name their states.")
        cutoff = min(0.5 / _IMPACT, 0.4 / piece.period)  # an edge within the time of an impact
        low = LowPass(cutoff, piece.period)
        m = preparer.coordinates(joints, piece, low)
        if m.missing.all():
            raise LogError("Without joint torques they do not show contacts; name the states of the contacts.")
        rest = robot.dynamics.inverse_dynamics(m.q, m.dq, m.ddq, robot.inertial_parameters) - m.torque
        up = -robot.gravity / max(float(np.linalg.norm(robot.gravity)), 1e-12)
        own = ~m.missing
        if preparer.floating is not None:
            own[list(preparer.floating.coordinates)] = False
        out = np.empty((len(piece.t), len(preparer.unknown)))
        for k, contact in enumerate(preparer.unknown):
            rows = list(CONTACT_ROWS[contact.kind])
            J = preparer.contact_jacobian(contact, m.q)[:, rows]
            leg = np.flatnonzero(own & np.any(J != 0.0, axis=(0, 1)))
            J = J[:, :, leg]
            # The smallest forces that explain the torques of the leg; near a stretched knee they stay finite.
            gram = J @ np.swapaxes(J, 1, 2)
            ridge = 1e-4 * np.trace(gram, axis1=1, axis2=2)[:, None, None] / len(rows) * np.eye(len(rows))
            inverse = np.linalg.solve(gram + ridge, J)
            vertical = np.einsum("tji,j->ti", preparer.contact_axes(contact, m.q), up)
            push = np.einsum("ti,tij->tj", vertical, inverse[:, :3])
            torque = rest[:, leg]
            out[:, k] = np.einsum("tj,tj->t", push, torque)
            if not _opens(out[:, k]):
                continue
            # Descriptions lack rotors and friction of the joints, which the free leg shows.
            speeds, turns = m.dq[:, leg], m.ddq[:, leg]
            for _ in range(_ROUNDS):
                out[:, k] = np.einsum("tj,tj->t", push, torque)
                level, scatter = _free_level(out[:, k])
                free = _inside(out[:, k] < level + scatter, int(np.ceil(_IMPACT / piece.period)))
                if not free.any():
                    break
                for i, joint in enumerate(leg):
                    torque[:, i] = rest[:, joint] + _friction(turns[:, i], speeds[:, i], -rest[:, joint], free)
            out[:, k] = np.einsum("tj,tj->t", push, torque)
        return out

    def usable(
        self, piece: LogPiece, standing: NDArray[np.bool_], q: Array, dq: Array, low_pass: LowPass
    ) -> NDArray[np.bool_]:
        """Return samples far from the ends, from changes of contacts, and without sliding feet.

        Args:
            piece: Piece of a log.
            standing: Closed unknown contacts, `(samples, contacts)`.
            q: Positions, `(samples, joints)`.
            dq: Velocities, `(samples, joints)`.
            low_pass: Filter of all signals.
        """
        count = self.preparer.count
        usable = np.ones(len(piece.t), dtype=bool)
        trim = max(low_pass.memory // 3, 1)
        usable[:trim] = usable[-trim:] = False
        count("the ends", int(len(usable) - usable.sum()))
        before = int(usable.sum())
        near = int(np.ceil(_IMPACT / low_pass.period))
        closed = np.column_stack([standing, self._loaded(piece)])
        for at in np.flatnonzero(np.any(closed[1:] != closed[:-1], axis=1)) + 1:
            usable[max(at - near, 0) : at + near] = False
        count("changes of contacts", before - int(usable.sum()))
        before = int(usable.sum())
        step = max(1, int(_SPEED_STEP / (low_pass.cutoff_hz * low_pass.period)))
        slides = self._sliding(standing, usable, q, dq, step)
        usable &= ~slides
        count("sliding feet", before - int(usable.sum()))
        return usable

    def _sliding(
        self, standing: NDArray[np.bool_], usable: NDArray[np.bool_], q: Array, dq: Array, step: int
    ) -> NDArray[np.bool_]:
        """Return samples at which a closed foot is much faster than at rest."""
        preparer = self.preparer
        out = np.zeros(len(q), dtype=bool)
        some = []
        for contact in preparer.unknown:
            rows = list(CONTACT_ROWS[contact.kind][:3])
            J = preparer.contact_jacobian(contact, q[::step])[:, rows]
            some.append((J @ dq[::step, :, None])[..., 0])
            if self._relative and preparer.floating is not None:  # in the axes of the base
                some[-1] = np.einsum("tji,tj->ti", J[:, :, list(preparer.floating.coordinates)[:3]], some[-1])
        if not some:
            return out
        speeds = np.stack(some, axis=1)
        if self._relative:
            # An IMU does not measure the velocity of the base: feet at rest have one common velocity relative to it.
            stands = standing[::step, :, None]
            count = stands.sum(axis=1)
            common = np.sum(speeds * stands, axis=1) / np.maximum(count, 1)
            speeds = np.where((count > 1)[:, None], speeds - common[:, None], 0.0)
        for k in range(len(preparer.unknown)):
            own = standing[:, k] & usable
            if own.sum() < 2:
                continue
            speed = np.repeat(np.linalg.norm(speeds[:, k], axis=1), step)[: len(q)]
            typical = float(np.median(speed[own]))
            # The speed of a foot at rest is noise of three normal components; its median is 1.54 σ.
            out |= own & (speed > _SLIDES * typical / 1.54)
        return out

    @property
    def _relative(self) -> bool:
        """Whether positions count relative to the base, because the velocity of the base is not measured."""
        base = self.preparer.mapping.base
        floats = self.preparer.floating is not None and base is not None
        return floats and not {"position", "linear_velocity"} & set(base.columns if base else ())

    def _loaded(self, piece: LogPiece) -> NDArray[np.bool_]:
        """Return whether each measured contact carries a force."""
        known = self.preparer.known
        out = np.ones((len(piece.t), len(known)), dtype=bool)
        for k, contact in enumerate(known):
            size = np.linalg.norm(piece.channels[f"contact.{contact.frame}.wrench"][:, :3], axis=1)
            low, high = np.quantile(size, (0.05, 0.95))
            if low < _RELEASED * high:  # otherwise the contact never opens
                out[:, k] = size > _RELEASED * high
        return out
