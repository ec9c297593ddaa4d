"""Reference bodies: what each link is taken for where the data do not show it."""

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
    """The inertias of `robot`'s description, link by link where they are given, and its rotors.

    Of the other `terms` nothing is known. A rotor is what the description states. Where it states none, the rotor of a
    slide is zero: its motion cannot tell it from the mass that slides, and that mass belongs to the links. A joint that
    turns is driven through a gear, and its rotor may well be larger than what the description lacks of the link. With
    `rotors_stated` the terms were asked for by name, and rotors of unknown size are looked for everywhere.

    A link that is stated to weigh nothing is known to: in a physically possible fit it stays light. One that is stated
    to be an impossible body gets a default body in its place there, and a note (`reference_bodies` does both). One of
    which nothing is stated is unknown; but where the joints on both its ends meet in one point, while other links are
    described, it is taken for what URDF writes joints of several axes with: a frame that weighs nothing.
    """
    count = robot.inertial_count + len(terms)
    theta, known = np.zeros(count), np.zeros(count, dtype=bool)
    described = any(link.inertia is not None and link.inertia.any() for link in robot.links)
    for k, link in enumerate(robot.links):
        own = slice(10 * k, 10 * k + 10)
        if link.inertia is not None:
            theta[own] = link.inertia
            known[own] = True
        elif described and _has_no_length(robot, k):
            known[own] = True
    stated, values = nominal_terms(robot)
    given = dict(zip(stated.names, values.tolist(), strict=True))
    kinds = terms.per_parameter(lambda term, place: (term.inertial, place.revolute))
    for k, (name, (rotor, revolute)) in enumerate(zip(terms.names, kinds, strict=True), start=robot.inertial_count):
        if rotor and (name in given or not (revolute or rotors_stated)):
            theta[k], known[k] = given.get(name, 0.0), True
    return Prior(theta, tuple(known.tolist())) if known.any() else None


def described_prior(robot: Robot, terms: Terms) -> Prior | None:
    """What `nominal_prior` knows, and the `terms` whose values `robot`'s description states: what a filter starts from.

    A fit of rows does not ask for them: its data show friction well, and a guess of it would only draw it.
    """
    bodies = nominal_prior(robot, terms, rotors_stated=True)
    stated, values = nominal_terms(robot)
    given = dict(zip(stated.names, values.tolist(), strict=True))
    if bodies is None or not given:
        return bodies
    count = robot.inertial_count
    theta, known = bodies.theta.copy(), list(bodies.mask)
    for k, name in enumerate(terms.names, start=count):
        if name in given:
            theta[k], known[k] = given[name], True
    return Prior(theta, tuple(known))


def _has_no_length(robot: Robot, k: int) -> bool:
    """Whether a link carries others, all of them at its own joint."""
    carried = [link for link in robot.links if link.parent == k]
    return bool(carried) and all(not np.any(np.abs(link.translation) > 1e-9) for link in carried)


# A rod from joint to joint is as thick as a fifth of its length; a link whose joints meet is a ball of this part of the
# longest link.
_THICKNESS = 0.2
_SHORTEST = 0.3
# Bodies flatter than this (smallest eigenvalue of the pseudo-inertia, its diagonal scaled to one) are rounded out by
# a part of the default body: at the very boundary a reference has no inverse.
_FLAT = 1e-4
_ROUND = 0.01
# A link that is stated to weigh nothing (a frame drawn as a link) stays light.
_LIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class ReferenceBodies:
    """A possible body per link, `(links, 10)`, and what had to be done to the given ones."""

    bodies: Array
    notes: tuple[str, ...]


def reference_bodies(base: BaseParameters, prior: Prior | None, R: Array, y: Array) -> ReferenceBodies:
    """The `prior`'s links where they are possible bodies; others are default bodies of a density that fits.

    `R`, `y`: the weighted triangle over `base`, from which the density is taken where no link is known.
    """
    robot = base.robot
    count = len(robot.links)
    default = default_bodies(robot)
    given = prior_theta(base, prior)[: 10 * count].reshape(count, 10)
    mask = np.zeros(len(base.parameters), dtype=bool) if prior is None else np.array(prior.mask)
    known = np.array([bool(own.all()) for own in mask[: 10 * count].reshape(count, 10)])
    empty = known & np.array([not b.any() for b in given])
    possible = known & np.array([_roundness(b) > -1e-9 for b in given])
    if possible.any():
        density = float(given[possible, 0].sum() / default[possible, 0].sum())
    else:
        density = _fitted_density(base, default, R, y)
    bodies, notes = density * default, []
    for k, link in enumerate(robot.links):
        if empty[k]:
            bodies[k] *= _LIGHT
        elif possible[k]:
            bodies[k] = given[k]
            if _roundness(given[k]) < _FLAT:
                bodies[k] = given[k] + _ROUND * given[k, 0] / default[k, 0] * default[k]
        elif known[k]:
            notes.append(
                f"The nominal inertia of link '{link.name}' is no possible body; a default body stands in for it."
            )
    return ReferenceBodies(bodies, tuple(notes))


def default_bodies(robot: Robot) -> Array:
    """Rods from each joint of `robot` to the next, of one density, in the links' own frames; 1 kg all together."""
    reach = _spans(robot)
    lengths = np.array([np.linalg.norm(t) for t in reach])
    longest = float(lengths.max()) if lengths.max() > 0.0 else 1.0
    size = np.maximum(lengths, _SHORTEST * longest)
    masses = size**2 / np.sum(size**2)
    out = np.empty((len(reach), 10))
    for k, (link, t) in enumerate(zip(robot.links, reach, strict=True)):
        second = np.outer(t, t) / 12.0 + (_THICKNESS * size[k]) ** 2 * np.eye(3)
        about = masses[k] * (second + np.outer(t, t) / 4.0)
        body = inertial_parameters(masses[k], 0.5 * masses[k] * t, np.trace(about) * np.eye(3) - about)
        turned = link.frame_rotation.T
        out[k] = move_parameters(body, turned, -turned @ link.frame_translation)
    return out


def _spans(robot: Robot) -> list[Array]:
    """From each joint to the mean of the joints it carries; the last links go on as far as a third of their arm."""
    children: list[list[Array]] = [[] for _ in robot.links]
    for link in robot.links:
        if link.parent >= 0:
            children[link.parent].append(link.translation)
    return [np.mean(c, axis=0) if c else np.zeros(3) for c in children]


def _fitted_density(base: BaseParameters, default: Array, R: Array, y: Array) -> float:
    """The factor on the default bodies that explains the torques best, next to the terms."""
    shape = np.zeros(len(base.parameters))
    shape[: default.size] = default.ravel()
    columns = np.column_stack([R @ base.matrix @ shape, (R @ base.matrix)[:, default.size :]])
    lengths = np.linalg.norm(columns, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    found = float(np.linalg.lstsq(columns / scale, y, rcond=1e-10)[0][0] / scale[0])
    if found > 0.0:
        return found
    return float(np.linalg.norm(y) / scale[0]) or 1.0


def _roundness(body: Array) -> float:
    """Smallest eigenvalue of the pseudo-inertia, its diagonal scaled to one; negative for impossible bodies."""
    P = pseudo_inertia(body)
    diagonal = np.diag(P)
    if np.any(diagonal <= 0.0) or not np.all(np.isfinite(P)):
        return -1.0
    scale = 1.0 / np.sqrt(diagonal)
    return float(np.linalg.eigvalsh(P * scale * scale[:, None])[0])
