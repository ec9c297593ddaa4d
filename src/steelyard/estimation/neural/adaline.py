"""`Adaline`: one linear neuron per torque, or one for all, taught by the delta rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.neural._network import Epoch, Network, Patterns, beside, finished, repeat
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# A network that sees a parameter by less than this part of its column does not see it.
_UNSEEN = 1e-9


@estimator("adaline")
@dataclass(frozen=True)
class Adaline(Network):
    """w ← w + γ (τ − x·w) x for every row, `epochs` times over the log (Widrow & Hoff 1960; Urrea & Pascal 2017).

    `networks` "joint": one neuron learns all rows in their order in time. "per-row": a network for every equation, as
    in the paper; each learns what its own torque shows, and a parameter of several networks is the mean of theirs,
    weighted by how well each shows it apart from its others. `step` is γ (None: 0.1/max‖x‖², a twentieth of the limit);
    `scaled` learns with columns and torques of unit size, which is what makes one γ fit all. It starts from the
    prior's base parameters, or from zero, and ends early when an epoch moves no weight by more than `tolerance` of the
    largest.

    Claims: clean rows give the parameters to 1e-6 of the largest once it has converged. Does not claim least squares on
    noisy rows: a constant step ends within a band of about γ times the noise, and depends on the order of rows; nor a
    covariance of its own: error bars are the sandwich of ordinary least squares at its solution.
    """

    about = "one linear neuron, taught by the delta rule"
    order_matters, honest_errors = True, False

    networks: Literal["joint", "per-row"] = "joint"
    step: float | None = None
    epochs: int = 100_000
    scaled: bool = True
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        if self.networks not in ("joint", "per-row"):
            raise EstimationError(f'networks is "joint" or "per-row", not "{self.networks}".')
        if self.step is not None and not self.step > 0.0:
            raise EstimationError(f"step is {self.step}; it must be positive.")
        if self.epochs < 1:
            raise EstimationError(f"epochs is {self.epochs}; at least one is needed.")

    def free(self, data: RegressionData, columns: Columns, start: Array | None = None) -> FreeFit:
        """For any named columns, such as the paper's own eight."""
        free = beside(data, columns)
        patterns = Patterns.of(data, columns, free, self.scaled)
        w = patterns.weights(np.zeros(columns.rank) if start is None else start)
        if self.networks == "joint":
            X = patterns.inputs.reshape(-1, columns.rank)
            made = [self._learn(X, patterns.targets.ravel(), w)]
            beta = patterns.beta(made[0]["weights"])
        else:
            made = self._each(patterns, w, [e.name for e in data.equations])
            beta = patterns.beta(_combined(patterns.inputs, made))
        converged = all(net["converged"] for net in made)
        slow = max(made, key=lambda net: float(net["change"]))
        notes: tuple[str, ...] = () if converged else (
            f"After {slow['epochs']} epochs the weights still moved by {slow['change']:.1e} of the largest in one.",
        )  # fmt: skip
        nets = tuple({**net, "beta": patterns.beta(net["weights"])} for net in made)
        return finished(free, beta, converged, [], notes, {"networks": nets})

    def _each(self, patterns: Patterns, w: Array, names: list[str]) -> list[dict[str, Any]]:
        if patterns.inputs.shape[1] != len(names):
            raise EstimationError("Networks per row need all rows of an instant; set mask to 0.")
        made = []
        for e, name in enumerate(names):
            X = patterns.inputs[:, e]
            seen = np.linalg.norm(X, axis=0) > 0.0
            net = self._learn(X[:, seen], patterns.targets[:, e], w[seen])
            full = np.full(len(w), np.nan)
            full[seen] = net["weights"]
            made.append({**net, "weights": full, "equation": name})
        return made

    def _learn(self, X: Array, d: Array, w: Array) -> dict[str, Any]:
        largest = float(np.max(np.sum(X**2, axis=1), initial=0.0))
        step = self.step if self.step is not None else 0.1 / max(largest, 1e-300)
        epoch = Epoch.of_delta_rule(X, d, step)
        if not epoch.growth < 1.0 + 1e-9:
            raise EstimationError(
                f"The delta rule diverges with step {step:g}: errors grow {epoch.growth:.3g}-fold in an epoch. The "
                f"largest row allows steps below {2.0 / largest:.3g}."
            )
        w, count, change = repeat(epoch, w, self.epochs, self.tolerance)
        return {"weights": w, "step": step, "epochs": count, "change": change, "converged": change < self.tolerance}


def _combined(inputs: Array, made: list[dict[str, Any]]) -> Array:
    """Weighted by the square of what each column shows beyond the others of its network."""
    width = inputs.shape[2]
    total, share = np.zeros(width), np.zeros(width)
    for e, net in enumerate(made):
        seen = np.flatnonzero(np.isfinite(net["weights"]))
        R = np.asarray(np.linalg.qr(inputs[:, e][:, seen], mode="r"))
        for place, k in enumerate(seen):
            others = np.delete(R, place, axis=1)
            rest = R[:, place] - others @ np.linalg.lstsq(others, R[:, place], rcond=None)[0]
            apart = float(rest @ rest)
            if apart > _UNSEEN * float(R[:, place] @ R[:, place]):
                total[k] += apart * net["weights"][k]
                share[k] += apart
    hidden = share == 0.0
    if hidden.any():  # no network shows it alone: the mean of what they say
        means = np.nanmean(np.array([net["weights"] for net in made]), axis=0)
        total, share = np.where(hidden, means, total), np.where(hidden, 1.0, share)
    return np.asarray(total / share)
