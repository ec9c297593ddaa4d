"""A robot in space on a page: bodies, ellipsoids of inertia and motions, drawn by the page's own script (robot.js)."""

from __future__ import annotations

import base64
import gzip
import html
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.report.elements import SCENE_DATA, Html, text
from steelyard.report.plots.figure import BLUE, GREY, ORANGE, SKY, VERMILLION
from steelyard.report.plots.series import in_steps

# What draws it on a page, in the order in which they need each other.
ROBOT_SCRIPTS = ("matrix.js", "solids.js", "gl.js", "shadow.js", "orbit.js", "robot.js", "player.js")
ShapeKind = Literal["mesh", "box", "cylinder", "sphere", "capsule"]
# Postures of a motion that a page has; between them it goes straight.
_POSTURES = 600
# Vertices are whole multiples of this part of a mesh's extent.
_STEPS = 4000
# What ellipsoids are coloured by: the error of a body's moments as a part of them, up to …
KNOWN_TO = ((0.03, BLUE, "to 3 %"), (0.1, SKY, "to 10 %"), (0.3, ORANGE, "to 30 %"), (np.inf, VERMILLION, "worse"))
UNSEEN = GREY, "not by itself"


@dataclass(frozen=True, eq=False)
class Shape:
    """A body to look at, fixed to the joint frame of a link (−1: the base) at `rotation` and `translation`.

    `size` (m) is of a box its three edges, of a cylinder (along z) and a capsule (from the origin along z) radius and
    length, of a sphere its radius; a mesh has `vertices` (m) and `triangles` instead.
    """

    link: int
    kind: ShapeKind
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))
    size: tuple[float, ...] = ()
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The ellipsoid of even density with the mass and the inertia of a body: centre of mass, semi-axes (m) along the
    columns of `rotation`; in the joint frame of its link."""

    centre: Array
    axes: Array
    rotation: Array

    @classmethod
    def of(cls, mass: float, centre: Array, second_moments: Array) -> Ellipsoid | None:
        """Of a `mass` (kg) with its `centre` (m) and `second_moments` ∫ x xᵀ dm about it, kg m²; or None."""
        if not mass > 0.0 or not np.all(np.isfinite(second_moments)):
            return None
        values, vectors = np.linalg.eigh(second_moments)
        # An even ellipsoid has m a²/5 along each axis; what is flat, or less, is drawn as a thin disc.
        axes = np.sqrt(np.maximum(5.0 * values / mass, 1e-6))
        turned = vectors if np.linalg.det(vectors) > 0.0 else vectors * [1.0, 1.0, -1.0]
        return cls(np.asarray(centre, dtype=float), axes, turned)


@dataclass(frozen=True, eq=False)
class Body:
    """What is known of a link: ellipsoids as `found` and `nominal` (None: unknown), and the relative `error` of what
    the motion shows of it (None: nothing of it by itself), by which it is coloured."""

    link: int
    found: Ellipsoid | None
    nominal: Ellipsoid | None = None
    error: float | None = None

    @property
    def level(self) -> tuple[str, str]:
        """Colour and words."""
        if self.error is None:
            return UNSEEN
        return next((colour, words) for most, colour, words in KNOWN_TO if not self.error > most)


@dataclass(frozen=True, eq=False)
class Scene:
    """All of it: `links` as robot.js takes them, `shapes`, `bodies`, and motions (log, times in s, positions `(samples,
    joints)`). `middle` (m) is what the camera goes round, at a distance in terms of the robot's `reach` (m)."""

    links: tuple[dict[str, Any], ...]
    shapes: tuple[Shape, ...]
    reach: float
    middle: Array
    rest: Array
    bodies: tuple[Body, ...] = ()
    motions: tuple[tuple[str, Array, Array], ...] = ()
    # What of a body its colour speaks of, in the words of the legend.
    coloured_by: str = "its moments known"

    def to_json(self) -> str:
        """What robot.js takes."""
        made = {
            "links": self.links,
            "shapes": [_shape(s) for s in self.shapes],
            "bodies": [
                {"link": b.link, "found": _ellipsoid(b.found), "nominal": _ellipsoid(b.nominal), "colour": b.level[0]}
                for b in self.bodies
            ],
            "motions": [_motion(*motion) for motion in self.motions],
            "reach": self.reach,
            "middle": _few(self.middle),
            "rest": _few(self.rest),
        }
        return json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _few(values: Array) -> list[float]:
    return [float(f"{x:.5g}") for x in np.ravel(values)]


def _shape(s: Shape) -> dict[str, Any]:
    made: dict[str, Any] = {
        "link": s.link,
        "kind": s.kind,
        "rotation": _few(s.rotation),
        "translation": _few(s.translation),
    }
    if s.kind != "mesh":
        return {**made, "size": _few(np.array(s.size))}
    unit = float(f"{max(float(np.abs(s.vertices).max(initial=0.0)), 1e-6) / _STEPS:.3g}")
    vertices = np.round(s.vertices / unit).astype(int).ravel().tolist()
    return {**made, "unit": unit, "vertices": vertices, "triangles": s.triangles.astype(int).ravel().tolist()}


def _ellipsoid(e: Ellipsoid | None) -> dict[str, Any] | None:
    return None if e is None else {"centre": _few(e.centre), "axes": _few(e.axes), "rotation": _few(e.rotation)}


def _motion(log: str, t: Array, q: Array) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(t) - 1, _POSTURES).astype(int))
    return {"log": log, "t": in_steps(t[keep]), "q": np.round(q[keep], 4).tolist()}


def scene_html(scene: Scene, title: str, caption: str = "") -> Html:
    """A `scene` with `title` and `caption`: it can be turned by pointer and arrow keys, and its motions played."""
    data = base64.b64encode(gzip.compress(scene.to_json().encode("utf-8"), 6, mtime=0)).decode("ascii")
    label = html.escape(f"{title}; arrow keys turn it, + and - zoom, the space bar plays the motion", quote=True)
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return Html(
        f'<figure class="robot"><h3>{text(title)}</h3><div class="space">'
        f'<canvas tabindex="0" role="img" aria-label="{label}"></canvas></div>{_legend(scene)}'
        f'<script type="text/plain" {SCENE_DATA}>{data}</script>{below}</figure>'
    )


def _legend(scene: Scene) -> str:
    """What the colours mean; forms differ, too: what was found is filled, what is nominal is drawn in lines."""
    if not any(b.found for b in scene.bodies):
        return ""
    used = {b.level for b in scene.bodies if b.found}
    marks = [
        f'<span class="mark" style="background:{colour}"></span>{text(words)}'
        for colour, words in (*((c, w) for _, c, w in KNOWN_TO), UNSEEN)
        if (colour, words) in used
    ]
    rings = " Rings: nominal." if any(b.nominal for b in scene.bodies) else ""
    return f'<p class="legend">Filled: identified, {text(scene.coloured_by)} {" ".join(marks)}.{rings}</p>'
