"""Strategies for hypothesis: any tree of revolute and prismatic joints."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from steelyard.robot import Joint, Link, Robot
from steelyard.robot.spatial import parameters_from_com, rotation_about


def _unit(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def _body(rng: np.random.Generator) -> np.ndarray:
    """A cloud of point masses: physically possible by construction."""
    points, masses = rng.normal(scale=0.2, size=(8, 3)), rng.uniform(0.1, 1.0, 8)
    mass = masses.sum()
    com = masses @ points / mass
    d = points - com
    inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, d, strict=True))
    return parameters_from_com(mass, com, inertia)


def make_tree(seed: int, links: int, mimic: bool = False, own_frames: bool = False, chain: bool = False) -> Robot:
    """A random tree: skew and aligned axes, branches, sideways gravity."""
    rng = np.random.default_rng(seed)
    joints: list[Joint] = []
    made: list[Link] = []
    for i in range(links):
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        aligned = rng.random() < 0.5
        axis = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0]) if aligned else _unit(rng)
        turn = np.pi / 2 * rng.integers(4) if aligned else rng.uniform(-3, 3)
        rotation = rotation_about(np.eye(3)[rng.integers(3)] if aligned else _unit(rng), turn)
        follows = mimic and joints and rng.random() < 0.4
        if follows:
            coordinate, ratio, offset = int(rng.integers(len(joints))), rng.uniform(-2, 2), rng.uniform(-1, 1)
        else:
            coordinate, ratio, offset = len(joints), 1.0, 0.0
            joints.append(Joint(f"j{i}", kind))
        frame = {}
        if own_frames:
            frame = {"frame_rotation": rotation_about(_unit(rng), 1.0), "frame_translation": rng.normal(size=3)}
        parent = i - 1 if chain else int(rng.integers(-1, i)) if i else -1
        made.append(
            Link(f"l{i}", f"j{i}", kind, parent, rotation, rng.normal(scale=0.4, size=3), axis, coordinate, ratio,
                 offset, _body(rng), **frame)
        )  # fmt: skip
    return Robot(f"tree{seed}", tuple(joints), tuple(made), gravity=9.81 * _unit(rng))


def trees(max_links: int = 7, **options: bool) -> st.SearchStrategy[Robot]:
    return st.builds(
        make_tree, st.integers(0, 10**6), st.integers(1, max_links), **{k: st.just(v) for k, v in options.items()}
    )
