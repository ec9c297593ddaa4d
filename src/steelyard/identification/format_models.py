"""Fits for each robot file format the best model that it can store.

Removing terms from the full model would bias the predictions of a file with only damping and dry friction. Therefore
inertias, damping and friction are fitted again without the terms that the format lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import Estimate
from steelyard.export._simple_terms import COUPLED, simple_terms
from steelyard.export.capability import CAPABILITIES, FITTED
from steelyard.export.mjcf import model_to_mjcf
from steelyard.export.urdf import model_to_urdf
from steelyard.ground.arrays import Array
from steelyard.identification._extra_variance import jackknife_variance, widen_error_bars, widened_by_shift
from steelyard.identification.simulated_friction import sharp_or_soft
from steelyard.parameters.friction import Coulomb
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.schemes import Dynamic
from steelyard.study import Study

# Ratio of the other speed at which dry friction may bend to the usual one; the search tries its inverse.
_ROUNDER = 3.0
_WRITERS: dict[str, Callable[[Model, Path, Path | None], tuple[str, ...]]] = {
    "urdf": model_to_urdf,
    "mjcf": model_to_mjcf,
}


@dataclass(frozen=True, eq=False)
class FormatModel:
    """The best model that a file format can store.

    Args:
        name: Name of the format.
        model: Model for the file.
        errors: Standard errors by name of the parameters of `model` that are identifiable alone.
    """

    name: str
    model: Model
    errors: Mapping[str, float]

    @property
    def numbers(self) -> dict[str, Array]:
        """Joint numbers of the file by name, one per joint, in SI units."""
        terms = simple_terms(self.model, CAPABILITIES[self.name].numbers)
        return {name: getattr(terms, name) for name in CAPABILITIES[self.name].numbers if name != COUPLED}

    def write(self, path: Path, source: Path | None = None) -> tuple[str, ...]:
        """Write the file and return notes on omitted terms.

        Args:
            path: File to write.
            source: Description of the robot to keep except for its numbers.
        """
        return _WRITERS[self.name](self.model, path, source)


def fit_formats(study: Study, terms: Terms, fit: Callable[[Study], tuple[Estimate, Model]]) -> tuple[FormatModel, ...]:
    """Fit the best model for each format in `FITTED`.

    Args:
        study: Study of the full model; of streamed logs only the beginnings are fitted.
        terms: Terms of the full model.
        fit: Function that fits a study with its given terms.
    """
    plain = study.opening  # Reuses existing rows for default terms and scheme.
    if not isinstance(plain.scheme, Dynamic) or plain.known_friction or plain.reference is not None:
        plain = replace(plain, scheme=Dynamic(), known_friction={}, reference=None)
    shifts = _rounding_shifts(plain)
    done: dict[tuple[str, ...], tuple[RegressionData, Estimate, Model]] = {}
    out = []
    for name in FITTED:
        own = CAPABILITIES[name].terms(study.robot, terms)
        if own.names not in done:
            fitted = plain if own.terms == plain.terms.terms else _with_terms(plain, own)
            estimate, model = fit(fitted)
            shift = np.array([shifts.get(name, 0.0) for name in estimate.base.names])
            estimate = widened_by_shift(estimate, shift)
            done[own.names] = fitted.rows, estimate, model
        rows, estimate, model = done[own.names]
        if name == "mjcf":
            rows, estimate, model = sharp_or_soft(plain, done[own.names], fit)
        out.append(FormatModel(name, model, _errors(rows, estimate)))
    return tuple(out)


def _with_terms(study: Study, own: Terms) -> Study:
    """Return the study with other terms; if these are a subset of its terms, its rows are reused."""
    changed = replace(study, terms=own)
    if all(term in study.terms.terms for term in own.terms):
        parts = study.rows.parts or (study.rows,)
        rows = RegressionData.concatenate([_projected(part, study.base, changed.base) for part in parts])
        vars(changed)["rows"] = rows
    return changed


def _projected(data: RegressionData, wide: BaseParameters, base: BaseParameters) -> RegressionData:
    """Convert rows over the base parameters `wide` to rows over `base` of the same robot with fewer terms.

    With the omitted terms at zero, the wide parameters are a linear function of the narrow ones.
    """
    names = [p.name for p in wide.parameters]
    common = [names.index(base.parameters[k].name) for k in base.independent]
    columns = np.array(base.independent, dtype=np.int64)
    maps = [wide.matrix[np.ix_(e.among(wide.independent)[1], common)] for e in data.equations]
    # Zero columns of an equation belong to joints that do not affect it.
    own = [np.flatnonzero(np.any(m != 0.0, axis=0)) for m in maps]
    equations = tuple(replace(e, columns=columns[k]) for e, k in zip(data.equations, own, strict=True))
    orders = [e.among(wide.independent)[0] for e in data.equations]
    blocks = [
        replace(b, A=b.A[:, orders[b.equation]] @ maps[b.equation][:, own[b.equation]], unfiltered=None)
        for b in data.blocks()
    ]
    return RegressionData(equations, len(base.parameters), lambda: blocks, data.period)


def _rounding_shifts(study: Study) -> dict[str, float]:
    """Return the shifts of the terms' parameters, by name, if dry friction bends at a higher speed, by quick fits.

    The fit assumes that speed, and files do not contain it. All blocks of a log have the same error from it.

    Args:
        study: Study with the usual terms.
    """
    rounder = [replace(t, smooth=_ROUNDER * t.smooth) if isinstance(t, Coulomb) else t for t in study.terms.terms]
    if tuple(rounder) == study.terms.terms:
        return {}
    other = replace(study, terms=Terms(study.robot, tuple(rounder)))
    shift = other.quick_fit()[0].theta - study.quick_fit()[0].theta
    parameters = study.base.parameters[study.robot.inertial_count :]
    return {p.name: float(x) for p, x in zip(parameters, shift[study.robot.inertial_count :], strict=True)}


def _errors(rows: RegressionData, estimate: Estimate) -> dict[str, float]:
    """Return the standard errors of parameters that are base parameters by themselves.

    They include the variation between blocks, since the omitted terms bias the numbers differently in every motion.

    Args:
        rows: Fitted rows.
        estimate: Fit to them.
    """
    estimate = widen_error_bars(estimate, jackknife_variance(rows, estimate))
    base = estimate.base
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    pairs = zip(base.names, estimate.standard_errors, alone, strict=True)
    return {name: float(error) for name, error, single in pairs if single}
