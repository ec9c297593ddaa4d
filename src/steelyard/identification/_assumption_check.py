"""Tests the assumptions of a fit against the logs and passes objections to the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.assumptions.harm import MOST_OF_THE_ERROR

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


def harmless_refutations(result: Identification) -> Iterator[str]:
    """List refuted assumptions that increase the error only on logs unlike these."""
    for entry in () if result.assumptions is None else result.assumptions.refuted:
        if entry.torques_rest_on_it and not _misleads(entry):
            yield f"These logs contradict an assumption, without harm on similar logs. {entry.sentence}"


def _misleads(entry: Entry) -> bool:
    """Whether a wrong assumption causes most of the error on logs without it, so that the parameters are wrong."""
    return not entry.suspect.ambiguous and entry.elsewhere_percent > MOST_OF_THE_ERROR


def untested_assumptions(result: Identification) -> str:
    """Name the relevant assumptions that the logs cannot test; "" if there are none or no test was made."""
    ledger = result.assumptions
    return "" if ledger is None or not ledger.conditions else ledger.named(ledger.conditions)
