"""Items common to many papers: a table that is an input of the reproduction, and the drawing of the arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import steelyard as sy
from steelyard.papers.paper import Item, PaperFigure, paper_table, printed_table
from steelyard.report import Line, Panel
from steelyard.robot import link_poses

# Half the length of an axis in the drawing, as a share of the arm's reach.
_AXIS = 0.08


def input_table(title: str, paper: str, name: str) -> Callable[[Any], Item]:
    """Return an item that shows a printed table whose numbers are inputs of the reproduction.

    Args:
        title: Title of the item.
        paper: Name of the paper.
        name: Name of the table.
    """

    def item(_: Any) -> Item:
        rows = printed_table(paper, name).rows
        table = paper_table([column.replace("_", " ") for column in rows[0]], (row.values() for row in rows))
        return Item(text="As printed; the simulated robot has these numbers.", tables=(table,))

    item.__doc__ = title
    return item


def arm_drawing(title: str, robot: str, q: Sequence[float], tip: Sequence[float] = ()) -> Callable[[Any], Item]:
    """Return an item that draws a robot from the side and from above.

    Args:
        title: Title of the item.
        robot: Name of a robot of the library.
        q: Posture [rad, m].
        tip: End of the last link in its joint's frame [m]; empty: the robot's own frame.
    """

    def item(_: Any) -> Item:
        arm = sy.load_robot(robot)
        rotations, origins = link_poses(arm, np.asarray(q))
        directions = np.einsum("nij,nj->ni", rotations, [link.axis for link in arm.links])
        end = origins[-1] + rotations[-1] @ (np.asarray(tip) if tip else arm.frame().translation)
        chain = np.vstack([np.zeros(3), origins, end])
        size = _AXIS * float(np.max(np.ptp(chain, axis=0)))
        panels = []
        for view, up in (("from the side", 2), ("from above", 1)):
            lines = [Line.of("links", chain[:, 0], chain[:, up])]
            for link, origin, direction in zip(arm.links, origins, directions, strict=True):
                ends = np.array([origin - size * direction, origin + size * direction])
                lines.append(Line.of(f"axis of {link.joint}", ends[:, 0], ends[:, up], dashed=True))
            lines.append(Line.of_points("joints", origins[:, 0], origins[:, up]))
            panels.append(Panel(view, tuple(lines), "x [m]", f"{'xyz'[up]} [m]", equal=True))
        text = "Drawn from the frames of the simulated robot; an axis along the line of sight is a point."
        text += " The length of the last link is our choice." if tip else ""
        return Item(text=text, figures=(PaperFigure("The arm", tuple(panels)),))

    item.__doc__ = title
    return item
