"""`Adaline`: one linear neuron per torque, or one for all, taught by the delta rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.neural._network import Epoch, Network, Patterns, Way, beside, finished, repeat
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
    covariance of its own: error bars are the sandwich of ordinary least squares at its solution. `history` has some
    hundred moments of the way, the first epoch's finer; that of each network is in `details["networks"]`.
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
        shares = np.ones((1, columns.rank))
        if self.networks == "joint":
            X = patterns.inputs.reshape(-1, columns.rank)
            made = [self._learn(X, patterns.targets.ravel(), w)]
            beta = patterns.beta(made[0]["weights"])
        else:
            made = self._each(patterns, w, [e.name for e in data.equations])
            shares = _shares(patterns.inputs, [net["weights"] for net in made])
            beta = patterns.beta(_mixed([net["weights"] for net in made], shares))
        converged = all(net["converged"] for net in made)
        slow = max(made, key=lambda net: float(net["change"]))
        notes: tuple[str, ...] = () if converged else (
            f"After {slow['epochs']} epochs the weights still moved by {slow['change']:.1e} of the largest in one.",
        )  # fmt: skip
        ways = [net.pop("way") for net in made]
        nets = tuple(
            {**net, "beta": patterns.beta(net["weights"]), "history": patterns.history(way)}
            for net, way in zip(made, ways, strict=True)
        )
        history = patterns.history(ways[0] if self.networks == "joint" else _together(ways, shares))
        return finished(free, beta, converged, history, notes, {"networks": nets})

    def _each(self, patterns: Patterns, w: Array, names: list[str]) -> list[dict[str, Any]]:
        if patterns.inputs.shape[1] != len(names):
            raise EstimationError("Networks per row need all rows of an instant; set mask to 0.")
        made = []
        for e, name in enumerate(names):
            X = patterns.inputs[:, e]
            seen = np.linalg.norm(X, axis=0) > 0.0
            net = self._learn(X[:, seen], patterns.targets[:, e], w[seen])
            way = Way()
            for at, part in net["way"].all:
                way.add((at, _full(part, seen)))
            made.append({**net, "weights": _full(net["weights"], seen), "way": way, "equation": name})
        return made

    def _learn(self, X: Array, d: Array, w: Array) -> dict[str, Any]:
        largest = float(np.max(np.sum(X**2, axis=1), initial=0.0))
        step = self.step if self.step is not None else 0.1 / max(largest, 1e-300)
        way = Way()
        way.add((0.0, w))
        epoch = Epoch.of_delta_rule(X, d, step, w, way)
        if not epoch.growth < 1.0 + 1e-9:
            raise EstimationError(
                f"The delta rule diverges with step {step:g}: errors grow {epoch.growth:.3g}-fold in an epoch. The "
                f"largest row allows steps below {2.0 / largest:.3g}."
            )
        w, count, change = repeat(epoch, w, self.epochs, self.tolerance, way)
        ended = {"epochs": count, "change": change, "converged": change < self.tolerance}
        return {"weights": w, "step": step, "way": way, **ended}


def _full(part: Array, seen: Array) -> Array:
    """Weights of all columns; missing (NaN) where a network does not see them."""
    out = np.full(len(seen), np.nan)
    out[seen] = part
    return out


def _shares(inputs: Array, weights: list[Array]) -> Array:
    """What each network has to say in each column: the square of what it shows of it beyond its others, as a part."""
    shares = np.zeros((len(weights), inputs.shape[2]))
    for e, mine in enumerate(weights):
        seen = np.flatnonzero(np.isfinite(mine))
        R = np.asarray(np.linalg.qr(inputs[:, e][:, seen], mode="r"))
        for place, k in enumerate(seen):
            others = np.delete(R, place, axis=1)
            rest = R[:, place] - others @ np.linalg.lstsq(others, R[:, place], rcond=None)[0]
            apart = float(rest @ rest)
            if apart > _UNSEEN * float(R[:, place] @ R[:, place]):
                shares[e, k] = apart
    hidden = shares.sum(axis=0) == 0.0  # no network shows it alone: the mean of what they say
    shares[:, hidden] = np.isfinite(np.array(weights))[:, hidden]
    return np.asarray(shares / shares.sum(axis=0))


def _together(ways: list[Way], shares: Array) -> Way:
    """All networks' way as one, at the passes of the longest; the others stand where they last were."""
    longest = max(ways, key=lambda way: way.all[-1][0]).all
    paths = [(np.array([at for at, _ in way.all]), np.array([w for _, w in way.all])) for way in ways]
    out = Way()
    for at, _ in longest:
        out.add((at, _mixed([w[int(np.searchsorted(t, at, "right")) - 1] for t, w in paths], shares)))
    return out


def _mixed(weights: list[Array], shares: Array) -> Array:
    return np.asarray(np.sum(np.where(shares > 0.0, np.nan_to_num(np.array(weights)) * shares, 0.0), axis=0))
