"""A watch of a running robot in the stage *Use*: its form, its command, and its live page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.ground.numbers import number
from steelyard.report.elements import Heat, Html, TableColumn, callout, join, table_html, text
from steelyard.studio.allowed_commands import WATCH_SOURCE
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, choice, entry, form, job_html
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.roles import ListedLog, log_named
from steelyard.studio.stage import Sent
from steelyard.studio.use_words import as_path, model_word

# Seconds between two reports.
_EVERY = "0.5"
_MOST_EVENTS = 8


def watch_words(place: StudioFolder, sent: Sent) -> list[str]:
    """The command of a watch that a browser `sent`, in the folder of a `place`."""
    source = sent.get("source", "").strip()
    log = sent.get("log", "")
    if source and not WATCH_SOURCE.fullmatch(source):
        raise StudioError(
            f"'{source[:60]}' is no source; write tcp:5005 or udp:5005 for lines that are sent to this machine, "
            "tcp-to:HOST:PORT, rtde:HOST or zenoh:TOPIC@HOST; or choose a log."
        )
    if not source and not log:
        raise StudioError("There is no source; write one, or choose a log to replay.")
    words = ["watch", model_word(place, sent["model"]), source or as_path(log_named(place, log).text)]
    mapping = place.project().mapping
    return [*words, *(["--map", as_path(mapping)] if mapping else []), "--json", "--every", _EVERY]


def watch_form(logs: Sequence[ListedLog], model: str) -> Html:
    """What to watch a robot by its `model` from: one of the `logs`, replayed, or a source."""
    options = [("", "none"), *((log.text, log.text) for log in logs if log.size >= 0)]
    return form(
        "use/watch",
        f'<input type="hidden" name="model" value="{attribute(model)}"><div class="row">'
        f"{entry('source', 'Where its samples come from', placeholder='tcp:5005')}"
        f"{choice('log', 'or a log, replayed at its own speed', options)}"
        '<button class="main">Watch</button></div><div data-words="watch" role="status"></div>',
    )


def watched_html(job: StudioJob | None) -> Html:
    """The live page of a `job`, filled in and kept true by the page's script (live.js); nothing where there is none."""
    if job is None or job.state in ("cancelled", "done"):
        return Html("")
    live = f'<div class="live" data-live-job="{job.id}" data-state="{job.state}"></div>' if job.live else ""
    return join(job_html(job), Html(live))


def live_html(said: str, joints: Sequence[str] = ()) -> Html:
    """What a watch has `said` last, for people; `joints` by name where they are known."""
    report, events = _last(said)
    if report is None:
        return Html('<p class="hint" role="status">Waiting for samples …</p>')
    parts = [_clock(report), _contact(report, joints), _load(report), _model(report)]
    told = (f"t = {event['t']:.2f} s: {event.get('message', '')}" for event in events)
    listed = "".join(f"<li>{text(line)}</li>" for line in told)
    happened = Html(f"<h3>What happened</h3><ul>{listed}</ul>") if listed else Html("")
    return join(*parts, happened)


def _last(said: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The last report, and the last events, the newest first."""
    report, events = None, list[dict[str, Any]]()
    for line in reversed(said.splitlines()):
        if not line.startswith("{"):
            continue
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if "event" in found and len(events) < _MOST_EVENTS:
            events.append(found)
        elif "counts" in found and report is None:
            report = found
    return report, events


def _clock(report: Mapping[str, Any]) -> Html:
    samples = report.get("counts", {}).get("samples", 0)
    words = f"t = {report['t']:.2f} s, {samples} samples"
    if report.get("stale"):
        return callout("warning", f"{words}. No samples have come since; what follows is old.", "Stale")
    return Html(f'<p role="status">{text(words)}</p>')


def _contact(report: Mapping[str, Any], joints: Sequence[str]) -> Html:
    found = report.get("contact")
    if not found:
        return Html("")
    torques, limits = found["external_torque"], found["limit"]
    names = joints if len(joints) == len(torques) else [f"joint {k + 1}" for k in range(len(torques))]
    rows = [
        [name, Heat(torque, _share(torque, limit)), limit]
        for name, torque, limit in zip(names, torques, limits, strict=True)
    ]
    kind, words = ("bad", "Something touches the robot.") if found.get("touched") else ("good", "Nothing touches it.")
    columns: list[TableColumn | str] = [
        "joint",
        TableColumn("from outside", "N m, N", 3),
        TableColumn("a contact beyond", "N m, N", 3),
    ]
    return join(
        callout(kind, f"{words} {found.get('contacts', 0)} contacts so far.", "Contact"),  # type: ignore[arg-type]
        table_html(columns, rows, "External torque"),
    )


def _share(torque: float | None, limit: float | None) -> float:
    if torque is None or not limit or not math.isfinite(limit):
        return 0.0
    return min(abs(torque) / limit, 1.0)


def _load(report: Mapping[str, Any]) -> Html:
    found = report.get("load")
    if not found or found.get("mass") is None:
        return Html("")
    mass = f"{number(found['mass'], 3)} ± {number(1.96 * found['mass_error'], 2)} kg"
    words = f"It carries {mass}" if found.get("carries") else f"It carries nothing ({mass})"
    return callout("note", f"{words}{'' if found.get('settled', True) else ', not settled yet'}.", "Load")


def _model(report: Mapping[str, Any]) -> Html:
    true = report.get("model", {}).get("true")
    if true is None:
        return Html("")
    if true:
        return callout("good", "What is measured is what the model says.", "Model")
    return callout("warning", "What is measured is no longer what the model says; see what happened.", "Model")
