"""Adaline: one linear neuron per torque, or one for all, trained by the delta rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.neural._network import (
    Epoch,
    Network,
    Patterns,
    WeightHistory,
    least_squares_fit,
    network_fit,
    repeat,
)
from steelyard.estimation.registry import estimator
from steelyard.ground.arrays import Array
from steelyard.regression.data import RegressionData
from steelyard.regression.unknowns import Columns

# Smallest part of a column that a network must see to estimate its parameter.
_MIN_VISIBLE = 1e-9


@estimator("adaline")
@dataclass(frozen=True)
class Adaline(Network):
    """w ← w + γ (τ − x·w) x for every row, repeated over the log (Widrow & Hoff 1960; Urrea & Pascal 2017).

    Properties: without noise the converged parameters are exact to 1e-6 of the largest. With noise the result differs
        from
    least squares: a constant step ends in a band of about γ times the noise and depends on the order of the rows. Error
    bars are the sandwich covariance of ordinary least squares at the solution. `history` has some hundred steps, finer
    in the first epoch; that of each network is in `details["networks"]`.

    Attributes:
        networks: "joint": one neuron learns all rows in order of time. "per-row": one network for every equation, as
            in the paper. A parameter of several networks is their mean, weighted by its information in each.
        step: γ; None: 0.1/max‖x‖², a twentieth of the limit.
        epochs: Largest number of epochs.
        scaled: Learn with columns and torques of unit size, so that one γ suits all.
        tolerance: Change of the weights, relative to the largest, that ends the learning.
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
        """Fit any named columns, such as the eight of the paper.

        Args:
            data: The rows.
            columns: The unknowns.
            start: Initial values of the unknowns; None: zero.
        """
        free = least_squares_fit(data, columns)
        patterns = Patterns.of(data, columns, free, self.scaled)
        w = patterns.weights(np.zeros(columns.rank) if start is None else start)
        shares = np.ones((1, columns.rank))
        if self.networks == "joint":
            X = patterns.inputs.reshape(-1, columns.rank)
            nets = [self._learn(X, patterns.targets.ravel(), w)]
            beta = patterns.beta(nets[0]["weights"])
        else:
            nets = self._each(patterns, w, [e.name for e in data.equations])
            shares = _shares(patterns.inputs, [net["weights"] for net in nets])
            beta = patterns.beta(_weighted_mean([net["weights"] for net in nets], shares))
        converged = all(net["converged"] for net in nets)
        slow = max(nets, key=lambda net: float(net["change"]))
        notes: tuple[str, ...] = () if converged else (
            f"Not converged: the last of {slow['epochs']} epochs still changed a weight by {slow['change']:.1e} of "
            "the largest.",
        )  # fmt: skip
        histories = [net.pop("history") for net in nets]
        results = tuple(
            {**net, "beta": patterns.beta(net["weights"]), "history": patterns.history(history)}
            for net, history in zip(nets, histories, strict=True)
        )
        history = patterns.history(histories[0] if self.networks == "joint" else _merged_history(histories, shares))
        return network_fit(free, beta, converged, history, notes, {"networks": results})

    def _each(self, patterns: Patterns, w: Array, names: list[str]) -> list[dict[str, Any]]:
        if patterns.inputs.shape[1] != len(names):
            raise EstimationError("Networks per row need all rows of an instant; set mask to 0.")
        nets = []
        for e, name in enumerate(names):
            X = patterns.inputs[:, e]
            visible = np.linalg.norm(X, axis=0) > 0.0
            net = self._learn(X[:, visible], patterns.targets[:, e], w[visible])
            history = WeightHistory()
            for at, part in net["history"].all:
                history.add((at, _full(part, visible)))
            nets.append({**net, "weights": _full(net["weights"], visible), "history": history, "equation": name})
        return nets

    def _learn(self, X: Array, d: Array, w: Array) -> dict[str, Any]:
        largest = float(np.max(np.sum(X**2, axis=1), initial=0.0))
        step = self.step if self.step is not None else 0.1 / max(largest, 1e-300)
        history = WeightHistory()
        history.add((0.0, w))
        epoch = Epoch.of_delta_rule(X, d, step, w, history)
        if not epoch.growth < 1.0 + 1e-9:
            raise EstimationError(
                f"The delta rule diverges with step {step:g}: errors grow {epoch.growth:.3g}-fold in an epoch. The "
                f"largest row allows steps below {2.0 / largest:.3g}."
            )
        w, count, change = repeat(epoch, w, self.epochs, self.tolerance, history)
        ending = {"epochs": count, "change": change, "converged": change < self.tolerance}
        return {"weights": w, "step": step, "history": history, **ending}


def _full(part: Array, visible: Array) -> Array:
    """Weights of all columns; NaN for those that a network does not see."""
    out = np.full(len(visible), np.nan)
    out[visible] = part
    return out


def _shares(inputs: Array, weights: list[Array]) -> Array:
    """Weight of each network for each column: the square of the column's part that is independent of the network's
    others."""
    shares = np.zeros((len(weights), inputs.shape[2]))
    for e, mine in enumerate(weights):
        visible = np.flatnonzero(np.isfinite(mine))
        R = np.asarray(np.linalg.qr(inputs[:, e][:, visible], mode="r"))
        for position, k in enumerate(visible):
            others = np.delete(R, position, axis=1)
            rest = R[:, position] - others @ np.linalg.lstsq(others, R[:, position], rcond=None)[0]
            independent = float(rest @ rest)
            if independent > _MIN_VISIBLE * float(R[:, position] @ R[:, position]):
                shares[e, k] = independent
    hidden = shares.sum(axis=0) == 0.0  # not independent in any network: use the mean
    shares[:, hidden] = np.isfinite(np.array(weights))[:, hidden]
    return np.asarray(shares / shares.sum(axis=0))


def _merged_history(histories: list[WeightHistory], shares: Array) -> WeightHistory:
    """Joint history of all networks at the passes of the longest; the others keep their last values."""
    longest = max(histories, key=lambda history: history.all[-1][0]).all
    paths = [(np.array([at for at, _ in history.all]), np.array([w for _, w in history.all])) for history in histories]
    out = WeightHistory()
    for at, _ in longest:
        out.add((at, _weighted_mean([w[int(np.searchsorted(t, at, "right")) - 1] for t, w in paths], shares)))
    return out


def _weighted_mean(weights: list[Array], shares: Array) -> Array:
    return np.asarray(np.sum(np.where(shares > 0.0, np.nan_to_num(np.array(weights)) * shares, 0.0), axis=0))
