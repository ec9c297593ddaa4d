"""`SchemeRows`: rows of integral models along a motion: energy balances, or momentum balances joint by joint.

    energy     [E_kin + E_pot] over a window + ∫ dissipation dt  = ∫ τᵀq̇ dt        (one equation)
    momentum   [P] over a window + ∫ D dt                        = ∫ τ dt         (one per joint)

Kozłowski & Dutkiewicz 1996, eqs. 6–7 and 19, and their kin. Windows follow each other ("short") or all start at the
beginning ("long"). Everything is linear in the values of regressors along the motion, so gradients run through their
adjoints. Integrals are trapezoids at the samples, as they will be in the identification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation.sampled import Sampled
from steelyard.ground.arrays import Array
from steelyard.regression.schemes import SCHEMES


@dataclass(frozen=True)
class Windows:
    """Pairs of samples between which a balance is drawn."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    step: float

    @staticmethod
    def along(samples: int, rate: float, window: float, long: bool) -> Windows:
        width = max(1, round(window * rate))
        edges = np.arange(0, samples, width, dtype=np.int64)
        if len(edges) < 2:
            raise ExcitationError(f"A window of {window:g} s does not fit into the motion; give a shorter one.")
        starts = np.zeros(len(edges) - 1, dtype=np.int64) if long else edges[:-1]
        return Windows(starts, edges[1:], 1.0 / rate)

    def difference(self, values: Array) -> Array:
        out: Array = values[self.ends] - values[self.starts]
        return out

    def integral(self, values: Array) -> Array:
        total = np.zeros_like(values)
        total[1:] = np.cumsum(0.5 * self.step * (values[1:] + values[:-1]), axis=0)
        return self.difference(total)

    def pull_difference(self, rows: Array, samples: int) -> Array:
        out = np.zeros((samples, *rows.shape[1:]))
        np.add.at(out, self.ends, rows)
        np.add.at(out, self.starts, -rows)
        return out

    def pull_integral(self, rows: Array, samples: int) -> Array:
        later = self.pull_difference(rows, samples)[::-1].cumsum(axis=0)[::-1]  # Σ over all later samples
        out = np.zeros_like(later)
        out[1:] += 0.5 * self.step * later[1:]
        out[:-1] += 0.5 * self.step * later[1:]
        return out


class SchemeRows:
    """Rows of an integral model over chosen columns; see the head of the file."""

    def __init__(
        self,
        dynamics: Dynamics,
        columns: Sequence[int],
        sampled: Sampled,
        scheme: str,
        joints: Sequence[int],
        windows: Windows,
    ) -> None:
        windowed = [name for name, known in SCHEMES.items() if known.windowed]
        if scheme not in windowed:
            raise UnknownNameError("scheme", scheme, ("dynamic", *windowed))
        balance = SCHEMES[scheme].balance
        self.dynamics, self.sampled, self.windows = dynamics, sampled, windows
        self.columns = np.array(columns, dtype=np.int64)
        self.differenced, self.integrated = balance.stored, balance.lost
        self._joints = None if balance.scalar else np.array(joints, dtype=np.int64)
        names = dynamics.robot.joint_names
        self.names = (balance.name,) if self._joints is None else tuple(names[j] for j in joints)
        self.places = tuple(np.arange(len(self.columns)) for _ in self.names)

    def _inputs(self, name: str) -> dict[str, Array]:
        signals = dict(zip(("q", "dq", "ddq"), self._signals, strict=True))
        return {x: signals[x] for x in self.dynamics.function(name).inputs}

    def _chosen(self, values: Array) -> Array:
        """(samples, equations, columns) of a regressor's values."""
        picked = values[..., self.columns]
        return picked[:, None] if self._joints is None else picked[:, self._joints]

    def grams(self, x: Array) -> list[Array]:
        self._signals = self.sampled.signals(x)
        self._rows = np.zeros((len(self.windows.ends), len(self.names), len(self.columns)))
        for names, operate in ((self.differenced, self.windows.difference), (self.integrated, self.windows.integral)):
            for name in names:
                self._rows += operate(self._chosen(self.dynamics.evaluator(name)(self._inputs(name))))
        return [self._rows[:, e].T @ self._rows[:, e] for e in range(len(self.names))]

    def pull(self, weights: Sequence[Array]) -> Array:
        back = np.stack([2.0 * self._rows[:, e] @ S for e, S in enumerate(weights)], axis=1)
        total = {x: np.zeros_like(s) for x, s in zip(("q", "dq", "ddq"), self._signals, strict=True)}
        samples = self.sampled.samples
        for names, transposed in (
            (self.differenced, self.windows.pull_difference),
            (self.integrated, self.windows.pull_integral),
        ):
            cotangent = transposed(back, samples)
            for name in names:
                function = self.dynamics.function(name)
                full = np.zeros((samples, *function.shape))
                if self._joints is None:
                    full[:, self.columns] = cotangent[:, 0]
                else:
                    full[:, self._joints[:, None], self.columns] = cotangent
                for x, bar in self.dynamics.adjoint(name, full, **self._inputs(name)).items():
                    total[x] += bar
        return self.sampled.pull_signals([total["q"], total["dq"], total["ddq"]])
