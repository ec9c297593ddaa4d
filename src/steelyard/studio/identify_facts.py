"""Functions of the stage *Identify* for the helper process: options of the form, and results as HTML.

Large packages are imported inside the functions to keep the server small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.ground.grades import tone
from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, join, paragraph, table_html, text
from steelyard.studio.differences import differences_html
from steelyard.studio.page import attribute
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.summaries import moving_error

_REMEDY = "identify again"
_GROUPS = (("validation", "hold-out"), ("identification", "used for the fit"), ("nominal", "nominal model"))


def identify_facts(controlled: bool) -> dict[str, Any]:
    """Return the options of each field: name, description, and for estimators whether they have a physical form.

    Args:
        controlled: Whether to include estimators that need the controller.
    """
    from steelyard.estimation.registry import ESTIMATORS
    from steelyard.parameters.term import TERMS
    from steelyard.regression.schemes.scheme import SCHEMES

    estimators = [
        (name, entry.about, entry.has_physical_form)
        for name, entry in ESTIMATORS.items()
        if entry.of.physical_form != "itself" and (controlled or not entry.of.needs_controller)
    ]
    return {
        "estimator": estimators,
        "scheme": [(name, _first(kind.__doc__)) for name, kind in SCHEMES.items()],
        "term": [(name, _first(kind.__doc__)) for name, kind in TERMS.items()],
        "prior": [("nominal", "inertias of the robot's file"), ("none", "none")],
        "velocity": [
            ("auto", "the better of the two"), ("measured", "as logged"), ("differentiated", "from the positions"),
        ],
    }  # fmt: skip


def _first(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0].partition(";")[0].rstrip(".")


def read_result(run: str) -> dict[str, Any]:
    """Read the result.json of a `run`."""
    value = read_json(Path(run) / RESULT, StudioError, _REMEDY).value
    if not isinstance(value, dict):
        raise StudioError(f"{run}: {RESULT} is not a JSON object; {_REMEDY}.")
    return value


def identification_html(run: str, report: str = "") -> Html:
    """Render a result of `identify`: verdict, torques and robot, reasons, scores, parameters, structure.

    Args:
        run: Folder of the run.
        report: Address of its report, whose first section has the torques and the robot; "" omits them.
    """
    from steelyard.identification.page import structure_table
    from steelyard.identification.parameters_page import base_table
    from steelyard.identification.structure import StructureStep
    from steelyard.report.html import Verdict, verdict_html

    result = read_result(run)
    try:
        verdict = result["verdict"]
        kind = tone(verdict["grade"])
        rows = result["base_parameters"]["list"]
        structure = result["structure"]
        steps = [StructureStep(**step) for step in structure["steps"]] if structure else []
        pieces: list[str] = [
            verdict_html(Verdict(kind, verdict["sentence"])),  # type: ignore[arg-type]
            _pictures(run, report),
            _reasons(verdict["reasons"]),
            _list_of("remarks", "Remarks on the model", verdict["remarks"]),
            _scores(result),
            _files(result),
            _part("parameters", f"{len(rows)} base parameters with error bars", base_table(rows), True),
        ]
        if structure:
            words = paragraph(
                f"The search compared {structure['tried']} structures on {structure['blocks']} blocks of the logs."
            )
            pieces.append(_part("structure", "Structure of friction and drives", join(words, structure_table(steps))))
    except (LookupError, TypeError) as error:
        raise StudioError(f"{run}: {RESULT} is from another version ({error}); {_REMEDY}.") from None
    return join(*pieces)


def _pictures(run: str, report: str) -> Html:
    """Show the report in a frame, at its first section; a report may be a stranger's, so its page stays apart."""
    if not report:
        return Html("")
    return Html(
        f'<iframe class="report pictures" sandbox="allow-scripts allow-popups allow-downloads" '
        f'title="Torques and robot: report of {attribute(run)}" src="{attribute(report)}#torque-and-robot"></iframe>'
    )


def _reasons(reasons: Sequence[str]) -> Html:
    return _list_of("reasons", "Reasons for the verdict", reasons, True)


def _list_of(name: str, title: str, sentences: Sequence[str], is_open: bool = False) -> Html:
    items = "".join(f"<li>{text(str(sentence))}</li>" for sentence in sentences)
    return _part(name, title, Html(f"<ul>{items}</ul>"), is_open)


def comparison_html(runs: Sequence[str]) -> Html:
    """Render several `runs` side by side."""
    return differences_html([(run, read_result(run)) for run in runs])


def _part(name: str, title: str, inside: str, is_open: bool = False) -> Html:
    attribute = " open" if is_open else ""
    return Html(f'<details id="found-{name}"{attribute}><summary>{text(title)}</summary>{inside}</details>')


def _scores(result: Mapping[str, Any]) -> Html:
    """Render the torque errors by joint and log."""
    from steelyard.identification.score_page import error_level

    groups = [(words, result[key]) for key, words in _GROUPS if result[key]]
    pooled = result.get("torque_error")  # missing in older runs
    if pooled and len(pooled["logs"]) > 1:
        groups.insert(0, ("hold-out", [{"log": "all logs", "joints": pooled["joints"]}]))
    scores = [score for _, some in groups for score in some]
    columns = [{j["joint"]: _float(moving_error(j)) for j in score["joints"]} for score in scores]
    names = dict.fromkeys(name for column in columns for name in column)
    rows: list[Sequence[TableCell]] = [
        (name, *(Heat(column[name], error_level(column[name])) if name in column else None for column in columns))
        for name in names
    ]
    means = [sum(column.values()) / max(len(column), 1) for column in columns]
    rows.append(("mean of joints", *(Heat(m, error_level(m)) for m in means)))
    whole = [[_float(j["nrmse_percent"]) for j in score["joints"]] for score in scores]
    means = [sum(column) / max(len(column), 1) for column in whole]
    rows.append(("mean, with standstill", *(Heat(m, error_level(m)) for m in means)))
    heads = [TableColumn(score["log"], digits=3) for score in scores]
    title = "Torque error while the joint moves, % of the torque's standard deviation (NRMSE)"
    above = [("", 1), *((words, len(some)) for words, some in groups)]
    return table_html(["joint", *heads], rows, title, dash="The torque does not vary.", above=above)


def _files(result: Mapping[str, Any]) -> Html:
    """Render the errors of the written robot files next to the full model; older runs lack them."""
    rows: list[Sequence[TableCell]] = []
    for file in result.get("files", ()):
        worst = max(file["joints"], key=lambda j: _float(j["cost_percent"]))
        cost = f"{worst['joint']}: {_float(worst['model_nrmse_percent']):.1f} → {_float(worst['nrmse_percent']):.1f} %"
        means = (_float(file["mean_nrmse_percent"]), _float(file["model_mean_nrmse_percent"]))
        rows.append((file["file"], file["program"], *means, cost, ", ".join(worst["left_out"]) or "nothing"))
    if not rows:
        return Html("")
    heads = ["file", "read by", "error %", "full model %", "joint with the largest loss", "omitted for this joint"]
    return table_html(heads, rows, "Torque error of the written files, % of the torque's standard deviation")


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)
