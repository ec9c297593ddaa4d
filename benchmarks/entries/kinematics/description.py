"""The described geometry: only sensor and tool are fitted, by Pinocchio and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from entries.problem import Array, MissingError, PoseProblem


class Entry:
    name = "description"
    offsets = False

    def fit(self, problem: PoseProblem) -> None:
        try:
            self.model = problem.pinocchio()
            from scipy.optimize import least_squares
        except ImportError as error:
            raise MissingError("pip install pin scipy") from error
        seen, count = problem.points, problem.points.shape[1]
        turns, places = self._tips(problem.q)
        # R (T c) + p = seen is linear in Rᵀ, Rᵀ p and c; the linear solution is the start.
        A, y = [], []
        for k in range(count):
            rows = np.zeros((len(seen), 3, 12 + 3 * count))
            rows[:, 0, 0:3] = rows[:, 1, 3:6] = rows[:, 2, 6:9] = seen[:, k]
            rows[:, :, 9:12], rows[:, :, 12 + 3 * k : 15 + 3 * k] = -np.eye(3), -turns
            whole = np.isfinite(seen[:, k]).all(axis=1)
            A.append(rows[whole].reshape(-1, rows.shape[2]))
            y.append(places[whole].ravel())
        x = np.linalg.lstsq(np.concatenate(A), np.concatenate(y), rcond=None)[0]
        U, _, V = np.linalg.svd(x[:9].reshape(3, 3).T)
        self.base = U @ np.diag([1.0, 1.0, np.linalg.det(U @ V)]) @ V
        start = np.concatenate([np.zeros(3), self.base @ x[9:12], x[12:], np.zeros(problem.q.shape[1])])
        self.free = len(start) if self.offsets else len(start) - problem.q.shape[1]

        def error(part: Array) -> Array:
            full = np.concatenate([part, start[len(part) :]])
            return (self._points(full, problem.q, count) - seen)[np.isfinite(seen)]

        # The usual robust loss, at the scale of the errors of the start.
        scale = max(float(np.median(np.abs(error(start[: self.free])))), 1e-6)
        best = least_squares(error, start[: self.free], loss="soft_l1", f_scale=scale, x_scale="jac").x
        self.solution, self.count = np.concatenate([best, start[self.free :]]), count

    def predict(self, q: Array, before: Array) -> Array:
        return self._points(self.solution, q, self.count)

    def _points(self, x: Array, q: Array, count: int) -> Array:
        import pinocchio as pin

        turns, places = self._tips(q + x[6 + 3 * count :])
        inside = places[:, None] + np.einsum("nij,kj->nki", turns, x[6 : 6 + 3 * count].reshape(count, 3))
        return inside @ (self.base @ pin.exp3(x[:3])).T + x[3:6]

    def _tips(self, q: Array) -> tuple[Array, Array]:
        import pinocchio as pin

        data: Any = self.model.createData()
        turns, places = np.empty((len(q), 3, 3)), np.empty((len(q), 3))
        for k, row in enumerate(q):
            pin.forwardKinematics(self.model, data, row)
            turns[k], places[k] = data.oMi[-1].rotation, data.oMi[-1].translation
        return turns, places
