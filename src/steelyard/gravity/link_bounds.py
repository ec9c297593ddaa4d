"""`nearest_links`: link parameters with positive masses and centres of mass within reach, nearest to a fit.

Both conditions are one second-order cone per link: ‖h‖ ≤ r m, with the mass m, the first moment h and the reach r. A
logarithmic barrier enforces them, and Newton's method minimises the distance to the fit (Boyd & Vandenberghe, chapter
11).
"""

from __future__ import annotations

import numpy as np

from steelyard.ground.arrays import Array

_BARRIERS = 10.0 ** np.arange(2.0, -7.0, -1.0)
_NEWTON = 30
_MOST_INFORMATION = 1e10
# A link is at the border of its cone if its remaining reach is below this share.
_AT_BORDER = 1e-3


def nearest_links(
    groups: Array, beta: Array, information: Array, slope: Array, middle: Array, std: Array, reach: Array
) -> tuple[Array, tuple[int, ...]]:
    """Find the parameters whose base parameters are nearest to a fit, within the cones of all links.

    Args:
        groups: Coefficients of the parameters in each base parameter, shape (base parameters, parameters).
        beta: Base parameters of the fit.
        information: Information matrix of `beta`.
        slope: Slope of the log-likelihood at `beta`.
        middle: Prior values, for directions without data.
        std: Standard deviations of the prior.
        reach: Largest distance of the centre of mass from the link's frame [m], one per link.

    Returns:
        The parameters, and the links at the border of their cone.
    """
    links = len(reach)
    H = groups.T @ information @ groups
    # If the information of the data is much larger than that of the prior, rounding removes the prior. A factor on the
    # information of the data prevents this and does not change the optimum in the directions that the data determine.
    share = min(1.0, _MOST_INFORMATION / float(np.linalg.eigvalsh(H * np.outer(std, std))[-1]))
    H = share * H + np.diag(std**-2)
    h = share * groups.T @ (information @ beta + slope) + middle / std**2
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
            gradient, hessian, room = H @ x - h, H.copy(), _room(x, reach)
            for k in range(links):
                own = slice(4 * k, 4 * k + 4)
                f, df = float(room[k]), 2.0 * shape[k] @ x[own]
                gradient[own] -= mu * df / f
                hessian[own, own] += mu * (np.outer(df, df) / f**2 - 2.0 * shape[k] / f)
            scale = np.sqrt(np.diag(hessian))
            step = -np.linalg.solve(hessian / np.outer(scale, scale), gradient / scale) / scale
            decrement = float(-gradient @ step)
            factor, here = 1.0, _room(x, reach)
            # Limit the step towards the border: the barrier is steep there.
            while factor > 1e-9 and not np.all(_room(x + factor * step, reach) >= 0.05 * here):
                factor *= 0.5
            now = _cost(x, H, h, mu, reach)
            while factor > 1e-9 and _cost(x + factor * step, H, h, mu, reach) > now:
                factor *= 0.5
            x = x + factor * step
            if decrement < 1e-9:
                break
    blocks = x[: 4 * links].reshape(links, 4)
    margin = 1.0 - np.linalg.norm(blocks[:, 1:], axis=1) / (reach * blocks[:, 0])
    return x, tuple(int(k) for k in np.flatnonzero(margin < _AT_BORDER))


def _room(x: Array, reach: Array) -> Array:
    """Compute (r m)² − ‖h‖² of each link; negative outside of its cone."""
    blocks = x[: 4 * len(reach)].reshape(-1, 4)
    ends, moments = reach * blocks[:, 0], np.linalg.norm(blocks[:, 1:], axis=1)
    return np.asarray(np.where(ends > 0.0, (ends - moments) * (ends + moments), -1.0))


def _cost(x: Array, H: Array, h: Array, mu: float, reach: Array) -> float:
    room = _room(x, reach)
    return np.inf if np.any(room <= 0.0) else float(0.5 * x @ H @ x - h @ x - mu * np.sum(np.log(room)))
