"""Three-dimensional view of a robot on a page: bodies, ellipsoids of inertia and motions, drawn by robot.js."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.report.elements import SCENE_DATA, Html, text
from steelyard.report.plots.figure import BLUE, GREY, ORANGE, SKY, VERMILLION
from steelyard.report.plots.series import in_steps

# Scripts that draw a scene, in the order of their dependencies.
ROBOT_SCRIPTS = ("matrix.js", "solids.js", "gl.js", "shadow.js", "orbit.js", "robot.js", "player.js")
ShapeKind = Literal["mesh", "box", "cylinder", "sphere", "capsule"]
# Postures of one motion on a page; the page interpolates linearly between them.
_POSTURES = 600
# The coordinates of vertices are rounded to this fraction of the extent of a mesh.
_STEPS = 4000
# Colours of ellipsoids, by the largest relative error of the moments of a body.
ERROR_LEVELS = ((0.03, BLUE, "to 3 %"), (0.1, SKY, "to 10 %"), (0.3, ORANGE, "to 30 %"), (np.inf, VERMILLION, "worse"))
NOT_IDENTIFIABLE = GREY, "not identifiable"


@dataclass(frozen=True, eq=False)
class Shape:
    """A visible body, fixed to the joint frame of a link.

    Attributes:
        link: Index of the link; −1 is the base.
        kind: Kind of body.
        rotation: Rotation in the frame of the link.
        translation: Position in the frame of the link [m].
        size: Dimensions [m]. Box: three edges; cylinder (along z) and capsule (from the origin along z): radius and
            length; sphere: radius.
        vertices: Vertices of a mesh [m].
        triangles: Indices of the vertices of each triangle of a mesh.
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
    """The ellipsoid of uniform density with the mass and the inertia of a body, in the joint frame of its link.

    Attributes:
        centre: Centre of mass [m].
        axes: Semi-axes [m], along the columns of `rotation`.
        rotation: Directions of the axes.
    """

    centre: Array
    axes: Array
    rotation: Array

    @classmethod
    def of(cls, mass: float, centre: Array, second_moments: Array) -> Ellipsoid | None:
        """Compute the ellipsoid of a body, or None if its mass is not positive or its moments are not finite.

        Args:
            mass: Mass [kg].
            centre: Centre of mass [m].
            second_moments: ∫ x xᵀ dm about the centre of mass [kg m²].
        """
        if not mass > 0.0 or not np.all(np.isfinite(second_moments)):
            return None
        values, vectors = np.linalg.eigh(second_moments)
        # A uniform ellipsoid has m a²/5 along each axis; zero or negative moments are drawn as a thin disc.
        axes = np.sqrt(np.maximum(5.0 * values / mass, 1e-6))
        turned = vectors if np.linalg.det(vectors) > 0.0 else vectors * [1.0, 1.0, -1.0]
        return cls(np.asarray(centre, dtype=float), axes, turned)


@short_repr
@dataclass(frozen=True, eq=False)
class Body:
    """The inertia of a link.

    Attributes:
        link: Index of the link.
        identified: Identified ellipsoid; None if unknown.
        nominal: Nominal ellipsoid; None if unknown.
        error: Relative error of the identifiable moments, which selects the colour; None if none is identifiable.
    """

    link: int
    identified: Ellipsoid | None
    nominal: Ellipsoid | None = None
    error: float | None = None

    @property
    def level(self) -> tuple[str, str]:
        """Colour, and its label in the legend."""
        if self.error is None:
            return NOT_IDENTIFIABLE
        return next((colour, label) for limit, colour, label in ERROR_LEVELS if not self.error > limit)


