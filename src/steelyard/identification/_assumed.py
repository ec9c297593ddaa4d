"""What the logs say of the assumptions of a fit, and what that means for the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from steelyard.assumptions.ledger import Entry
    from steelyard.identification._verdict import Against
    from steelyard.identification.identification import Identification
    from steelyard.study import Study

# Per cent by which a refuted assumption makes the torque error grow, from where on most of the error is its own.
MOST_OF_THE_ERROR = 100.0


def with_assumptions(found: Identification, study: Study, judges: Study) -> Identification:
    """Add the ledger of assumptions to what was found.

    Args:
        found: The identification.
        study: Study of the logs that were fitted to, with the terms of the model.
        judges: The same of the logs that judge.
    """
    from steelyard.assumptions.keep import keep_ledger  # who gives the verdict alone needs none of it

    joints = found.torque_error.joints
    rmse, nrmse = (np.array([getattr(j, name) for j in joints]) for name in ("rmse", "nrmse_percent"))
    ledger = keep_ledger(study, found.model, judges, rmse, nrmse, found.estimate.standard_errors)
    return replace(found, assumptions=ledger)


def against_assumptions(found: Identification) -> Iterator[Against]:
    """Say which assumptions the logs refute so far that it matters, on logs like those that judge or on others."""
    for entry in () if found.assumptions is None else found.assumptions.refuted:
        if entry.harmful:
            most = entry.least_harm_percent > MOST_OF_THE_ERROR
            yield "poor" if most else "usable", f"The logs refute an assumption. {entry.sentence}"
        elif _misleads(entry):
            yield (
                "usable",
                f"The logs refute an assumption; logs without the mistake are predicted badly. {entry.sentence}",
            )


def refuted_lines(found: Identification) -> Iterator[str]:
    """Say which refuted assumptions do no harm on logs like these, but would on others."""
    for entry in () if found.assumptions is None else found.assumptions.refuted:
        if entry.torques_rest_on_it and not _misleads(entry):
            yield f"The logs refute an assumption; it does no harm on logs like these. {entry.sentence}"


def _misleads(entry: Entry) -> bool:
    """Whether most of the error on a log without the mistake would be due to it: the parameters are not the robot's."""
    return not entry.suspect.ambiguous and entry.elsewhere_percent > MOST_OF_THE_ERROR


def conditions(found: Identification) -> str:
    """Name what predicted torques rest on and the logs cannot show; "": nothing, or nobody looked."""
    ledger = found.assumptions
    return "" if ledger is None or not ledger.conditions else ledger.named(ledger.conditions)
