"""A good script of fifty lines: Pinocchio's regressor with rotor, viscous, Coulomb and offset columns, least squares.

Every joint is weighted by its residuals until they stand still; directions without information are left at zero.
"""

from __future__ import annotations

import numpy as np

from entries.problem import Array, MissingError, Problem

# Smallest singular value of scaled columns that is used, relative to the largest.
_LEAST = 1e-6
_ROUNDS = 20


class Entry:
    name = "script"

    def fit(self, problem: Problem) -> None:
        try:
            self.model = problem.pinocchio()
        except ImportError as error:
            raise MissingError("pip install pin") from error
        self.data, self.problem = self.model.createData(), problem
        W = np.concatenate([self._columns(log.q, log.dq, log.ddq) for log in problem.logs])
        y = np.concatenate([log.tau for log in problem.logs])
        length = np.linalg.norm(W.reshape(-1, W.shape[2]), axis=0)
        length[length == 0.0] = 1.0
        _, values, V = np.linalg.svd(np.linalg.qr(W.reshape(-1, W.shape[2]) / length, mode="r"))
        B = V[values > _LEAST * values[0]].T / length[:, None]
        weights = np.ones(y.shape[1])
        for _ in range(_ROUNDS):
            A = (W * weights[:, None]).reshape(-1, W.shape[2]) @ B
            self.theta = B @ np.linalg.lstsq(A, (y * weights).ravel(), rcond=None)[0]
            weights = 1.0 / np.sqrt(np.mean((y - W @ self.theta) ** 2, axis=0))

    def predict(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        parts = range(0, len(t), 4000)
        return np.concatenate([self._columns(q[k : k + 4000], dq[k : k + 4000], ddq[k : k + 4000]) for k in parts]) @ (
            self.theta
        )

    def _columns(self, q: Array, dq: Array, ddq: Array) -> Array:
        import pinocchio as pin

        rows = zip(q, dq, ddq, strict=True)
        Y = np.array([pin.computeJointTorqueRegressor(self.model, self.data, *row).copy() for row in rows])
        drives = [dq, np.clip(dq / self.problem.ramp, -1.0, 1.0), np.ones_like(dq)]
        drives += [ddq] if self.problem.rotor else []
        return np.concatenate([Y, *(np.eye(q.shape[1]) * x[:, :, None] for x in drives)], axis=2)
