"""`ParameterHistory`: how base parameters came about, to be drawn and written whatever estimator went that way."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, Presentation, Viewed

# What an estimator counts its moments by, as the axis says it; the first that is there.
_AXES = {"t": "time [s]", "pass": "passes over the log", "step": "steps", "updates": "updates"}


@dataclass(frozen=True, eq=False)
class ParameterHistory(Viewed):
    """Values of base parameters at some moments of an estimation.

    Attributes:
        title: whose they are.
        names: of the parameters.
        units: of the parameters.
        axis: what moments are counted by, e.g. "time [s]".
        at: the moments.
        beta: `(moments, parameters)`; not numbers where one was not known yet.
        standard_errors: of the last values; None where nobody knows.
        least: what the parameters cannot be below, −∞ where nothing says so; None where nobody knows.
        eigenvalues: of the covariance P that the estimator carries along, `(moments, parameters)`, largest first, in
            its own units; not numbers at moments that do not tell; None where there is no P.
    """

    title: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    axis: str
    at: Array
    beta: Array
    standard_errors: Array | None = None
    least: Array | None = None
    eigenvalues: Array | None = None

    @property
    def impossible(self) -> tuple[str, ...]:
        """The parameters whose last value is friction or a rotor of a sign that none has."""
        if self.least is None:
            return ()
        return tuple(n for n, x, low in zip(self.names, self.beta[-1], self.least, strict=True) if x < low)

    @classmethod
    def of(
        cls, title: str, names: Sequence[str], units: Sequence[str], moments: Sequence[Mapping[str, Any]],
        standard_errors: Array | None = None,
    ) -> ParameterHistory | None:  # fmt: skip
        """From the `history` of an `Estimate`; None where it holds no parameters, or no way.

        Args:
            title: whose they are.
            names, units: of the parameters.
            moments: with "beta" and one of "t" (s), "pass", "step", "updates"; or one after the other. Some may hold
                the "eigenvalues" of P.
            standard_errors: of the last values.
        """
        known = [m for m in moments if "beta" in m]
        if len(known) < 2:
            return None
        key = next((k for k in _AXES if k in known[0]), "")
        at = np.array([float(m[key]) for m in known]) if key else np.arange(1.0, len(known) + 1.0)
        beta = np.array([m["beta"] for m in known], dtype=float)
        told = any("eigenvalues" in m for m in known)
        unknown = [np.nan] * beta.shape[1]
        values = np.array([m.get("eigenvalues", unknown) for m in known], dtype=float) if told else None
        axis = _AXES.get(key, "rounds")
        return cls(title, tuple(names), tuple(units), axis, at, beta, standard_errors, eigenvalues=values)

    def to_json(self) -> dict[str, Any]:
        return {"schema": 1, "axis": self.axis, "names": list(self.names), "units": list(self.units),
                "moments": len(self.at), "last": self.beta[-1].tolist(),
                "impossible_signs": list(self.impossible),
                "why_null": {"last/*": "The motion has not shown it yet."}}  # fmt: skip

    def files(self) -> dict[str, Content]:
        more: dict[str, Content] = {} if self.eigenvalues is None else {"eigenvalues.csv": self.eigenvalues_to_csv}
        return {"history.csv": self.to_csv, **more}

    def to_csv(self, path: Path) -> None:
        """One row per moment, one column per parameter, into the file `path`; empty where one was not known yet."""
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([self.axis, *(f"{n} [{u}]" for n, u in zip(self.names, self.units, strict=True))])
            for at, row in zip(self.at.tolist(), self.beta.tolist(), strict=True):
                # Clocks may count from 1970 on, and moments lie some hundredths of a second apart.
                out.writerow([f"{at:.12g}", *("" if x != x else repr(x) for x in row)])

    def eigenvalues_to_csv(self, path: Path) -> None:
        """One row per moment that tells them, one column per eigenvalue of P, the largest first, into the file
        `path`; "inf" where nothing was known yet."""
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
