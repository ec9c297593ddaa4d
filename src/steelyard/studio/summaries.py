"""Summaries of runs from their `result.json`: a verdict and a small picture, by command.

The file may come from anyone, so every value is checked; a result in another format is reported as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.ground.display import Headline
from steelyard.ground.grades import tone
from steelyard.ground.numbers import number, percent, with_error
from steelyard.report.elements import Html
from steelyard.studio.thumbnails import bars_thumbnail, curve_thumbnail, sign_thumbnail

_LONGEST = 600
_MOST_POINTS = 40


class RunSummary(NamedTuple):
    """Summary of a run: a verdict with reasons, and a picture."""

    headline: Headline
    picture: Html


def summary_of(kind: str, result: Mapping[str, Any]) -> RunSummary:
    """Summarise a run.

    Args:
        kind: Name of its command.
        result: Its result.json.
    """
    for summarise in (_SUMMARIES.get(kind.partition(" ")[0]), _plain):
        if summarise is None:
            continue
        try:
            return summarise(result)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            continue
    return RunSummary(
        Headline("warning", "The result.json of this run is from another version."), sign_thumbnail("No picture", "?")
    )


def guessed_kind(result: Mapping[str, Any]) -> str:
    """Guess the command from the keys of a `result` that was written from Python; "" if unknown."""
    keys = set(result)
    return next((kind for kind, required in _REQUIRED_KEYS.items() if required <= keys), "")


_REQUIRED_KEYS = {
    "identify": {"base_parameters", "verdict", "estimation", "validation"},
    "excite": {"criterion", "plans"},
    "rehearse": {"trials", "passed"},
    "payload": {"mass", "center_of_gravity"},
    "friction": {"joints", "missing", "on"},
    "validate": {"trials", "against"},
    "predict": {"by", "logs"},
    "check": {"entries", "excitation"},
    "calibrate": {"measurement", "identifiability", "volume"},
    "actuator": {"structures", "inseparable", "runs"},
}


# ------------------------------------------------------------ by command


def _identify(result: Mapping[str, Any]) -> RunSummary:
    verdict = result["verdict"]
    scores = result["validation"] or result["identification"]
    errors, old = _errors(scores[0]), _errors(result["nominal"][0]) if result.get("nominal") else []
    words = f"Torque error by joint, % of σ: {_listed(errors)}"
    words += f"; of the nominal model: {_listed(old)}" if old else ""
    headline = _headline(verdict["grade"], f"{_name(result)}. {_text(verdict['sentence'])}", verdict["reasons"])
    return RunSummary(headline, bars_thumbnail(words, errors, old))


def _check(result: Mapping[str, Any]) -> RunSummary:
    logs = result.get("logs") or [result]
    severities = [entry["severity"] for log in logs for entry in log["entries"]]
    order = ("ok", "note", "warning", "problem")
    counts = [sum(s == name for s in severities) for name in order[:3]]
    counts.append(len(severities) - sum(counts))
    worst = max(logs, key=lambda log: ("good", "usable", "mend", "unusable").index(log["grade"]))
    points = [f"{_text(log.get('log', ''))}: {_text(advice)}".lstrip(": ") for log in logs for advice in log["advice"]]
    words = "Findings: " + ", ".join(f"{count} {name}" for count, name in zip(counts, order, strict=True))
    return RunSummary(_headline(worst["grade"], _text(result["verdict"]), points), bars_thumbnail(words, counts))


def _excite(result: Mapping[str, Any]) -> RunSummary:
    verdict, criterion = result["verdict"], result["criterion"]
    points = [(_number(n), math.log(_number(value))) for n, value in criterion["history"] if _number(value) > 0.0]
    fall = f"{number(_number(criterion['start']))} to {number(_number(criterion['value']))}"
    name = _text(criterion["name"])
    sentence = f"{_name(result)}. {name} from {fall}. {_text(verdict['sentence'])}"
    picture = curve_thumbnail(f"The search: {name} from {fall}", points)
    return RunSummary(_headline(verdict["grade"], sentence, verdict["reasons"]), picture)


def _rehearse(result: Mapping[str, Any]) -> RunSummary:
    errors = [_number(trial["error_over_allowed"]) for trial in result["trials"]]
    headline = _headline("good" if result["passed"] is True else "bad", _text(result["verdict"]),
                     [reason["text"] for reason in result["reasons"]])  # fmt: skip
    words = f"Error over the allowed error, by robot: {_listed(errors)}"
    return RunSummary(headline, bars_thumbnail(words, errors, mark=1.0))


def _friction(result: Mapping[str, Any]) -> RunSummary:
    joints = result["joints"]
    laws = ", ".join(f"{_text(joint['joint'])} {_text(joint['law'])}" for joint in joints)
    notes = [f"{joint['joint']}: {note}" for joint in joints for note in joint["notes"]]
    missing = [f"{name}: {reason}" for name, reason in result["missing"].items()]
    points = [(_number(p["velocity"]), _number(p["torque"])) for p in joints[0]["points"]]
    headline = _headline("usable" if missing else "good", f"Friction: {laws}", [*missing, *notes])
    return RunSummary(
        headline, curve_thumbnail(f"Friction of {_text(joints[0]['joint'])} over velocity", points, dots=True)
    )


def _payload(result: Mapping[str, Any]) -> RunSummary:
    loads = result.get("loads") or {"": result}
    texts = []
    for name, load in loads.items():
        mass = with_error(_number(load["mass"]["value"]), _number(load["mass"]["standard_error"]))
        texts.append(f"{name} {mass} kg in frame '{_text(load['frame'])}'".strip())
    notes = [note for load in loads.values() for note in load["notes"]]
    sound = not notes and all(load["physically_consistent"] is True for load in loads.values())
    first = next(iter(loads.values()))
    sign = f"{number(_number(first['mass']['value']), 4)} kg"
    headline = _headline("good" if sound else "usable", "; ".join(texts), notes)
    return RunSummary(headline, sign_thumbnail(f"Payload: {texts[0]}", sign))


def _validate(result: Mapping[str, Any]) -> RunSummary:
    trials = result["trials"]
    lost = [f"{trial['name']}: {way['way']}" for trial in trials for way in trial["ways"] if way["reason"]]
    score = next((trial["score"] for trial in trials if trial.get("score")), None)
    errors = _errors(score) if score else []
    outcome = f"{len(lost)} comparisons failed" if lost else "all comparisons succeeded"
    error = f"; torque error {_span(errors)} % of σ" if errors else ""
    grade = "bad" if lost else "usable" if result["warnings"] else "good"
    headline = _headline(grade, f"{_name(result)} against {_text(result['against'])}: {outcome}{error}",
                     [*lost, *result["warnings"]])  # fmt: skip
    return RunSummary(headline, bars_thumbnail(f"Torque error by joint, % of σ: {_listed(errors)}", errors))


def _predict(result: Mapping[str, Any]) -> RunSummary:
    errors = [_number(x) for log in result["logs"] for x in log["error_percent"] or ()]
    error = f", error {_span(errors)} % of σ" if errors else ""
    sentence = f"Torques of {_name(result)} along {len(result['logs'])} logs by {_text(result['by'])}{error}"
    headline = Headline("note", sentence.replace(" 1 logs ", " 1 log "))
    return RunSummary(headline, bars_thumbnail(f"Torque error, % of σ: {_listed(errors)}", errors))


def _compare(result: Mapping[str, Any]) -> RunSummary:
    key = "schemes" if "schemes" in result else "estimators" if "estimators" in result else ""
    if not key:
        advice = result["advice"]
        points = [advice] if isinstance(advice, str) else list(advice)
        return RunSummary(_headline("note", f"{_name(result)}: estimators compared", points), sign_thumbnail("", "⇄"))
    errors = [_number(one.get("hold_out_nrmse_percent") or 0.0) for one in result[key]]
    best = _text(result["best"] or "")
    headline = _headline("good" if best else "bad", f"{_name(result)}: {best or 'none'} predicts best", ())
    words = ", ".join(f"{one[key[:-1]]} {percent(e, 3)}" for one, e in zip(result[key], errors, strict=True))
    return RunSummary(headline, bars_thumbnail(f"Error on hold-out data: {words}", errors))


def _export(result: Mapping[str, Any]) -> RunSummary:
    files = [_text(name) for name in result["files"]]
    possible = result["possible"] is True
    sentence = f"{_name(result)} as {', '.join(files)}"
    points = () if possible else ("The model is not physically possible; simulators may reject it.",)
    picture = sign_thumbnail(sentence, f"{len(files)} files")
    return RunSummary(_headline("good" if possible else "usable", sentence, points), picture)


def _calibrate(result: Mapping[str, Any]) -> RunSummary:
    verdict, errors = result["verdict"], result["errors"]
    stages = errors.get("holdout") or errors["fit"]
    channel = next(iter(stages["full"]))
    sizes = [1e3 * _number(stages[stage][channel]["mean"]) for stage in ("nominal", "geometry", "full")]
    headline = _headline(verdict["kind"], f"{_name(result)}. {_text(verdict['headline'])}", verdict["points"])
    words = f"Mean {channel} error [mm, mrad]: described, corrected, with all effects {_listed(sizes)}"
    return RunSummary(headline, bars_thumbnail(words, sizes))


def _actuator(result: Mapping[str, Any]) -> RunSummary:
    verdict, runs = result["verdict"], result["runs"]
    errors, goals = ([1e3 * _number(run[key] or 0.0) for run in runs] for key in ("error", "goal_error"))
    headline = _headline(
        verdict["grade"], f"{_text(result['drive']['name'])}. {_text(verdict['sentence'])}", verdict["reasons"]
    )
    words = f"Position error by run, mrad: {_listed(errors)}; of the goal: {_listed(goals)}"
    return RunSummary(headline, bars_thumbnail(words, errors, goals))


def _plain(result: Mapping[str, Any]) -> RunSummary:
    """Summarise any command: its verdict, or the name of its robot."""
    verdict = result.get("verdict")
    if isinstance(verdict, Mapping):
        headline = _headline(str(verdict.get("grade", "")), _text(verdict["sentence"]), verdict.get("reasons", ()))
    else:
        words = verdict if isinstance(verdict, str) else result.get("driven", "")
        headline = _headline("", ". ".join(x for x in (_name(result), _text(words)) if x), ())
    return RunSummary(headline, sign_thumbnail("No picture", "···"))


_SUMMARIES: dict[str, Callable[[Mapping[str, Any]], RunSummary]] = {
    "identify": _identify, "demo": _identify, "check": _check, "excite": _excite, "rehearse": _rehearse,
    "friction": _friction, "payload": _payload, "validate": _validate, "predict": _predict, "compare": _compare,
    "export": _export, "calibrate": _calibrate, "actuator": _actuator,
}  # fmt: skip


# ------------------------------------------------------------ checked values


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value[:_LONGEST]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _name(result: Mapping[str, Any]) -> str:
    robot = result.get("robot", "")
    return _text(robot["name"] if isinstance(robot, Mapping) else robot)


def _errors(score: Mapping[str, Any]) -> list[float]:
    return [_number(moving_error(joint)) for joint in score["joints"]]


def moving_error(joint: Mapping[str, Any]) -> Any:
    """Return the torque error of a `joint` of a score while it moves [% of the torque's standard deviation].

    The verdict uses the same error. If the joint never moves, or in older runs, it is the error of all samples.
    """
    return joint.get("moving", {}).get("nrmse_percent", joint["nrmse_percent"])


def _headline(grade: Any, sentence: str, points: Sequence[Any]) -> Headline:
    texts = tuple(_text(point) for point in points[:_MOST_POINTS])
    return Headline(tone(grade), sentence[:_LONGEST], texts)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(number(value, 3) for value in values[:12])


def _span(values: Sequence[float]) -> str:
    low, high = number(min(values), 2), number(max(values), 2)
    return low if low == high else f"{low}–{high}"
