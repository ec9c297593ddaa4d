"""What the stage *Identify* asks the process aside: what can be chosen, and what a run has found, as HTML. The large
rooms are imported when they are asked, so that the server stays light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted import read_json
from steelyard.report.elements import Heat, Html, TableCell, TableColumn, join, paragraph, table_html, text
from steelyard.studio.differences import differences_html
from steelyard.studio.place import StudioError
from steelyard.studio.summaries import moving_error

_REMEDY = "identify anew"
_GROUPS = (
    ("validation", "not used for the fit"), ("identification", "used for the fit"),
    ("nominal", "the description (nominal)"),
)  # fmt: skip


def identify_facts(controlled: bool) -> dict[str, Any]:
    """Estimators (name, about, whether it has a physically possible form), schemes and terms (name, about) that can be
    chosen; `controlled`: also estimators that need to know the controller."""
    from steelyard.estimation.registry import ESTIMATORS
    from steelyard.parameters.term import TERMS
    from steelyard.regression.schemes.scheme import SCHEMES

    estimators = [
        (name, known.about, known.has_physical_form)
        for name, known in ESTIMATORS.items()
        if known.of.physical_form != "itself" and (controlled or not known.of.needs_controller)
    ]
    return {
        "estimator": estimators,
        "scheme": [(name, _first(kind.__doc__)) for name, kind in SCHEMES.items()],
        "term": [(name, _first(kind.__doc__)) for name, kind in TERMS.items()],
        "prior": [("nominal", "the description's inertias"), ("none", "none")],
        "velocity": [
            ("auto", "the better one"), ("measured", "as logged"), ("differentiated", "from the positions"),
        ],
    }  # fmt: skip


def _first(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0].partition(";")[0].rstrip(".")


def read_result(run: str) -> dict[str, Any]:
    """The result.json of a `run`."""
    found = read_json(Path(run) / RESULT, StudioError, _REMEDY).value
    if not isinstance(found, dict):
        raise StudioError(f"{run}: its {RESULT} is no table; {_REMEDY}.")
    return found


def identified_html(run: str) -> Html:
    """What a `run` of `identify` has found: verdict, scores, parameters with error bars, structure."""
    from steelyard.identification.page import structure_table
    from steelyard.identification.parameters_page import BaseEstimate, base_table
    from steelyard.identification.structure import StructureStep
    from steelyard.report.html import Verdict, verdict_html

    result = read_result(run)
    try:
        verdict = result["verdict"]
        kind = {"good": "good", "usable": "warning", "poor": "bad"}[verdict["grade"]]
        rows = [
            BaseEstimate(
                p["formula"], p["unit"], _float(p["value"]), _float(p["standard_error"]), _float(p["free_value"]),
                None, p["impossible_sign"], p["free_impossible_sign"],
            )
            for p in result["base_parameters"]["list"]
        ]  # fmt: skip
        structure = result["structure"]
        steps = [StructureStep(**step) for step in structure["steps"]] if structure else []
        pieces: list[str] = [
            verdict_html(Verdict(kind, verdict["sentence"], tuple(verdict["reasons"]))),  # type: ignore[arg-type]
            _scores(result),
            _files(result),
            _part("parameters", f"{len(rows)} base parameters with error bars", base_table(rows), True),
        ]
        if structure:
            words = paragraph(
                f"{structure['tried']} structures were tried on {structure['blocks']} blocks of the logs."
            )
            pieces.append(_part("structure", "Structure of friction and drives", join(words, structure_table(steps))))
    except (LookupError, TypeError) as error:
        raise StudioError(f"{run}: its {RESULT} is not as this version writes it ({error}); {_REMEDY}.") from None
    return join(*pieces)


def compared_html(runs: Sequence[str]) -> Html:
    """Those `runs` beside each other."""
    return differences_html([(run, read_result(run)) for run in runs])


def _part(name: str, title: str, inside: str, is_open: bool = False) -> Html:
    shown = " open" if is_open else ""
    return Html(f'<details id="found-{name}"{shown}><summary>{text(title)}</summary>{inside}</details>')


def _scores(result: Mapping[str, Any]) -> Html:
    """Errors joint by joint and log by log."""
    from steelyard.identification.score_page import error_level

    groups = [(words, result[key]) for key, words in _GROUPS if result[key]]
    pooled = result.get("torque_error")  # runs of old have none
    if pooled and len(pooled["logs"]) > 1:
        groups.insert(0, ("all logs that judge", [{"log": "together", "joints": pooled["joints"]}]))
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
    """The robot files: their errors beside the full model's, and the joint that loses most; runs of old have none."""
    rows: list[Sequence[TableCell]] = []
    for file in result.get("files", ()):
        worst = max(file["joints"], key=lambda j: _float(j["cost_percent"]))
        cost = f"{worst['joint']}: {_float(worst['model_nrmse_percent']):.1f} → {_float(worst['nrmse_percent']):.1f} %"
        means = (_float(file["mean_nrmse_percent"]), _float(file["model_mean_nrmse_percent"]))
        rows.append((file["file"], file["program"], *means, cost, ", ".join(worst["left_out"]) or "nothing"))
    if not rows:
        return Html("")
    heads = ["file", "read by", "error %", "full model %", "costliest joint", "left out there"]
    return table_html(heads, rows, "Torque error of the written files, % of the torque's standard deviation")


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)
