"""Items that many papers have: a table that is an input here, and the drawing of the arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Item, PaperFigure, paper_table, printed
from steelyard.report import Line, Panel
from steelyard.robot import link_poses

# Half the length of an axis in the drawing, as part of the arm's reach.
_AXIS = 0.08


def given_table(title: str, paper: str, name: str) -> Callable[[Any], Item]:
    """An item called `title` with table `name` of a `paper` as it is printed, for tables whose numbers are inputs."""

    def item(_: Any) -> Item:
        rows = printed(paper, name).rows
        table = paper_table([column.replace("_", " ") for column in rows[0]], (row.values() for row in rows))
        return Item(text="As printed; the robot here is made of these numbers.", tables=(table,))

    item.__doc__ = title
    return item


def drawn_arm(title: str, robot: str, q: Sequence[float], tip: Sequence[float] = ()) -> Callable[[Any], Item]:
    """An item called `title`: a `robot` of the library from the side and from above, at `q` (rad, m).

    `tip` is where the last link ends, along its joint's frame (m), where the robot does not say so.
    """

    def item(_: Any) -> Item:
        arm = sy.load_robot(robot)
        rotations, origins = link_poses(arm, np.asarray(q))
        ways = np.einsum("nij,nj->ni", rotations, [link.axis for link in arm.links])
        end = origins[-1] + rotations[-1] @ (np.asarray(tip) if tip else arm.frame().translation)
        chain = np.vstack([np.zeros(3), origins, end])
        size = _AXIS * float(np.max(np.ptp(chain, axis=0)))
        panels = []
        for view, up in (("from the side", 2), ("from above", 1)):
            lines = [Line.of("links", chain[:, 0], chain[:, up])]
            for link, place, way in zip(arm.links, origins, ways, strict=True):
                ends = np.array([place - size * way, place + size * way])
                lines.append(Line.of(f"axis of {link.joint}", ends[:, 0], ends[:, up], dashed=True))
            lines.append(Line.of_points("joints", origins[:, 0], origins[:, up]))
            panels.append(Panel(view, tuple(lines), "x [m]", f"{'xyz'[up]} [m]", equal=True))
        text = "Drawn from the frames of the robot that is simulated here; an axis that is seen end on is a point."
        text += " How far the last link reaches is our choice." if tip else ""
        return Item(text=text, figures=(PaperFigure("The arm", tuple(panels)),))

    item.__doc__ = title
    return item
