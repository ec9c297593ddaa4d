"""`FloatingMotion`: a gap-free piece of a log with the motion of all coordinates, known forces and contacts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.frame_motion import FrameJacobian, StackedJacobian
from steelyard.dynamics.projected_regressor import ProjectedRegressor
from steelyard.errors import LogError
from steelyard.floating.base_motion import body_motion, free_motion, look_at_base
from steelyard.floating.contact_states import ContactStates
from steelyard.floating.log_piece import LogPiece
from steelyard.floating.sensor_errors import SensorErrors
from steelyard.floating.setup import CONTACT_ROWS, ContactColumns, FloatingMapping
from steelyard.ground.arrays import Array
from steelyard.loops.branch import LoopMotion
from steelyard.loops.mechanism import Mechanism
from steelyard.robot.free import free_links, free_mask
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Link, Robot
from steelyard.signals.filters import LowPass, derivative
from steelyard.signals.log import Finding, Log
from steelyard.signals.read import read_log
from steelyard.signals.table import read_table

# The low-pass spreads a force over this many periods of its cut-off on either side, up to two percent of it.
_REACH = 1.5


class OpenLoopError(LogError):
    """The closed loops of a robot do not close with the positions of a log."""


@dataclass(frozen=True, eq=False)
class FloatingMotion:
    """A gap-free piece of a log, smooth and on a uniform clock.

    Attributes:
        t: Times [s].
        q, dq, ddq: Motion of all coordinates of the robot, `(samples, joints)`.
        force: Known generalised forces: torques of the drives, known contacts; zero elsewhere.
        torque: The torques of the drives alone.
        missing: Flags of the coordinates without a measured torque, `(joints,)`.
        standing: Unknown contacts that are closed, or whose force reaches the sample through the filter, `(samples,
            contacts)`.
        usable: Samples away from changes of contacts and without sliding feet.
        low_pass: Filter of all signals.
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    force: Array
    torque: Array
    missing: NDArray[np.bool_]
    standing: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    low_pass: LowPass


@dataclass(frozen=True, eq=False)
class FilteredSignals:
    """Filtered signals of all coordinates of a robot.

    Attributes:
        q, dq, ddq, torque: Motion and torques of the drives, `(samples, joints)`; zero if they are not measured.
        missing: Flags of the coordinates without a measured torque, `(joints,)`.
        rotation: Orientation of the base in the world, `(samples, 3, 3)`; None: not measured.
    """

    q: Array
    dq: Array
    ddq: Array
    torque: Array
    missing: NDArray[np.bool_]
    rotation: Array | None


