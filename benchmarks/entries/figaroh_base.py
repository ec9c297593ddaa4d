"""FIGAROH's base parameters: its regressor builder, elimination and double QR (1.0.2), as its examples call them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from entries.problem import Array, MissingError, Problem

# Smallest squared norm of a column that its examples keep.
_TOLERANCE = 1e-6


class Entry:
    name = "FIGAROH"

    def fit(self, problem: Problem) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from figaroh.tools.qrdecomposition import QRDecomposer
                from figaroh.tools.regressor import build_regressor_reduced, get_index_eliminate
        except ImportError as error:
            raise MissingError("pip install figaroh") from error
        self.model = problem.pinocchio()
        self.data = self.model.createData()
        n = self.model.nv
        self.settings = {"act_idxv": list(range(n)), "has_friction": True, "has_actuator_inertia": problem.rotor,
                         "has_joint_offset": True, "is_joint_torques": True}  # fmt: skip
        q, dq, ddq, tau = (np.concatenate([getattr(log, x) for log in problem.logs]) for x in ("q", "dq", "ddq", "tau"))
        W = self._build(q, dq, ddq)
        names = {f"p{k}": 1.0 for k in range(W.shape[1])}
        self.out, left = get_index_eliminate(W, names, _TOLERANCE)
        qr = QRDecomposer()
        self.phi = qr.double_decomposition(tau.T.ravel(), build_regressor_reduced(W, self.out), left)[3]
        self.base = qr.get_base_indices()

    def predict(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        W = np.delete(self._build(q, dq, ddq), self.out, 1)[:, self.base]
        return (W @ self.phi).reshape(q.shape[1], len(q)).T

    def _build(self, q: Array, dq: Array, ddq: Array) -> Any:
        from figaroh.tools.regressor import build_regressor_basic

        class Wrapper:
            model, data = self.model, self.data

        return build_regressor_basic(Wrapper, q, dq, ddq, self.settings)
