"""The history of base parameters during an estimation, for plots and files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.short_repr import short_repr

# Key in a step of the history -> label of its axis; the first key that exists is used.
_AXES = {"t": "time [s]", "pass": "passes over the log", "step": "steps", "updates": "updates"}


@short_repr
@dataclass(frozen=True, eq=False)
class ParameterHistory(OutcomeWithPage):
    """Values of base parameters at steps of an estimation.

    Attributes:
        title: Title of plots.
        names: Names of the parameters.
        units: Units of the parameters.
        axis: Label of the axis of the steps, e.g. "time [s]".
        at: Positions of the steps on this axis.
        beta: Values, shape (steps, parameters); NaN if not known yet.
        standard_errors: Standard errors of the last values, if known.
        lower_bounds: Smallest possible values, −∞ without bound; None if unknown.
        eigenvalues: Eigenvalues of the estimator's covariance P, shape (steps, parameters), largest first, in its own
            units; NaN for steps without them; None without P.
    """

    title: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    axis: str
    at: Array
    beta: Array
    standard_errors: Array | None = None
    lower_bounds: Array | None = None
    eigenvalues: Array | None = None

    @property
    def impossible(self) -> tuple[str, ...]:
        """Names of parameters (friction, rotors) whose last value has an impossible sign."""
        if self.lower_bounds is None:
            return ()
        return tuple(n for n, x, low in zip(self.names, self.beta[-1], self.lower_bounds, strict=True) if x < low)

    @classmethod
    def of(
        cls, title: str, names: Sequence[str], units: Sequence[str], steps: Sequence[Mapping[str, Any]],
        standard_errors: Array | None = None,
    ) -> ParameterHistory | None:  # fmt: skip
        """Create it from the `history` of an `Estimate`; None if that has fewer than two steps with parameters.

        Args:
            title: Title of plots.
            names: Names of the parameters.
            units: Units of the parameters.
            steps: Steps with "beta", optionally "eigenvalues" of P and one of "t" [s], "pass", "step", "updates".
            standard_errors: Standard errors of the last values.
        """
        with_beta = [m for m in steps if "beta" in m]
        if len(with_beta) < 2:
            return None
        key = next((k for k in _AXES if k in with_beta[0]), "")
        at = np.array([float(m[key]) for m in with_beta]) if key else np.arange(1.0, len(with_beta) + 1.0)
        beta = np.array([m["beta"] for m in with_beta], dtype=float)
        has_eigenvalues = any("eigenvalues" in m for m in with_beta)
        unknown = [np.nan] * beta.shape[1]
        values = np.array([m.get("eigenvalues", unknown) for m in with_beta], dtype=float) if has_eigenvalues else None
        axis = _AXES.get(key, "rounds")
        return cls(title, tuple(names), tuple(units), axis, at, beta, standard_errors, eigenvalues=values)

    def to_json(self) -> dict[str, Any]:
        return {"schema": 1, "axis": self.axis, "names": list(self.names), "units": list(self.units),
                "moments": len(self.at), "last": self.beta[-1].tolist(),
                "impossible_signs": list(self.impossible),
                "why_null": {"last/*": "It was not identifiable yet."}}  # fmt: skip

    def files(self) -> dict[str, Content]:
        more: dict[str, Content] = {} if self.eigenvalues is None else {"eigenvalues.csv": self.eigenvalues_to_csv}
        return {"history.csv": self.to_csv, **more}

    def to_csv(self, path: Path) -> None:
        """Write a CSV file `path` with a row per step and a column per parameter; cells of unknown values are empty."""
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([self.axis, *(f"{n} [{u}]" for n, u in zip(self.names, self.units, strict=True))])
            for at, row in zip(self.at.tolist(), self.beta.tolist(), strict=True):
                # 12 digits: clocks may count from 1970, and steps may be some hundredths of a second apart.
                out.writerow([f"{at:.12g}", *("" if x != x else repr(x) for x in row)])

    def eigenvalues_to_csv(self, path: Path) -> None:
        """Write a CSV file `path` with a row per step and a column per eigenvalue of P, largest first; "inf": not
        known yet."""
        assert self.eigenvalues is not None
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([self.axis, *(f"eigenvalue {k + 1} of P" for k in range(self.eigenvalues.shape[1]))])
            for at, row in zip(self.at.tolist(), self.eigenvalues.tolist(), strict=True):
                if not any(x != x for x in row):
                    out.writerow([f"{at:.12g}", *map(repr, row)])

    def view(self) -> Presentation:
        from steelyard.estimation.history_page import history_report, print_history

        return history_report, print_history
