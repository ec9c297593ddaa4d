"""Report page of identified payloads: mass, centre of gravity, inertia, error bars, and a view of the robot."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import Known
from steelyard.payload.payload import ENTRIES, Payload
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
    from steelyard.payload.payload_results import PayloadRun

# Relative errors of a mass above which the page warns, or calls the result unusable.
_ROUGH, _UNUSABLE = 0.1, 0.5


def payload_report(runs: Mapping[str, PayloadRun]) -> str:
    """Render the page of identified payloads, `runs` by name; a single one has the name ""."""
    first = next(iter(runs.values()))
    title = f"{first.robot.name}: payload"
    tables = [(name or "payload", join(*_table(run.load))) for name, run in runs.items()]
    sections = [
        Section("Mass, centre of gravity, inertia", tabs(*tables)),
        Section("Position on the robot", _scene(first.robot, {n: r.load for n, r in runs.items()})),
        Section("Next steps", _next(first.robot)),
    ]
    return render_report(title, sections, verdict=_verdict({n: r.load for n, r in runs.items()}))


def _verdict(loads: Mapping[str, Payload]) -> Verdict:
    points, worst = [], 0.0
    for name, load in loads.items():
        low, high = (Known(x, load.mass_error) for x in load.interval())
        points.append(
            f"{f'{name}: ' if name else ''}{Known(load.mass, load.mass_error)} kg (between {low} and {high} kg with "
            f"95 % confidence), centre of gravity {', '.join(_millimetres(load))} mm in '{load.frame}'."
        )
        worst = max(worst, load.mass_error / abs(load.mass) if load.mass and load.possible else math.inf)
    hidden = any(not all(load.identifiable) for load in loads.values())
    kind = "bad" if worst > _UNUSABLE else "warning" if worst > _ROUGH or hidden else "good"
    headline = {
        "good": "The payload is identified.",
        "warning": "The payload is identified in part, or with large errors.",
        "bad": "The payload is not identifiable from this data.",
    }[kind]
    return Verdict(kind, headline, tuple(points))  # type: ignore[arg-type]


def _millimetres(load: Payload) -> list[str]:
    pairs = zip(1000.0 * load.center_of_gravity, 1000.0 * load.center_of_gravity_error, strict=True)
    return [str(Known(float(x), float(e))) for x, e in pairs]


def _table(load: Payload) -> list[Html]:
    names = "xyz"
    rows: list[tuple[str, str, float, float, bool]] = [("mass", "kg", load.mass, load.mass_error, load.identifiable[0])]
    rows += [
        (f"centre of gravity {names[k]}", "mm", 1000.0 * float(c), 1000.0 * float(e), load.identifiable[1 + k])
        for k, (c, e) in enumerate(zip(load.center_of_gravity, load.center_of_gravity_error, strict=True))
    ]
    # The last six of the ten parameters are xx, xy, yy, xz, yz, zz.
    place = {(0, 0): 4, (0, 1): 5, (1, 1): 6, (0, 2): 7, (1, 2): 8, (2, 2): 9}
    rows += [
        (f"inertia {names[i]}{names[j]}", "kg m²", float(load.inertia[i, j]), float(e), load.identifiable[place[i, j]])
        for (i, j), e in zip(ENTRIES, load.inertia_error, strict=True)
    ]
    cells: list[Sequence[TableCell]] = [
        (
            name,
            unit,
            whisker(value, HALF_WIDTH_95 * error),
            Known(value, error),
            HALF_WIDTH_95 * error,
            "" if identifiable else "not identifiable from this motion",
        )
        for name, unit, value, error, identifiable in rows
    ]
    columns: list[TableColumn | str] = ["", "unit", "interval", "value", TableColumn("± 95 %", digits=2), ""]
    title = f"Payload in frame '{load.frame}', inertia about its centre of gravity"
    below = "Each interval has a separate scale: the dot is the value, the line the 95 % interval, the tick zero."
    notes = [callout("note", note) for note in load.notes]
    if not load.possible:
        notes.append(
            callout("bad", "These ten parameters are physically impossible; the motion identifies too few of them.")
        )
    return [table_html(columns, cells, title, dash="Not identifiable from this data."), paragraph(below), *notes]


def _scene(robot: Robot, loads: Mapping[str, Payload]) -> Html:
    bodies = []
    for load in loads.values():
        place = robot.frame(load.frame)
        solid = inertia_ellipsoid(load.parameters, place.rotation, place.translation)
        if solid is not None:
            bodies.append(Body(place.host, solid, error=load.mass_error / load.mass))
    scene = replace(scene_of(robot), bodies=tuple(bodies), coloured_by="error of its mass")
    caption = (
        "The payload as an ellipsoid of uniform density with its mass and inertia; the robot is in its zero posture."
    )
    return scene_html(scene, f"{robot.name} with its payload", caption)


def _next(robot: Robot) -> Html:
    source = shlex.quote(robot.source or "ROBOT")
    pairs = [
        ("Scale factors of the torque channels, from a payload of known mass:",
         f"steelyard payload {source} --known LOAD.yaml --with LOADED.csv --without EMPTY.csv -o gains"),
        ("A motion for identification with a force–torque sensor:", f"steelyard payload {source} --design -o motion"),
    ]  # fmt: skip
    return commands(*pairs)