@short_repr
@dataclass(frozen=True, eq=False)
class Scene:
    """A robot with its bodies and motions.

    Attributes:
        links: Links in the format of robot.js.
        shapes: Visible bodies.
        reach: Reach of the robot [m], which sets the distance of the camera.
        middle: Point that the camera turns around [m].
        rest: Joint positions at rest.
        bodies: Ellipsoids of inertia.
        motions: Name of the log, times [s], and positions, shape (samples, joints).
        coloured_by: Words of the legend for the quantity that selects the colour.
    """

    links: tuple[dict[str, Any], ...]
    shapes: tuple[Shape, ...]
    reach: float
    middle: Array
    rest: Array
    bodies: tuple[Body, ...] = ()
    motions: tuple[tuple[str, Array, Array], ...] = ()
    coloured_by: str = "error of its moments"

    def to_json(self) -> str:
        """Encode the scene for robot.js."""
        document = {
            "links": self.links,
            "shapes": [_shape(s) for s in self.shapes],
            "bodies": [
                {
                    "link": b.link,
                    "found": _ellipsoid(b.identified),
                    "nominal": _ellipsoid(b.nominal),
                    "colour": b.level[0],
                }
                for b in self.bodies
            ],
            "motions": [_motion(*motion) for motion in self.motions],
            "reach": self.reach,
            "middle": _rounded(self.middle),
            "rest": _rounded(self.rest),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _rounded(values: Array) -> list[float]:
    return [float(f"{x:.5g}") for x in np.ravel(values)]


def _shape(s: Shape) -> dict[str, Any]:
    document: dict[str, Any] = {
        "link": s.link,
        "kind": s.kind,
        "rotation": _rounded(s.rotation),
        "translation": _rounded(s.translation),
    }
    if s.kind != "mesh":
        return {**document, "size": _rounded(np.array(s.size))}
    unit = float(f"{max(float(np.abs(s.vertices).max(initial=0.0)), 1e-6) / _STEPS:.3g}")
    vertices = np.round(s.vertices / unit).astype(int).ravel().tolist()
    return {**document, "unit": unit, "vertices": vertices, "triangles": s.triangles.astype(int).ravel().tolist()}


def _ellipsoid(e: Ellipsoid | None) -> dict[str, Any] | None:
    if e is None:
        return None
    return {"centre": _rounded(e.centre), "axes": _rounded(e.axes), "rotation": _rounded(e.rotation)}


def _motion(log: str, t: Array, q: Array) -> dict[str, Any]:
    keep = np.unique(np.linspace(0, len(t) - 1, _POSTURES).astype(int))
    return {"log": log, "t": in_steps(t[keep]), "q": np.round(q[keep], 4).tolist()}


def scene_html(scene: Scene, title: str, caption: str = "") -> Html:
    """Embed a scene. The reader can turn it with the pointer or the arrow keys, and play its motions.

    Args:
        scene: Scene.
        title: Heading above it.
        caption: Text below it.
    """
    data = base64.b64encode(gzip.compress(scene.to_json().encode("utf-8"), 6, mtime=0)).decode("ascii")
    label = html.escape(f"{title}; arrow keys turn it, + and - zoom, the space bar plays the motion", quote=True)
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return Html(
        f'<figure class="robot"><h3>{text(title)}</h3><div class="space">'
        f'<canvas tabindex="0" role="img" aria-label="{label}"></canvas></div>{_legend(scene)}'
        f'<script type="text/plain" {SCENE_DATA}>{data}</script>{below}</figure>'
    )


def _legend(scene: Scene) -> str:
    """Explain the colours, and the forms: identified ellipsoids are filled, nominal ones are rings."""
    if not any(b.identified for b in scene.bodies):
        return ""
    used = {b.level for b in scene.bodies if b.identified}
    marks = [
        f'<span class="mark" style="background:{colour}"></span>{text(label)}'
        for colour, label in (*(level[1:] for level in ERROR_LEVELS), NOT_IDENTIFIABLE)
        if (colour, label) in used
    ]
    rings = " Rings: nominal." if any(b.nominal for b in scene.bodies) else ""
    return f'<p class="legend">Filled: identified, {text(scene.coloured_by)} {" ".join(marks)}.{rings}</p>'