@dataclass(eq=False)
class Preparer:
    """Prepares logs of one robot.

    Attributes:
        robot: The robot.
        mapping: Meaning of the columns.
        findings: Remarks on the prepared logs.
        left_out: Number of samples left out, by reason.
        errors: Delays and biases that are subtracted from the signals.
    """

    robot: Robot
    mapping: FloatingMapping
    errors: SensorErrors = field(default_factory=SensorErrors)

    def __post_init__(self) -> None:
        self.findings: list[Finding] = []
        self.left_out: dict[str, int] = {}
        self.unknown = tuple(c for c in self.mapping.contacts if not c.known)
        self.known = tuple(c for c in self.mapping.contacts if c.known)
        self.jacobians = {
            c.frame: FrameJacobian(self.robot, self.robot.frame(c.frame), c.radius) for c in self.mapping.contacts
        }
        self.contact_states = ContactStates(self)
        self._stacked: dict[tuple[int, ...], StackedJacobian] = {}
        self._projected: dict[Dynamics, ProjectedRegressor] = {}
        self.mechanism = self._mechanism() if self.robot.loops else None
        self.pose: Array | None = None  # pose of the last sample: start of the next piece
        self.gap = 0.0
        if self.mechanism is not None:
            self.floating = None
            self.others: list[Link] = []
            return
        floating = [link for link in free_links(self.robot) if link.kind == "floating"]
        self.others = [link for link in free_links(self.robot) if link.kind != "floating"]
        if len(floating) > 1:
            raise LogError(
                f"{self.robot.name}: logs of several floating joints cannot be read yet; fit their rows with "
                "identify_bodies."
            )
        for link in self.others:
            if link.joint not in self.mapping.free:
                what = "orientation" if link.kind == "spherical" else "position and angle"
                raise LogError(
                    f"{self.robot.name}: joint '{link.joint}' is {link.kind}, but the mapping has no table "
                    f"[free.{link.joint}]; state the columns of its {what}."
                )
        self.floating = floating[0] if floating else None
        if self.floating is not None and self.mapping.base is None:
            raise LogError(
                f"{self.robot.name}: its base floats, but the mapping has no table [base]; state the columns of its "
                "position and orientation, or of an IMU."
            )
        if self.floating is not None and self.floating.parent >= 0:
            raise LogError(f"{self.robot.name}: joint '{self.floating.joint}' floats, but is not at the root.")

    def _mechanism(self) -> Mechanism:
        """Return the closed loops with the joints whose columns the mapping names."""
        if self.mapping.base is not None or self.mapping.contacts:
            raise LogError(
                f"{self.robot.name}: closed loops together with a floating base or contacts are not supported yet; "
                "lock the loops' joints, or leave out [base] and [contacts]."
            )
        driven = [n for n in self.mapping.log.joints or self.robot.actuated if n not in self.mapping.passive]
        return Mechanism(self.robot, [*driven, *self.mapping.passive])

    def read(self, path: Any) -> Log:
        """Read the driven joints of a log at `path`, with base and contacts as channels."""
        if isinstance(path, Log):
            return path
        drives = self.mapping.driven(self.robot)
        if all(free_mask(drives)):
            return self._without_joints(path)
        return read_log(path, drives, self.mapping.log)

    def _without_joints(self, path: Any) -> Log:
        """Read a log of a single body, which has channels only."""
        table, mapping = read_table(path), self.mapping.log
        time = mapping.time or next((n for n in ("t", "time", "t_s", "timestamp") if n in table.names), None)
        if time is None and mapping.rate is None:
            raise LogError(f"{path}: the time is missing; name its column in the mapping, or state the rate.")
        t = np.arange(len(table)) / mapping.rate if time is None and mapping.rate else table.numbers(str(time))
        channels = {
            name: np.column_stack([table.numbers(c) for c in columns]) for name, columns in mapping.channels.items()
        }
        return Log((), t - t[0], np.zeros((len(t), 0)), channels=channels, meta={"source": str(path)})

    def motions(self, log: Log, cutoff_hz: float) -> Iterator[FloatingMotion]:
        """Prepare the pieces of a log.

        Args:
            log: Log as `read` returns it.
            cutoff_hz: Cut-off of the low-pass of all signals [Hz].
        """
        for start, stop in log.segments:
            piece = LogPiece.of(log, start, stop)
            if piece is not None and len(piece.t) > 8 and cutoff_hz < 0.45 / piece.period:
                low_pass = LowPass(cutoff_hz, piece.period)
                if len(piece.t) > low_pass.memory:
                    yield self._motion(log.joints, piece, low_pass)

    def coordinates(self, joints: Sequence[str], piece: LogPiece, low_pass: LowPass) -> FilteredSignals:
        """Filter the signals of all coordinates of a piece.

        Args:
            joints: Joints of the columns of the piece.
            piece: Piece of a log.
            low_pass: Filter of all signals.
        """
        robot, h, n = self.robot, low_pass.period, len(piece.t)
        q, dq, ddq, torque = (np.zeros((n, robot.dof)) for _ in range(4))
        missing = np.zeros(robot.dof, dtype=bool)
        columns = _as_slice([robot.joint_index(name) for name in joints])
        if len(joints):
            smooth = low_pass(piece.q)
            # Each signal passes the filter exactly once: force and acceleration must balance at impacts.
            rate = derivative(smooth, h) if piece.dq is None else low_pass(piece.dq)
            q[:, columns], dq[:, columns], ddq[:, columns] = smooth, rate, derivative(rate, h)
            if piece.tau is None:
                missing[columns] = True
            else:
                torque[:, columns] = self.errors.torque_at(low_pass(piece.tau), h)
                missing[columns] = ~np.array(robot.torque_used)[columns]
        for name in self.mapping.passive:
            k = robot.joint_index(name)
            q[:, k] = low_pass(piece.channels[f"passive.{name}"][:, 0])
            dq[:, k] = derivative(q[:, k], h)
            ddq[:, k] = derivative(dq[:, k], h)
        for link in self.others:
            stated = self.mapping.free[link.joint]
            free = {k: piece.channels[f"free.{link.joint}.{k}"] for k in stated.columns}
            places = _as_slice(link.coordinates)
            q[:, places], dq[:, places], ddq[:, places] = free_motion(link, free, stated, low_pass)
        rotation = None
        if self.floating is not None and self.mapping.base is not None:
            signals = {k: piece.channels[f"base.{k}"] for k in self.mapping.base.columns}
            if not self.findings:
                self.findings += look_at_base(signals, self.mapping.base, robot.gravity, low_pass)
            if "accelerometer" in signals:
                signals["accelerometer"] = signals["accelerometer"] - self.errors.bias
            base = body_motion(signals, self.mapping.base, robot.gravity, low_pass)
            own = _as_slice(self.floating.coordinates)
            q[:, own], dq[:, own], ddq[:, own] = (self.errors.base_at(x, h) for x in (base.q, base.dq, base.ddq))
            rotation = base.rotation
        return FilteredSignals(q, dq, ddq, torque, missing, rotation)

    def _motion(self, joints: Sequence[str], piece: LogPiece, low_pass: LowPass) -> FloatingMotion:
        motion = self.coordinates(joints, piece, low_pass)
        q, dq, ddq, torque, rotation = motion.q, motion.dq, motion.ddq, motion.torque, motion.rotation
        force = torque.copy() if self.known else torque
        for contact in self.known:
            force += self._known_force(contact, piece, low_pass, q, rotation is not None)
        closed = None
        if self.mechanism is not None:
            closed = self._complete(piece, q, dq, ddq)
        standing = self.contact_states.standing(joints, piece)
        usable = self.contact_states.usable(piece, standing, q, dq, low_pass)
        if closed is not None:
            before = int(usable.sum())
            usable &= closed.closed
            self.count("poses at which the loops do not close", before - int(usable.sum()))
            before = int(usable.sum())
            usable &= closed.regular
            self.count("singular poses", before - int(usable.sum()))
        reach = int(np.ceil(_REACH / (low_pass.cutoff_hz * low_pass.period)))
        standing = _widened(standing, reach)
        return FloatingMotion(piece.t, q, dq, ddq, force, torque, motion.missing, standing, usable, low_pass)

    def _complete(self, piece: LogPiece, q: Array, dq: Array, ddq: Array) -> LoopMotion:
        """Fill in the motion of the joints without encoders."""
        mechanism = self.mechanism
        assert mechanism is not None
        own = mechanism.measured
        motion = mechanism.complete(q[:, own], dq[:, own], ddq[:, own], self.pose)
        if not motion.closed.any():
            raise OpenLoopError(_does_not_close(mechanism, q, piece.t, motion))
        q[:], dq[:], ddq[:] = motion.q, motion.dq, motion.ddq
        self.pose = motion.q[np.flatnonzero(motion.closed)[-1]]
        self.gap = max(self.gap, float(motion.gap[motion.closed].max()))
        return motion

    def contact_jacobian(self, contact: ContactColumns, q: Array) -> Array:
        """Compute the Jacobian of the point of a contact in the axes of its frame, `(samples, 6, joints)`.

        Args:
            contact: Contact; a round foot touches the ground at its lowest point.
            q: Positions, `(samples, joints)`.
        """
        return self.jacobians[contact.frame](q)

    def closed_rows(self, closed: Sequence[int], q: Array) -> Array:
        """Compute the rows of the Jacobians of closed unknown contacts, `(samples, rows, joints)`.

        Args:
            closed: Indices of the contacts.
            q: Positions, `(samples, joints)`.
        """
        return self._stacked_jacobian(tuple(closed))(q)

    def _stacked_jacobian(self, closed: tuple[int, ...]) -> StackedJacobian:
        if closed not in self._stacked:
            own = [self.unknown[k] for k in closed]
            rows = [CONTACT_ROWS[c.kind] for c in own]
            self._stacked[closed] = StackedJacobian([self.jacobians[c.frame] for c in own], rows)
        return self._stacked[closed]

    def projected_regressor(self, dynamics: Dynamics) -> ProjectedRegressor:
        """Return the rows of `dynamics` without the forces of unknown contacts, traced once."""
        if dynamics not in self._projected:
            stacked = self._stacked_jacobian(tuple(range(len(self.unknown))))
            self._projected[dynamics] = ProjectedRegressor(dynamics, stacked)
        return self._projected[dynamics]

    def jacobian_rows(self, closed: Sequence[int]) -> list[int]:
        """Return the rows of `closed` contacts in the Jacobian of all unknown contacts."""
        ends = np.cumsum([0, *(len(CONTACT_ROWS[c.kind]) for c in self.unknown)]).tolist()
        return [row for k in closed for row in range(ends[k], ends[k + 1])]

    def contact_axes(self, contact: ContactColumns, q: Array) -> Array:
        """Compute the orientation of the frame of a contact in the world, `(samples, 3, 3)`.

        Args:
            contact: Contact.
            q: Positions, `(samples, joints)`.
        """
        place = self.robot.frame(contact.frame)
        return np.asarray(link_poses(self.robot, q)[0][:, place.host] @ place.rotation)

    def _known_force(
        self, contact: ContactColumns, piece: LogPiece, low_pass: LowPass, q: Array, oriented: bool
    ) -> Array:
        """Return the generalised force of a measured wrench."""
        wrench = contact.sign * piece.channels[f"contact.{contact.frame}.wrench"]
        wrench = np.hstack([wrench, np.zeros((len(wrench), 6 - wrench.shape[1]))])
        if contact.axes != "frame":
            if contact.axes == "world" and self.floating is not None and not oriented:
                raise LogError(
                    f"The wrench of contact '{contact.frame}' is in world axes; name the orientation of the base."
                )
            turn = self.contact_axes(contact, q)
            if contact.axes == "base" and self.floating is not None:
                root = link_poses(self.robot, q)[0][:, self.robot.links.index(self.floating)]
                turn = np.swapaxes(root, 1, 2) @ turn
            wrench = np.hstack([np.einsum("tji,tj->ti", turn, wrench[:, k : k + 3]) for k in (0, 3)])
        # The filter acts on the generalised force: during an impact the force changes faster than the posture.
        return low_pass(np.einsum("tki,tk->ti", self.contact_jacobian(contact, q), wrench))

    def count(self, reason: str, samples: int) -> None:
        """Add to the samples that are left out.

        Args:
            reason: Why they are left out.
            samples: Number of left-out samples.
        """
        self.left_out[reason] = self.left_out.get(reason, 0) + max(samples, 0)


