"""Functions of the stage *Check* for the helper process: findings as HTML, and a mapping with fixes applied.

Large packages are imported inside the functions to keep the server small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.project import PROJECT_FILE, Project
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.page import button
from steelyard.studio.studio_folder import StudioError

if TYPE_CHECKING:
    from steelyard.check import Check, Finding

# Grades of a check, from the best to the worst.
CHECK_GRADES = ("good", "usable", "mend", "unusable")


def check_html(run: str, logs: Sequence[str], with_buttons: bool) -> dict[str, Any]:
    """Render a check: `verdict` and `findings` as HTML, and `fixes` as a list of [key of the finding, log].

    Args:
        run: Folder of the check.
        logs: Logs of the project.
        with_buttons: Whether to show a button for each fix.
    """
    from steelyard.check.page import check_verdict, findings_html, in_order, motion_html
    from steelyard.check.saved_checks import read_checks
    from steelyard.report.html import verdict_html

    checks = [(name or (logs[0] if logs else "the log"), check) for name, check in read_checks(Path(run))]
    fixes = _fixes(checks)
    pieces: list[str] = []
    for k, (name, check) in sorted(enumerate(checks), key=lambda pair: _badness(pair[1][1]), reverse=True):

        def fix_button(entry: Finding, k: int = k, check: Check = check) -> str:
            return _fix_html(run, k, entry, check, checks) if with_buttons and entry in check.complaints else ""

        more = join(in_order(check), *motion_html(name, check))
        pieces.append(Html(f'<section class="log" aria-label="{text(name)}">'))
        if len(checks) > 1:
            pieces.append(Html(f"<h2>{text(name)}</h2><p>{text(check.verdict)}</p>"))
        pieces += findings_html(check, fix_button)
        if not check.complaints:
            pieces.append(callout("good", f"No problems in {name}."))
        pieces.append(Html(f'<details id="motion-{k}"><summary>All checks, and details of the motion</summary>'))
        pieces += [more, Html("</details></section>")]
    return {
        "verdict": verdict_html(check_verdict(checks)),
        "findings": join(*pieces),
        "fixes": [[key, checks[k][0]] for key, k in fixes.items()],
    }


def _badness(check: Check) -> tuple[int, int, int]:
    """Order checks: by grade, then by the number of problems and of warnings."""
    counts = [sum(entry.severity == severity for entry in check.complaints) for severity in ("problem", "warning")]
    return CHECK_GRADES.index(check.grade), counts[0], counts[1]


def _fixes(checks: Sequence[tuple[str, Check]]) -> dict[str, int]:
    """Return the log of each finding that a mapping can fix, by key; once per key, since all logs share the mapping."""
    fixes: dict[str, int] = {}
    for k, (_, check) in enumerate(checks):
        for entry in check.complaints:
            if entry.fix is not None:
                fixes.setdefault(entry.key, k)
    return fixes


def _fix_html(run: str, log: int, entry: Finding, check: Check, checks: Sequence[tuple[str, Check]]) -> str:
    """Render the button of a fix with what it writes; "" if a mapping cannot fix the finding."""
    if entry.fix is None:
        return ""
    without = [
        name for name, other in checks if other is not check and not any(e.key == entry.key for e in other.entries)
    ]
    change = Html(f'<span class="hint">{text(_fix_text(entry))}</span>')
    risk = ""
    if without:
        words = f"The mapping applies to all logs, but this finding is not in {', '.join(without)}."
        risk = str(callout("warning", words))
    apply = button("check/fix", "Apply this fix", "main", key=entry.key, log=str(log), run=run)
    return f'{risk}<div class="row fix">{apply}{change}</div>'


def _fix_text(entry: Finding) -> str:
    """Describe what the fix of a finding writes to the mapping."""
    change = "; ".join(f"{key} = {_format(value)}" for key, value in (entry.fix or {}).items())
    joint = f" ({entry.joint})" if entry.joint and entry.joint not in change else ""
    return f"In the mapping: {change}{joint}"


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_format(x)}" for name, x in value.items())
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_format, value)) + "]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def repaired_mapping(run: str, logs: Sequence[str], key: str, log: int) -> dict[str, Any]:
    """Apply fixes of a check to the mapping: its text `toml`, the fixed messages `what`, and the rest `by_hand`.

    Args:
        run: Folder of the check.
        logs: Logs of the project.
        key: Key of the finding; "" for all findings.
        log: Index of the log of the finding.
    """
    from steelyard.check.repair_mapping import as_toml, repair_mapping
    from steelyard.check.saved_checks import read_checks
    from steelyard.signals.mapping import file_key, mapping_table
    from steelyard.signals.source import open_log, pieces_of

    project = Project.load(PROJECT_FILE)
    robot, mapping = project.load_robot(), project.path_of(project.mapping)
    checks = read_checks(Path(run))
    selected = _fixes(checks) if not key else {key: log}
    if not selected or not all(0 <= k < min(len(checks), len(logs)) for k in selected.values()):
        raise StudioError("A mapping can fix none of these findings any more; check the logs again.")
    data: dict[str, Any] = mapping_table(mapping)
    what: list[str] = []
    by_hand: list[str] = []
    for k in sorted(set(selected.values())):
        check, keys = checks[k][1], [key for key, of in selected.items() if of == k]
        piece = next(pieces_of(open_log(Path(logs[k]), robot, mapping or None)))
        name = file_key(data.get("files", ()), logs[k])
        own = {key: x for key, x in data.items() if key != "files"} if name is None else data["files"][name]
        repaired, left = repair_mapping(check, robot, piece, own, keys)
        if name is not None:
            data["files"] = {**data["files"], name: repaired}
        else:
            data = {**repaired, **({"files": data["files"]} if "files" in data else {})}
        what += [f"{e.message} ({_fix_text(e)})" for e in check.complaints if e.key in keys and e.fix]
        by_hand += left
    return {"toml": as_toml(data), "what": what, "by_hand": by_hand}
