"""Reference bodies, which decide parameters that the data do not determine, and priors from the description."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.estimation.estimate import Prior
from steelyard.estimation.linear._free import prior_theta
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import Terms, nominal_terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import inertial_parameters, move_parameters, pseudo_inertia


def nominal_prior(robot: Robot, terms: Terms, rotors_stated: bool = False) -> Prior | None:
    """Create the prior for a fit of rows: inertias and rotors of the description; other terms are unknown.

    If a rotor is not described, that of a prismatic joint is zero, because it cannot be distinguished from the sliding
    mass, which belongs to the links. A revolute joint has a gear, and its rotor may be larger than errors of the
    link's inertia.

    A link described as massless stays light in a physically possible fit. A described but impossible body is replaced
    by a default body, with a note (`reference_bodies` does both). A link without inertia is unknown; but if the joints
    on both ends meet in one point and other links are described, it counts as massless: URDF uses such links for
    joints with several axes.

    Args:
        robot: The robot.
        terms: Joint terms.
        rotors_stated: Whether the user requested the terms by name; then rotors of unknown size are estimated
            everywhere.
    """
    count = robot.inertial_count + len(terms)
    theta, known = np.zeros(count), np.zeros(count, dtype=bool)
    described = any(link.inertia is not None and link.inertia.any() for link in robot.links)
    for k, link in enumerate(robot.links):
        own = slice(10 * k, 10 * k + 10)
        if link.inertia is not None:
            theta[own] = link.inertia
            known[own] = True
        elif described and _has_zero_length(robot, k):
            known[own] = True
    stated, values = nominal_terms(robot)
    described_values = dict(zip(stated.names, values.tolist(), strict=True))
    kinds = terms.per_parameter(lambda term, place: (term.inertial, place.revolute))
    for k, (name, (rotor, revolute)) in enumerate(zip(terms.names, kinds, strict=True), start=robot.inertial_count):
        if rotor and (name in described_values or not (revolute or rotors_stated)):
            theta[k], known[k] = described_values.get(name, 0.0), True
    return Prior(theta, tuple(known.tolist())) if known.any() else None


def described_prior(robot: Robot, terms: Terms) -> Prior | None:
    """Create the prior for a filter: that of `nominal_prior`, and values of terms from the description.

    A fit of rows does not need the terms: its data determine friction well, and a guess would bias it.

    Args:
        robot: The robot.
        terms: Joint terms.
    """
    bodies = nominal_prior(robot, terms, rotors_stated=True)
    stated, values = nominal_terms(robot)
    described_values = dict(zip(stated.names, values.tolist(), strict=True))
    if bodies is None or not described_values:
        return bodies
    count = robot.inertial_count
    theta, known = bodies.theta.copy(), list(bodies.mask)
    for k, name in enumerate(terms.names, start=count):
        if name in described_values:
            theta[k], known[k] = described_values[name], True
    return Prior(theta, tuple(known))


def _has_zero_length(robot: Robot, k: int) -> bool:
    """Whether a link carries others, all at its own joint."""
    children = [link for link in robot.links if link.parent == k]
    return bool(children) and all(not np.any(np.abs(link.translation) > 1e-9) for link in children)


# Thickness of a rod over its length; smallest size of a link relative to the longest.
_THICKNESS = 0.2
_MIN_LENGTH = 0.3
# Bodies flatter than this (smallest eigenvalue of the pseudo-inertia, its diagonal scaled to one) get a part of the
# default body, because a reference on the boundary has no inverse.
_MIN_ROUNDNESS = 1e-4
_DEFAULT_SHARE = 0.01
# Factor on the default body for links described as massless.
_MASSLESS_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class ReferenceBodies:
    """A possible body per link, shape (links, 10), and notes on replaced ones."""

    bodies: Array
    notes: tuple[str, ...]


def reference_bodies(base: BaseParameters, prior: Prior | None, R: Array, y: Array) -> ReferenceBodies:
    """Choose a reference body per link: that of the prior if it is possible, else a default body of fitted density.

    Args:
        base: Base parameters.
        prior: Prior with the bodies.
        R: Weighted triangle over `base`.
        y: Right side of the triangle; `R` and `y` determine the density if no link is known.
    """
    robot = base.robot
    count = len(robot.links)
    default = default_bodies(robot)
    described_values = prior_theta(base, prior)[: 10 * count].reshape(count, 10)
    mask = np.zeros(len(base.parameters), dtype=bool) if prior is None else np.array(prior.mask)
    known = np.array([bool(own.all()) for own in mask[: 10 * count].reshape(count, 10)])
    empty = known & np.array([not b.any() for b in described_values])
    possible = known & np.array([_roundness(b) > -1e-9 for b in described_values])
    if possible.any():
        density = float(described_values[possible, 0].sum() / default[possible, 0].sum())
    else:
        density = _fitted_density(base, default, R, y)
    bodies, notes = density * default, []
    for k, link in enumerate(robot.links):
        if empty[k]:
            bodies[k] *= _MASSLESS_SHARE
        elif possible[k]:
            bodies[k] = described_values[k]
            if _roundness(described_values[k]) < _MIN_ROUNDNESS:
                bodies[k] = described_values[k] + _DEFAULT_SHARE * described_values[k, 0] / default[k, 0] * default[k]
        elif known[k]:
            notes.append(f"The nominal inertia of link '{link.name}' is no possible body; a default body replaces it.")
    return ReferenceBodies(bodies, tuple(notes))


def default_bodies(robot: Robot) -> Array:
    """Create default bodies: rods of equal density from each joint of `robot` to the next, 1 kg in total, in link
    frames."""
    reach = _spans(robot)
    lengths = np.array([np.linalg.norm(t) for t in reach])
    longest = float(lengths.max()) if lengths.max() > 0.0 else 1.0
    size = np.maximum(lengths, _MIN_LENGTH * longest)
    masses = size**2 / np.sum(size**2)
    out = np.empty((len(reach), 10))
    for k, (link, t) in enumerate(zip(robot.links, reach, strict=True)):
        second = np.outer(t, t) / 12.0 + (_THICKNESS * size[k]) ** 2 * np.eye(3)
        second_at_joint = masses[k] * (second + np.outer(t, t) / 4.0)
        body = inertial_parameters(
            masses[k], 0.5 * masses[k] * t, np.trace(second_at_joint) * np.eye(3) - second_at_joint
        )
        rotation = link.frame_rotation.T
        out[k] = move_parameters(body, rotation, -rotation @ link.frame_translation)
    return out


def _spans(robot: Robot) -> list[Array]:
    """Vectors from each joint to the mean of its child joints; zero for the last links."""
    children: list[list[Array]] = [[] for _ in robot.links]
    for link in robot.links:
        if link.parent >= 0:
            children[link.parent].append(link.translation)
    return [np.mean(c, axis=0) if c else np.zeros(3) for c in children]


def _fitted_density(base: BaseParameters, default: Array, R: Array, y: Array) -> float:
    """Factor on the default bodies that explains the torques best together with the terms."""
    shape = np.zeros(len(base.parameters))
    shape[: default.size] = default.ravel()
    columns = np.column_stack([R @ base.matrix @ shape, (R @ base.matrix)[:, default.size :]])
    lengths = np.linalg.norm(columns, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    factor = float(np.linalg.lstsq(columns / scale, y, rcond=1e-10)[0][0] / scale[0])
    if factor > 0.0:
        return factor
    return float(np.linalg.norm(y) / scale[0]) or 1.0


def _roundness(body: Array) -> float:
    """Smallest eigenvalue of the pseudo-inertia with its diagonal scaled to one; negative for impossible bodies."""
    P = pseudo_inertia(body)
    diagonal = np.diag(P)
    if np.any(diagonal <= 0.0) or not np.all(np.isfinite(P)):
        return -1.0
    scale = 1.0 / np.sqrt(diagonal)
    return float(np.linalg.eigvalsh(P * scale * scale[:, None])[0])
