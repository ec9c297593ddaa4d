"""`Belief`: mean and covariance of (base parameters, state), kept whole or as a square root.

Parameters come first. They do not move, so a step leaves their block of the covariance (or of its root) as it is:

    P = L Lᵀ,  L = [Lp 0; D Lx]   →   L' = [Lp 0; D' Lx'],   D' = B Lp + A D,   Lx' Lx'ᵀ = A Lx Lxᵀ Aᵀ + Q.

What a prediction has to deliver is therefore D' (`along`) and columns C with Lx' Lx'ᵀ = C Cᵀ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dgeqrf, dpotrf, dtrtrs

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array


class LostPositiveError(SteelyardError):
    """A covariance that rounding, or a step too wild, has made indefinite."""


class Belief(ABC):
    """β and x with their joint covariance; measurements are the positions, the first of the state."""

    def __init__(self, beta: Array, covariance: Array, x: Array, state: Array) -> None:
        self.p = len(beta)
        self.z = np.concatenate([beta, x])
        self._begin(covariance, state)

    @property
    def beta(self) -> Array:
        return self.z[: self.p]

    @property
    def x(self) -> Array:
        return self.z[self.p :]

    @property
    @abstractmethod
    def covariance(self) -> Array:
        """Of everything, parameters first."""

    @property
    @abstractmethod
    def root(self) -> Array:
        """Lower triangular, `root` @ `root`.T the covariance."""

    @abstractmethod
    def remember(self) -> Array:
        """The root that sigma points are made from; `propagate_points` refers to it."""

    @abstractmethod
    def _begin(self, covariance: Array, state: Array) -> None: ...

    @abstractmethod
    def restart(self, x: Array, state: Array) -> None:
        """A new run: the state starts anew, with standard deviations `state`; parameters keep what is known."""

    @abstractmethod
    def propagate(self, x: Array, A: Array, B: Array, noise: Array) -> None:
        """The linear way: derivatives by state and parameters, and columns of noise."""

    @abstractmethod
    def propagate_points(self, x: Array, along: Array, columns: Array) -> None:
        """The way of sigma points: D' and C of the note above."""

    @abstractmethod
    def drift(self, variance: Array) -> None:
        """Parameters that wander."""

    @abstractmethod
    def measure(self, q: Array, noise: Array) -> Array:
        """Take in measured positions with standard deviations `noise`; gives the normalised innovation."""


class WholeBelief(Belief):
    """The covariance itself."""

    def _begin(self, covariance: Array, state: Array) -> None:
        d = len(self.z)
        self.P = np.zeros((d, d))
        self.P[: self.p, : self.p] = covariance
        self.restart(self.x.copy(), state)

    def restart(self, x: Array, state: Array) -> None:
        p = self.p
        self.z[p:] = x
        self.P[:p, p:], self.P[p:, :p] = 0.0, 0.0
        self.P[p:, p:] = np.diag(state**2)

    @property
    def covariance(self) -> Array:
        return self.P

    @property
    def root(self) -> Array:
        return _cholesky(self.P)

    def propagate(self, x: Array, A: Array, B: Array, noise: Array) -> None:
        p, P = self.p, self.P
        cross = A @ P[p:, :p] + B @ P[:p, :p]
        P[p:, p:] = (A @ P[p:, p:] + B @ P[:p, p:]) @ A.T + cross @ B.T + noise @ noise.T
        self._close(x, cross)

    def propagate_points(self, x: Array, along: Array, columns: Array) -> None:
        p = self.p
        root = self._last_root[:p, :p]
        self.P[p:, p:] = along @ along.T + columns @ columns.T
        self._close(x, along @ root.T)

    def _close(self, x: Array, cross: Array) -> None:
        p, P = self.p, self.P
        P[p:, p:] = 0.5 * (P[p:, p:] + P[p:, p:].T)
        P[p:, :p], P[:p, p:] = cross, cross.T
        self.z[p:] = x

    def remember(self) -> Array:
        self._last_root = self.root
        return self._last_root

    def drift(self, variance: Array) -> None:
        at = np.arange(self.p)
        self.P[at, at] += variance

    def measure(self, q: Array, noise: Array) -> Array:
        p, n = self.p, len(q)
        S = self.P[p : p + n, p : p + n].copy()
        S.flat[:: n + 1] += noise**2
        half = _cholesky(S)
        W = _solve(half, self.P[p : p + n])
        miss = _solve(half, q - self.z[p : p + n])
        self.z += miss @ W
        self.P -= W.T @ W
        return miss


class RootBelief(Belief):
    """A lower triangular root, updated by orthogonal transformations: half the digits are enough."""

    def _begin(self, covariance: Array, state: Array) -> None:
        d = len(self.z)
        self.L = np.zeros((d, d))
        self.L[: self.p, : self.p] = _cholesky(covariance)
        self.restart(self.x.copy(), state)

    def restart(self, x: Array, state: Array) -> None:
        p = self.p
        self.z[p:] = x
        self.L[p:, :p] = 0.0
        self.L[p:, p:] = np.diag(state)

    @property
    def covariance(self) -> Array:
        return self.L @ self.L.T

    @property
    def root(self) -> Array:
        return self.L

    def remember(self) -> Array:
        return self.L

    def propagate(self, x: Array, A: Array, B: Array, noise: Array) -> None:
        p, L = self.p, self.L
        self.propagate_points(x, B @ L[:p, :p] + A @ L[p:, :p], np.hstack([A @ L[p:, p:], noise]))

    def propagate_points(self, x: Array, along: Array, columns: Array) -> None:
        p = self.p
        self.L[p:, :p] = along
        self.L[p:, p:] = _lower(columns)
        self.z[p:] = x

    def drift(self, variance: Array) -> None:
        extra = np.zeros((len(self.z), self.p))
        extra[: self.p] = np.diag(np.sqrt(variance))
        self.L = _lower(np.hstack([self.L, extra]))

    def measure(self, q: Array, noise: Array) -> Array:
        """[√R HL; 0 L] is rotated into [√S 0; K√S L'] (Kaminski, Bryson & Schmidt 1971)."""
        p, n, d = self.p, len(q), len(self.z)
        stacked = np.zeros((d + n, d + n))
        stacked[:n, :n] = np.diag(noise)
        stacked[:n, n:] = self.L[p : p + n]
        stacked[n:, n:] = self.L
        turned = _lower(stacked)
        miss = _solve(turned[:n, :n], q - self.z[p : p + n])
        self.z += turned[n:, :n] @ miss
        self.L = turned[n:, n:]
        return miss


def _cholesky(P: Array) -> Array:
    found, fault = dpotrf(P, lower=1, clean=1)
    if fault:
        raise LostPositiveError("The covariance is no longer positive definite.")
    return np.asarray(found)


def _solve(lower: Array, right: Array) -> Array:
    found, fault = dtrtrs(lower, right, lower=1)
    if fault:
        raise LostPositiveError("The covariance of the innovation is singular.")
    return np.asarray(found)


def _lower(columns: Array) -> Array:
    """Lower triangular L with L Lᵀ = columns · columnsᵀ."""
    rows = len(columns)
    found = dgeqrf(np.ascontiguousarray(columns.T))[0]
    L = np.zeros((rows, rows))
    high = min(rows, columns.shape[1])
    L[:, :high] = np.tril(found[:high].T[:, :high])
    return L
