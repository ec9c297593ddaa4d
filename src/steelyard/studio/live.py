"""The live monitor of a robot in the stage *Use*: its form, its command and its live page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import number
from steelyard.report.elements import Heat, Html, TableColumn, callout, join, table_html, text
from steelyard.studio.allowed_commands import WATCH_SOURCE
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, choice, entry, form, job_html
from steelyard.studio.roles import ListedLog, log_named
from steelyard.studio.stage import FormData
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.use_commands import model_argument, path_argument

# Seconds between two reports.
_EVERY = "0.5"
_MOST_EVENTS = 8


def watch_command(folder: StudioFolder, fields: FormData) -> list[str]:
    """Return the words of a `watch` command.

    Args:
        folder: The studio's folder.
        fields: Fields of the form.
    """
    source = fields.get("source", "").strip()
    log = fields.get("log", "")
    if source and not WATCH_SOURCE.fullmatch(source):
        raise StudioError(
            f"'{source[:60]}' is not a source; write tcp:5005 or udp:5005 for lines that are sent to this machine, "
            "tcp-to:HOST:PORT, rtde:HOST or zenoh:TOPIC@HOST; or choose a log."
        )
    if not source and not log:
        raise StudioError("The source is missing; write one, or choose a log to replay.")
    words = ["watch", model_argument(folder, fields["model"]), source or path_argument(log_named(folder, log).text)]
    mapping = folder.project().mapping
    return [*words, *(["--map", path_argument(mapping)] if mapping else []), "--json", "--every", _EVERY]


def watch_form(logs: Sequence[ListedLog], model: str) -> Html:
    """Render the form of the live monitor.

    Args:
        logs: Logs that can be replayed.
        model: Name of the model.
    """
    options = [("", "none"), *((log.text, log.text) for log in logs if log.size >= 0)]
    return form(
        "use/watch",
        f'<input type="hidden" name="model" value="{attribute(model)}"><div class="row">'
        f"{entry('source', 'Source of the samples', placeholder='tcp:5005')}"
        f"{choice('log', 'or a log, replayed in real time', options)}"
        '<button class="main">Start the monitor</button></div><div data-words="watch" role="status"></div>',
    )


def watch_html(job: StudioJob | None) -> Html:
    """Render the live page of a `job`, updated by live.js; empty without a running job."""
    if job is None or job.state in ("cancelled", "done"):
        return Html("")
    live = f'<div class="live" data-live-job="{job.id}" data-state="{job.state}"></div>' if job.live else ""
    return join(job_html(job), Html(live))


def live_html(output: str, joints: Sequence[str] = ()) -> Html:
    """Render the last report of a monitor.

    Args:
        output: JSON lines that it printed.
        joints: Names of the joints, if known.
    """
    report, events = _last(output)
    if report is None:
        return Html('<p class="hint" role="status">Waiting for samples …</p>')
    parts = [_clock(report), _contact(report, joints), _load(report), _model(report)]
    lines = (f"t = {event['t']:.2f} s: {event.get('message', '')}" for event in events)
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return join(*parts, Html(f"<h3>Events</h3><ul>{items}</ul>") if items else Html(""))


def _last(output: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the last report and the last events, newest first."""
    report, events = None, list[dict[str, Any]]()
    for line in reversed(output.splitlines()):
        if not line.startswith("{"):
            continue
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if "event" in message and len(events) < _MOST_EVENTS:
            events.append(message)
        elif "counts" in message and report is None:
            report = message
    return report, events


def _clock(report: Mapping[str, Any]) -> Html:
    samples = report.get("counts", {}).get("samples", 0)
    words = f"t = {report['t']:.2f} s, {samples} samples"
    if report.get("stale"):
        return callout("warning", f"{words}. No new samples arrive; the values below are old.", "Stale")
    return Html(f'<p role="status">{text(words)}</p>')


def _contact(report: Mapping[str, Any], joints: Sequence[str]) -> Html:
    contact = report.get("contact")
    if not contact:
        return Html("")
    torques, limits = contact["external_torque"], contact["limit"]
    names = joints if len(joints) == len(torques) else [f"joint {k + 1}" for k in range(len(torques))]
    rows = [
        [name, Heat(torque, _share(torque, limit)), limit]
        for name, torque, limit in zip(names, torques, limits, strict=True)
    ]
    kind, words = ("bad", "Contact detected.") if contact.get("touched") else ("good", "No contact.")
    columns: list[TableColumn | str] = [
        "joint",
        TableColumn("external torque", "N m, N", 3),
        TableColumn("contact threshold", "N m, N", 3),
    ]
    return join(
        callout(kind, f"{words} {contact.get('contacts', 0)} contacts so far.", "Contact"),  # type: ignore[arg-type]
        table_html(columns, rows, "External torque"),
    )


def _share(torque: float | None, limit: float | None) -> float:
    if torque is None or not limit or not math.isfinite(limit):
        return 0.0
    return min(abs(torque) / limit, 1.0)


def _load(report: Mapping[str, Any]) -> Html:
    load = report.get("load")
    if not load or load.get("mass") is None:
        return Html("")
    mass = f"{number(load['mass'], 3)} ± {number(HALF_WIDTH_95 * load['mass_error'], 2)} kg"
    words = f"Payload {mass}" if load.get("carries") else f"No payload ({mass})"
    return callout("note", f"{words}{'' if load.get('settled', True) else ', not settled yet'}.", "Payload")


def _model(report: Mapping[str, Any]) -> Html:
    is_valid = report.get("model", {}).get("true")
    if is_valid is None:
        return Html("")
    if is_valid:
        return callout("good", "The measured torques agree with the model.", "Model")
    return callout("warning", "The measured torques no longer agree with the model; see the events.", "Model")
