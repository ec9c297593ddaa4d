"""`nearest_links`: link parameters with positive masses and centres of mass within reach, nearest to a fit.

Both conditions are one second-order cone per link: ‖h‖ ≤ r m, with the mass m, the first moment h and the reach r. A
logarithmic barrier keeps to them while Newton minimises the distance to the fit (Boyd & Vandenberghe, chapter 11).
"""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array

_BARRIERS = 10.0 ** np.arange(2.0, -7.0, -1.0)
_NEWTON = 30
# A link is at the border of its cone if less than this share of its reach is left.
_AT_BORDER = 1e-3


def nearest_links(
    groups: Array, beta: Array, information: Array, slope: Array, middle: Array, std: Array, reach: Array
) -> tuple[Array, tuple[int, ...]]:
    """Find the parameters whose base parameters are nearest to a fit, within the cones of all links.

    Args:
        groups: Combination of parameters that each base parameter is.
        beta: Base parameters of the fit.
        information: Their information.
        slope: Slope of the log-likelihood at `beta`.
        middle: Parameters where the data say nothing.
        std: Standard deviations of the prior.
        reach: Largest distance of the centre of mass from the link's frame [m], one per link.

    Returns:
        The parameters, and the links at the border of their cone.
    """
    links = len(reach)
    H = groups.T @ information @ groups + np.diag(std**-2)
    h = groups.T @ (information @ beta + slope) + middle / std**2
    x = middle.copy()
    mass = np.arange(links) * 4
    x[mass] = np.maximum(x[mass], 1e-2 * std[mass])
    for k in range(links):
        x[4 * k + 1 : 4 * k + 4] *= min(
            1.0, 0.5 * reach[k] * x[4 * k] / max(np.linalg.norm(x[4 * k + 1 : 4 * k + 4]), 1e-300)
        )
    shape = [np.diag([r**2, -1.0, -1.0, -1.0]) for r in reach]
    for mu in _BARRIERS:
        for _ in range(_NEWTON):
            gradient, hessian = H @ x - h, H.copy()
            for k in range(links):
                own = slice(4 * k, 4 * k + 4)
                f, df = float(x[own] @ shape[k] @ x[own]), 2.0 * shape[k] @ x[own]
                gradient[own] -= mu * df / f
                hessian[own, own] += mu * (np.outer(df, df) / f**2 - 2.0 * shape[k] / f)
            scale = np.sqrt(np.diag(hessian))
            step = -np.linalg.solve(hessian / np.outer(scale, scale), gradient / scale) / scale
            decrement = float(-gradient @ step)
            factor = 1.0
            while factor > 1e-9 and not _inside(x + factor * step, reach):
                factor *= 0.5
            now = _cost(x, H, h, mu, reach)
            while factor > 1e-9 and _cost(x + factor * step, H, h, mu, reach) > now:
                factor *= 0.5
            x = x + factor * step
            if decrement < 1e-9:
                break
    blocks = x[: 4 * links].reshape(links, 4)
    left = 1.0 - np.linalg.norm(blocks[:, 1:], axis=1) / (reach * blocks[:, 0])
    return x, tuple(int(k) for k in np.flatnonzero(left < _AT_BORDER))


def _inside(x: Array, reach: Array) -> bool:
    blocks = x[: 4 * len(reach)].reshape(-1, 4)
    return bool(np.all(blocks[:, 0] > 0.0) and np.all(np.linalg.norm(blocks[:, 1:], axis=1) < reach * blocks[:, 0]))


def _cost(x: Array, H: Array, h: Array, mu: float, reach: Array) -> float:
    if not _inside(x, reach):
        return np.inf
    blocks = x[: 4 * len(reach)].reshape(-1, 4)
    room = (reach * blocks[:, 0]) ** 2 - np.sum(blocks[:, 1:] ** 2, axis=1)
    return float(0.5 * x @ H @ x - h @ x - mu * np.sum(np.log(room)))
