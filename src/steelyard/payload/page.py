"""A weighed load as a page: what it weighs, where, how sure that is, and where it hangs on the robot."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.ground.numbers import Known
from steelyard.payload.load import ENTRIES, Load
from steelyard.report.elements import (
    Html,
    TableCell,
    TableColumn,
    callout,
    commands,
    join,
    paragraph,
    table_html,
    tabs,
    whisker,
)
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.scene import Body, scene_html
from steelyard.robot.robot import Robot
from steelyard.robot.shapes import inertia_ellipsoid, scene_of

if TYPE_CHECKING:
    from steelyard.payload.run import LoadRun

# Relative error of a mass from which on a page warns, and from which on there is nothing to go by.
_ROUGH, _USELESS = 0.1, 0.5


def load_report(runs: Mapping[str, LoadRun]) -> str:
    """The page of weighed loads, `runs` by name; "" names the only one."""
    first = next(iter(runs.values()))
    title = f"{first.robot.name}: what it carries"
    shown = [(name or "load", join(*_load(run.load))) for name, run in runs.items()]
    sections = [
        Section("Mass, centre of gravity, inertia", tabs(*shown)),
        Section("Where it hangs", _hangs(first.robot, {n: r.load for n, r in runs.items()})),
        Section("What next", _next(first.robot)),
    ]
    return render_report(title, sections, verdict=_verdict({n: r.load for n, r in runs.items()}))


def _verdict(loads: Mapping[str, Load]) -> Verdict:
    said, worst = [], 0.0
    for name, load in loads.items():
        low, high = (Known(x, load.mass_error) for x in load.interval())
        said.append(
            f"{f'{name}: ' if name else ''}{Known(load.mass, load.mass_error)} kg (between {low} and {high} kg with "
            f"95 % confidence), centre of gravity {', '.join(_millimetres(load))} mm in '{load.frame}'."
        )
        worst = max(worst, load.mass_error / abs(load.mass) if load.mass and load.possible else math.inf)
    hidden = any(not all(load.shown) for load in loads.values())
    kind = "bad" if worst > _USELESS else "warning" if worst > _ROUGH or hidden else "good"
    headline = {
        "good": "The load is weighed.",
        "warning": "The load is weighed; not all of it shows in the motion.",
        "bad": "The load cannot be told from this data.",
    }[kind]
    return Verdict(kind, headline, tuple(said))  # type: ignore[arg-type]


def _millimetres(load: Load) -> list[str]:
    pairs = zip(1000.0 * load.center_of_gravity, 1000.0 * load.center_of_gravity_error, strict=True)
    return [str(Known(float(x), float(e))) for x, e in pairs]


def _load(load: Load) -> list[Html]:
    names = "xyz"
    rows: list[tuple[str, str, float, float, bool]] = [("mass", "kg", load.mass, load.mass_error, load.shown[0])]
    rows += [
        (f"centre of gravity {names[k]}", "mm", 1000.0 * float(c), 1000.0 * float(e), load.shown[1 + k])
        for k, (c, e) in enumerate(zip(load.center_of_gravity, load.center_of_gravity_error, strict=True))
    ]
    # The ten are xx, xy, yy, xz, yz, zz in the end.
    place = {(0, 0): 4, (0, 1): 5, (1, 1): 6, (0, 2): 7, (1, 2): 8, (2, 2): 9}
    rows += [
        (f"inertia {names[i]}{names[j]}", "kg m²", float(load.inertia[i, j]), float(e), load.shown[place[i, j]])
        for (i, j), e in zip(ENTRIES, load.inertia_error, strict=True)
    ]
    cells: list[Sequence[TableCell]] = [
        (
            name,
            unit,
            whisker(value, 1.96 * error),
            Known(value, error),
            1.96 * error,
            "" if shown else "not shown by the motion",
        )
        for name, unit, value, error, shown in rows
    ]
    columns: list[TableColumn | str] = ["", "unit", "on its own scale", "value", TableColumn("± 95 %", digits=2), ""]
    title = f"Load in frame '{load.frame}', inertia about its centre of gravity"
    below = "Each picture has a scale of its own: dot and line are value and 95 % interval, the tick is zero."
    notes = [callout("note", note) for note in load.notes]
    if not load.possible:
        notes.append(callout("bad", "No body has these ten numbers; the motion shows too little of the load."))
    return [table_html(columns, cells, title, dash="The data do not tell it."), paragraph(below), *notes]


def _hangs(robot: Robot, loads: Mapping[str, Load]) -> Html:
    bodies = []
    for load in loads.values():
        place = robot.frame(load.frame)
        solid = inertia_ellipsoid(load.parameters, place.rotation, place.translation)
        if solid is not None:
            bodies.append(Body(place.host, solid, error=load.mass_error / load.mass))
    scene = replace(scene_of(robot), bodies=tuple(bodies), coloured_by="error of its mass")
    caption = (
        "The load as an ellipsoid of even density with its mass and inertia, on the robot at the zeros of its joints."
    )
    return scene_html(scene, f"{robot.name} with its load", caption)


def _next(robot: Robot) -> Html:
    source = shlex.quote(robot.source or "ROBOT")
    pairs = [
        ("Gains of the torque channels, from a load that a scale has weighed:",
         f"steelyard payload {source} --known LOAD.yaml --with LOADED.csv --without EMPTY.csv -o gains"),
        ("The motion that weighs best, for a force–torque sensor:", f"steelyard payload {source} --design -o motion"),
    ]  # fmt: skip
    return commands(*pairs)
