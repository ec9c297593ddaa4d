"""Tests the assumptions of a fit against the logs and passes objections to the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.assumptions.harm import MOST_OF_THE_ERROR, SAFE_SIGMAS

if TYPE_CHECKING:
    from steelyard.assumptions.ledger import Entry
    from steelyard.identification._verdict import Objection
    from steelyard.identification.identification import Identification
    from steelyard.study import Study


def add_ledger(result: Identification, study: Study, judges: Study) -> Identification:
    """Add the ledger of assumptions to an identification.

    Args:
        result: Identification without a ledger.
        study: Study of the fitted logs, with the terms of the model.
        judges: Study of the validation logs, with the same terms.
    """
    from steelyard.assumptions.examine import examine_assumptions  # Not needed for the verdict alone.

    joints = result.torque_error.joints
    rmse, nrmse = (np.array([getattr(j, name) for j in joints]) for name in ("rmse", "nrmse_percent"))
    ledger = examine_assumptions(study, result.model, judges, rmse, nrmse, result.estimate.standard_errors)
    return replace(result, assumptions=ledger)


def assumption_objections(result: Identification) -> Iterator[Objection]:
    """List refuted assumptions that increase the error, on logs like the validation logs or on others."""
    for entry in () if result.assumptions is None else result.assumptions.refuted:
        if entry.harmful:
            most = entry.least_harm_percent > MOST_OF_THE_ERROR
            yield "poor" if most else "usable", f"These logs contradict an assumption. {entry.sentence}"
        elif _misleads(entry):
            yield (
                "usable",
                "These logs contradict an assumption. The model predicts logs without this mistake badly. "
                f"{entry.sentence}",
            )
    if result.assumptions is not None and result.assumptions.contradiction:
        yield "usable", result.assumptions.contradiction


def harmless_refutations(result: Identification) -> Iterator[str]:
    """List refuted assumptions that do not limit the grade."""
    for entry in _shared_refutations(result):
        yield f"These logs contradict an assumption, without harm on similar logs. {entry.sentence}"


def _shared_refutations(result: Identification) -> list[Entry]:
    """Refuted assumptions that increase the error only on logs unlike these, or that move parameters."""
    refuted = () if result.assumptions is None else result.assumptions.refuted
    rests = [e for e in refuted if e.torques_rest_on_it or e.sigmas > SAFE_SIGMAS]
    return [e for e in rests if not e.harmful and not _misleads(e)]


def _misleads(entry: Entry) -> bool:
    """Whether a wrong assumption causes most of the error on logs without it, so that the parameters are wrong."""
    return not entry.suspect.ambiguous and entry.elsewhere_percent > MOST_OF_THE_ERROR


def conditions(result: Identification) -> str:
    """State what the predicted torques rest on: refuted assumptions that all logs share, and untestable ones."""
    ledger, parts = result.assumptions, []
    if shared := _shared_refutations(result):
        parts.append(f"This holds for logs with the same deviation: {', '.join(e.value for e in shared)}.")
    if ledger is not None and ledger.conditions:
        parts.append(f"These logs do not test: {ledger.named(ledger.conditions)}.")
    return " ".join(parts)


def parameter_conditions(result: Identification) -> Iterator[str]:
    """Name the untestable assumptions that affect parameters, but not predicted torques."""
    ledger = result.assumptions
    if ledger is not None and ledger.parameter_conditions:
        yield (
            "These assumptions are not tested either. If one is wrong, parameters can be off by more than their "
            f"standard errors, though predicted torques are not: {ledger.named(ledger.parameter_conditions)}."
        )