def _as_slice(columns: Sequence[int]) -> slice | list[int]:
    """Return consecutive columns as a slice, which NumPy copies several times faster."""
    ahead = list(range(columns[0], columns[0] + len(columns))) if len(columns) else []
    return slice(ahead[0], ahead[-1] + 1) if ahead and ahead == list(columns) else list(columns)


def _does_not_close(mechanism: Mechanism, q: Array, t: Array, motion: LoopMotion) -> str:
    """Describe the gap of the loops at the first sample, and the nearest measured position that closes it."""
    structure = mechanism.structure
    near, _ = structure.closed(motion.q[:1])
    shift = (near[0] - q[0])[mechanism.measured]
    worst = int(np.argmax(np.abs(shift) / structure.unit[mechanism.measured]))
    joint = mechanism.robot.joints[mechanism.measured[worst]]
    # Solved joints at the smallest gap, with fixed measured joints.
    text, _ = structure.gap_text(mechanism.nearest(q[0][mechanism.measured], motion.q[0]))
    return (
        f"{mechanism.robot.name}: {text} at t = {t[0]:.6g} s with the positions of the log; it closes if "
        f"'{joint.name}' is {shift[worst]:+.3g} {joint.unit} from there: check unit, sign and zero of this joint "
        "(offset in the mapping), the frames of the loop, or the start of its branch (start = {joint = …})."
    )


def _widened(flags: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Extend the true stretches of each column by `reach` samples on either side."""
    sums = np.cumsum(np.vstack([np.zeros((1, flags.shape[1]), dtype=int), flags]), axis=0)
    at = np.arange(len(flags))
    return np.asarray(sums[np.minimum(at + reach + 1, len(flags))] > sums[np.maximum(at - reach, 0)])
