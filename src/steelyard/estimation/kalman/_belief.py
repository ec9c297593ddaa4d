"""Mean and covariance of (base parameters, state), stored as a matrix or as a square root.

Parameters come first. They are constant, so a step does not change their block of the covariance (or of its root):

    P = L Lᵀ,  L = [Lp 0; D Lx]   →   L' = [Lp 0; D' Lx'],   D' = B Lp + A D,   Lx' Lx'ᵀ = A Lx Lxᵀ Aᵀ + Q.

A prediction therefore provides D' (`along`) and columns C with Lx' Lx'ᵀ = C Cᵀ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dgeqrf, dpotrf, dtrtrs

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array


class NotPositiveDefiniteError(SteelyardError):
    """A covariance became indefinite because of rounding or an extreme step."""


class Belief(ABC):
    """β and x with their joint covariance; positions, the first part of the state, are measured."""

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
        """Joint covariance, parameters first."""

    @property
    @abstractmethod
    def root(self) -> Array:
        """Lower triangular root: `root` @ `root`.T is the covariance."""

    @abstractmethod
    def save_root(self) -> Array:
        """Return the root for sigma points and store it for `propagate_points`."""

    @abstractmethod
    def _begin(self, covariance: Array, state: Array) -> None: ...

    @abstractmethod
    def restart(self, x: Array, state: Array) -> None:
        """Start a new run with state `x` and standard deviations `state`; the parameters do not change."""

    @abstractmethod
    def propagate(self, x: Array, A: Array, B: Array, noise: Array) -> None:
        """Propagate linearly, with derivatives by state (`A`) and parameters (`B`), and columns of noise."""

    @abstractmethod
    def propagate_points(self, x: Array, along: Array, columns: Array) -> None:
        """Propagate with sigma points: D' and C of the module docstring."""

    @abstractmethod
    def drift(self, variance: Array) -> None:
        """Add `variance` to the parameters."""

    @abstractmethod
    def measure(self, q: Array, noise: Array) -> Array:
        """Update with measured positions `q` of standard deviations `noise`; returns the normalised innovation."""


class CovarianceBelief(Belief):
    """Belief with the covariance as a matrix."""

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
        self._set_state(x, cross)

    def propagate_points(self, x: Array, along: Array, columns: Array) -> None:
        p = self.p
        root = self._last_root[:p, :p]
        self.P[p:, p:] = along @ along.T + columns @ columns.T
        self._set_state(x, along @ root.T)

    def _set_state(self, x: Array, cross: Array) -> None:
        p, P = self.p, self.P
        P[p:, p:] = 0.5 * (P[p:, p:] + P[p:, p:].T)
        P[p:, :p], P[:p, p:] = cross, cross.T
        self.z[p:] = x

    def save_root(self) -> Array:
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
        innovation = _solve(half, q - self.z[p : p + n])
        self.z += innovation @ W
        self.P -= W.T @ W
        return innovation


class SquareRootBelief(Belief):
    """Belief with a lower triangular root, updated by orthogonal transformations: half the digits are sufficient."""

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

    def save_root(self) -> Array:
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
        """Rotate [√R HL; 0 L] into [√S 0; K√S L'] (Kaminski, Bryson & Schmidt 1971)."""
        p, n, d = self.p, len(q), len(self.z)
        stacked = np.zeros((d + n, d + n))
        stacked[:n, :n] = np.diag(noise)
        stacked[:n, n:] = self.L[p : p + n]
        stacked[n:, n:] = self.L
        rotated = _lower(stacked)
        innovation = _solve(rotated[:n, :n], q - self.z[p : p + n])
        self.z += rotated[n:, :n] @ innovation
        self.L = rotated[n:, n:]
        return innovation


def _cholesky(P: Array) -> Array:
    result, fault = dpotrf(P, lower=1, clean=1)
    if fault:
        raise NotPositiveDefiniteError("The covariance is no longer positive definite.")
    return np.asarray(result)


def _solve(lower: Array, right: Array) -> Array:
    result, fault = dtrtrs(lower, right, lower=1)
    if fault:
        raise NotPositiveDefiniteError("The covariance of the innovation is singular.")
    return np.asarray(result)


def _lower(columns: Array) -> Array:
    """Lower triangular L with L Lᵀ = columns · columnsᵀ."""
    rows = len(columns)
    result = dgeqrf(np.ascontiguousarray(columns.T))[0]
    L = np.zeros((rows, rows))
    high = min(rows, columns.shape[1])
    L[:, :high] = np.tril(result[:high].T[:, :high])
    return L
