"""What the stage *Check* asks the process aside: the findings of a run as HTML, and a mapping with some of them mended.
The large rooms are imported when they are asked, so that the server stays light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.project import PROJECT_FILE, Project
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.page import button
from steelyard.studio.place import StudioError

if TYPE_CHECKING:
    from steelyard.check import Check, Finding


def checked_html(run: str, logs: Sequence[str], mendable: bool) -> dict[str, Any]:
    """The check that a `run` keeps, of these `logs`: its `verdict` and `findings` as HTML, and the `fixes` there are,
    the findings' keys with their logs.

    Args:
        run: its folder.
        logs: as the project names them.
        mendable: with a button for every fix.
    """
    from steelyard.check.kept import read_checks
    from steelyard.check.page import check_verdict, findings_html, in_order, motion_html
    from steelyard.report.html import verdict_html

    checks = [(name or (logs[0] if logs else "the log"), found) for name, found in read_checks(Path(run))]
    fixes = _fixes(checks)
    pieces: list[str] = []
    for k, (name, found) in enumerate(checks):

        def offered(entry: Finding, k: int = k, found: Check = found) -> str:
            return _offer(run, k, entry, found, checks) if mendable and entry in found.complaints else ""

        more = join(in_order(found), *motion_html(name, found))
        pieces.append(Html(f'<section class="log" aria-label="{text(name)}">'))
        if len(checks) > 1:
            pieces.append(Html(f"<h2>{text(name)}</h2><p>{text(found.verdict)}</p>"))
        pieces += findings_html(found, offered)
        if not found.complaints:
            pieces.append(callout("good", f"Nothing is wrong with {name}."))
        pieces.append(
            Html(f'<details id="motion-{k}"><summary>What was looked at, and what the motion shows</summary>')
        )
        pieces += [more, Html("</details></section>")]
    return {
        "verdict": verdict_html(check_verdict(checks)),
        "findings": join(*pieces),
        "fixes": [[key, checks[k][0]] for key, k in fixes.items()],
    }


def _fixes(checks: Sequence[tuple[str, Check]]) -> dict[str, int]:
    """What a mapping can mend, by the findings' keys, with the log that it is taken from: each once, since the mapping
    is that of all logs."""
    found: dict[str, int] = {}
    for k, (_, check) in enumerate(checks):
        for entry in check.complaints:
            if entry.fix is not None:
                found.setdefault(entry.key, k)
    return found


def _offer(run: str, log: int, entry: Finding, found: Check, checks: Sequence[tuple[str, Check]]) -> str:
    """A button that mends a finding, and what it would write; where no mapping mends it, nothing."""
    if entry.fix is None:
        return ""
    without = [
        name for name, other in checks if other is not found and not any(e.key == entry.key for e in other.entries)
    ]
    what = Html(f'<span class="hint">{text(_written(entry))}</span>')
    risk = ""
    if without:
        words = f"The mapping holds for all logs, and {', '.join(without)} does not show this."
        risk = str(callout("warning", words))
    apply = button("check/fix", "Apply this fix", "main", key=entry.key, log=str(log), run=run)
    return f'{risk}<div class="row fix">{apply}{what}</div>'


def _written(entry: Finding) -> str:
    """What the fix of a finding writes, in the words of a mapping."""
    said = "; ".join(f"{key} = {_shown(value)}" for key, value in (entry.fix or {}).items())
    whose = f" ({entry.joint})" if entry.joint and entry.joint not in said else ""
    return f"In the mapping: {said}{whose}"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_shown(x)}" for name, x in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def mended_mapping(run: str, logs: Sequence[str], key: str, log: int) -> dict[str, Any]:
    """The project's mapping with fixes that a `run` of `logs` found: the `toml`, the messages `what` it mends, and
    `by_hand` what it cannot.

    Args:
        run: its folder.
        logs: as the project names them.
        key: of the finding; "": all of them.
        log: which of the logs it was found in.
    """
    from steelyard.check.fix import as_toml, mended
    from steelyard.check.kept import read_checks
    from steelyard.signals.mapping import mapping_table
    from steelyard.signals.source import open_log, pieces_of

    project = Project.load(PROJECT_FILE)
    robot, mapping = project.load_robot(), project.path_of(project.mapping)
    checks = read_checks(Path(run))
    wanted = _fixes(checks) if not key else {key: log}
    if not wanted or not all(0 <= k < min(len(checks), len(logs)) for k in wanted.values()):
        raise StudioError("There is nothing here that a mapping could mend; check the logs again.")
    data: dict[str, Any] = mapping_table(mapping)
    what: list[str] = []
    by_hand: list[str] = []
    for k in sorted(set(wanted.values())):
        found, keys = checks[k][1], [one for one, place in wanted.items() if place == k]
        piece = next(pieces_of(open_log(Path(logs[k]), robot, mapping or None)))
        data, left = mended(found, robot, piece, data, keys)
        what += [f"{e.message} ({_written(e)})" for e in found.complaints if e.key in keys and e.fix]
        by_hand += left
    return {"toml": as_toml(data), "what": what, "by_hand": by_hand}
