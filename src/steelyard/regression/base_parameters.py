"""`base_parameters`: the identifiable combinations of parameters, from a robot's structure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ShapeError, StructureError, UnknownNameError
from steelyard.ground.arrays import Array, frozen, one_blas_thread
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import Parameter, Terms, TermsLike, as_terms
from steelyard.regression._elimination import DEPENDENT, METHODS, Order, from_null_space, null_space, preference_order
from steelyard.regression._formulas import FormulaGroups, write_groups
from steelyard.regression._structure import HIDDEN, Structure, find_structure, fresh_rows
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

EliminationMethod = Literal["qr", "rref", "svd", "kernel"]
Identifiability = Literal["alone", "combined", "none"]

# Error of a dependent column as a sum of others if the structure omits something hidden (the singular value HIDDEN,
# amplified by the elimination); a user's tolerance replaces it.
_EXACT = 1e-6


@dataclass(frozen=True, eq=False)
class Expanded:
    """Base parameters in sixteen parameters per link, about the centre of mass.

    λ = m, mx, my, mz, the second moments mxx = m·x² … mzx = m·z·x of the centre of mass, and the tensor Jxx … Jzz
    about it. `matrix` @ λ are the base parameters.
    """

    parameters: tuple[Parameter, ...]
    matrix: Array
    formulas: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names: sixteen per link, then those of the terms."""
        return tuple(p.name for p in self.parameters)


@short_repr
@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations of parameters that the torques of a robot depend on.

    With the parameters θ (ten per link, then those of the terms) and any regressor W of the robot,
    W θ = W[:, `independent`] · β, where β = `matrix` @ θ are the base parameters. No other combination of θ is
    identifiable from motion. `matrix` has one row per base parameter and one column per parameter.
    """

    robot: Robot
    terms: Terms
    method: EliminationMethod
    parameters: tuple[Parameter, ...]
    independent: tuple[int, ...]
    matrix: Array
    formulas: tuple[str, ...]
    structure: Structure

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.independent)

    @property
    def names(self) -> tuple[str, ...]:
        """Leading parameter of each combination."""
        return tuple(self.parameters[k].name for k in self.independent)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each combination."""
        return tuple(self.parameters[k].unit for k in self.independent)

    @property
    def condition(self) -> float:
        """σ₁/σᵣ of all columns, scaled to unit norm, over random states."""
        return self.structure.condition

    @property
    def gap(self) -> float:
        """σᵣ/σᵣ₊₁ of the same: the ratio of the weakest visible effect to rounding."""
        return self.structure.gap

    @cached_property
    def classes(self) -> tuple[Identifiability, ...]:
        """Identifiability of each parameter: "alone", "combined" with others, or "none"."""
        shown = np.any(self.matrix != 0.0, axis=0)
        alone = {k for k, row in zip(self.independent, self.matrix, strict=True) if np.count_nonzero(row) == 1}
        return tuple("none" if not shown[k] else "alone" if k in alone else "combined" for k in range(len(shown)))

    @cached_property
    def expanded(self) -> Expanded:
        """The base parameters in sixteen parameters per link, as in the kernel method."""
        links = len(self.robot.links)
        parameters = sixteen_parameters(links, self.terms.parameters)
        A = ten_from_sixteen(links, len(self.terms))
        lead = [16 * (k // 10) + (k % 10 if k % 10 < 4 else k % 10 + 6) if k < 10 * links else k + 6 * links
                for k in self.independent]  # fmt: skip
        with one_blas_thread():
            written = write_groups(self.structure.dynamics, self.matrix @ A, lead, parameters, 16, expand=A)
        return Expanded(parameters, frozen(written.matrix), written.formulas)

    def values(self, theta: ArrayLike) -> Array:
        """Compute β = `matrix` @ θ for one vector `theta` or several, `(…, parameters)`."""
        array = np.asarray(theta, dtype=float)
        if array.shape[-1:] != (len(self.parameters),):
            raise ShapeError(f"theta has shape {array.shape}; it needs {len(self.parameters)} parameters.")
        out: Array = array @ self.matrix.T
        return out

    @cached_property
    def least_values(self) -> Array:
        """Return lower bounds of base parameters that consist of joint terms alone; −∞ for those with link
        parameters.
        """
        links = self.robot.inertial_count
        low, high = (np.array([getattr(p, side) for p in self.parameters]) for side in ("lower", "upper"))
        out = np.full(self.rank, -np.inf)
        for k, row in enumerate(self.matrix):
            used = np.flatnonzero(row)
            if used.size and used.min() >= links:
                out[k] = float(sum(row[i] * (low[i] if row[i] > 0.0 else high[i]) for i in used))
        return frozen(out)

    def impossible_signs(self, beta: ArrayLike) -> NDArray[np.bool_]:
        """Return which values `beta` of base parameters are friction or rotors with an impossible sign."""
        array, least = np.asarray(beta, dtype=float), self.least_values
        return np.asarray(array < least - 1e-9 * np.maximum(np.abs(least), 1e-3))

    def regressor_columns(self, regressor: ArrayLike) -> Array:
        """Select the columns of the base parameters from a `regressor` of this robot, `(…, parameters)`."""
        array = np.asarray(regressor, dtype=float)
        if array.shape[-1:] != (len(self.parameters),):
            raise ShapeError(f"the regressor has shape {array.shape}; it needs {len(self.parameters)} columns.")
        return array[..., list(self.independent)]


def base_parameters(
    robot: RobotLike,
    terms: TermsLike | None = None,
    method: EliminationMethod = "qr",
    order: Order = None,
    tolerance: float | None = None,
) -> BaseParameters:
    """Compute the base parameters of a robot and its joint terms.

    They depend on the structure of the robot alone: the regressor at random states of fixed seeds. Rows of joints with
    unused torque are ignored.

    Args:
        robot: Robot.
        terms: Joint terms to be identified together with the links; None: links alone.
        method: "qr", "rref", "svd" or "kernel"; all give the same result by different algorithms.
        order: Preferred order of the parameters: the first of a dependent group gives it its name. Default: link by
            link in Pinocchio's order, then the terms. The ten names m … Izz in another order apply within each link;
            names of parameters precede all others; a callable is a sort key.
        tolerance: Threshold for singular values, relative to the largest. By default the rank must be clear.

    Raises:
        StructureError: If the rank is not clear.
    """
    if method not in get_args(EliminationMethod):
        raise UnknownNameError("method", method, get_args(EliminationMethod))
    if tolerance is not None and not 0.0 < tolerance < 1.0:
        raise StructureError(f"tolerance is {tolerance}; give a number between 0 and 1, such as 1e-4.")
    robot = as_robot(robot)
    dynamics = Dynamics(robot, as_terms(robot, terms))
    with one_blas_thread():
        structure = find_structure(dynamics, tolerance)
        columns = preference_order(dynamics.parameters, len(robot.links), order)
        independent, echelon = _eliminate(structure, method, columns, tolerance)
        groups = _clean(echelon, independent, structure, tolerance)
        written = write_groups(dynamics, groups, independent, dynamics.parameters, 10)
        _check(structure, independent, written, tolerance)
    return BaseParameters(
        robot=robot,
        terms=dynamics.terms,
        method=method,
        parameters=dynamics.parameters,
        independent=tuple(independent),
        matrix=frozen(written.matrix),
        formulas=written.formulas,
        structure=structure,
    )


def _eliminate(
    structure: Structure, method: EliminationMethod, order: list[int], tolerance: float | None
) -> tuple[list[int], Array]:
    """Return independent columns in order of preference, and the unscaled echelon form over all columns."""
    shown = np.linalg.norm(structure.visible, axis=0) > max(HIDDEN, tolerance or 0.0)
    E, scale = structure.visible * shown, structure.scale
    if method == "kernel":
        independent, echelon = by_kernel(E * scale, len(structure.dynamics.robot.links), order, tolerance)
    else:
        chosen, scaled = METHODS[method](E[:, order], tolerance)
        independent = [order[k] for k in chosen]
        echelon = np.empty_like(scaled)
        echelon[:, order] = scaled
        echelon = echelon * scale / scale[independent, None]
    if len(independent) != structure.rank:
        raise StructureError(
            f"{structure.dynamics.robot.name}: {len(independent)} columns seem independent, but the rank is "
            f"{structure.rank}; --snap 1e-4 (in Python: load_robot(…, snap=1e-4)) may help."
        )
    return independent, echelon


def _clean(echelon: Array, independent: list[int], structure: Structure, tolerance: float | None) -> Array:
    """Replace rounding by exact zeros and ones."""
    weight = np.abs(echelon) * structure.scale[independent, None] / structure.scale
    out = np.where(weight > (tolerance or 0.1 * HIDDEN), echelon, 0.0)
    out[:, independent] = np.eye(len(independent))
    return out


def _check(structure: Structure, independent: list[int], written: FormulaGroups, tolerance: float | None) -> None:
    """Check W θ = W[:, independent] · matrix θ at states other than those of the structure."""
    W = fresh_rows(structure.dynamics)
    error = np.linalg.norm(W - W[:, independent] @ written.matrix, axis=0) / structure.scale
    allowed = _EXACT if tolerance is None else max(_EXACT, 1e3 * tolerance)
    if error.max(initial=0.0) > allowed:
        worst = structure.dynamics.parameters[int(np.argmax(error))].name
        raise StructureError(
            f"{structure.dynamics.robot.name}: parameter '{worst}' does not regroup at other postures (error "
            f"{error.max():.0e}); a term may depend on what random states rarely show."
        )


# The recursive kernel method, on sixteen parameters per link.
#
# Urrea & Pascal 2017, "Parameter identification methods for real redundant manipulators", section 4.1, (32)–(34). The
# sixteen are mass, first moment, the second moments of the centre of mass π = m·(x², y², z², xy, yz, zx), and the
# tensor J about the centre of mass. The tensor about the frame's origin is linear in them, I = J + (tr Π)·1 − Π with
# the matrix Π of the π, so the regressor of the sixteen follows from that of the ten.


SIXTEEN = (
    *("m", "mx", "my", "mz"),
    *("mxx", "myy", "mzz", "mxy", "myz", "mzx"),
    *("Jxx", "Jxy", "Jyy", "Jxz", "Jyz", "Jzz"),
)
_UNITS = ("kg", "kg m", "kg m", "kg m", *("kg m²",) * 12)
# Rows: the tensor in the order xx, xy, yy, xz, yz, zz. Columns: π in the order of (34).
_PARALLEL_AXES = np.array(
    [
        [0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, -1.0, 0.0, 0.0],
        [1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0, -1.0, 0.0],
        [1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


def ten_from_sixteen(links: int, terms: int) -> Array:
    """Compute the matrix A with θ = A λ from sixteen to ten parameters per link.

    Args:
        links: Number of links.
        terms: Number of parameters of terms, which remain unchanged.
    """
    one = np.zeros((10, 16))
    one[:4, :4] = np.eye(4)
    one[4:, 4:10] = _PARALLEL_AXES
    one[4:, 10:] = np.eye(6)
    A = np.zeros((10 * links + terms, 16 * links + terms))
    A[: 10 * links, : 16 * links] = np.kron(np.eye(links), one)
    A[10 * links :, 16 * links :] = np.eye(terms)
    return A


def sixteen_parameters(links: int, of_terms: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """List the names and units m1, mx1, …, mxx1 (m·x² of the centre of mass), …, Jxx1 (about it), …

    Args:
        links: Number of links.
        of_terms: Parameters of terms, which come last.
    """
    of_links = tuple(
        Parameter(f"{name}{i + 1}", unit) for i in range(links) for name, unit in zip(SIXTEEN, _UNITS, strict=True)
    )
    return of_links + tuple(of_terms)


def by_kernel(
    visible: Array, links: int, order: Sequence[int], tolerance: float | None = None
) -> tuple[list[int], Array]:
    """Compute independent columns and echelon form of the ten-parameter regressor, by recursion over the sixteen.

    From the last link to the first (terms first), the kernel of the link's columns and of the remaining ones behind it
    shows which parameters can be added to others; these are eliminated.

    Args:
        visible: Rows that span the row space of the regressor.
        links: Number of links; the columns after theirs belong to terms.
        order: Preferred order of the columns. Of the sixteen, the π come last within their link.
        tolerance: Threshold for zero; by default it must be clear.
    """
    terms = visible.shape[1] - 10 * links
    A = ten_from_sixteen(links, terms)
    wide = visible @ A
    sizes = np.linalg.norm(wide, axis=0)
    sizes[sizes <= (tolerance or DEPENDENT) * (np.linalg.norm(visible, axis=0) @ np.abs(A))] = (
        0.0  # columns that cancel
    )
    wide = np.where(sizes > 0.0, wide / np.where(sizes > 0.0, sizes, 1.0), 0.0)
    groups = np.eye(wide.shape[1])  # row k: the parameters added to parameter k
    standing: list[int] = []
    for block in reversed(_blocks(links, order)):
        candidates = block + standing
        independent, T = from_null_space(null_space(wide[:, candidates], tolerance), len(candidates))
        dependent = [k for k in range(len(candidates)) if k not in set(independent)]
        standing = [candidates[k] for k in independent]
        fallen = [candidates[k] for k in dependent]
        groups[standing] += T[:, dependent] @ groups[fallen]
    echelon = groups[standing] * sizes / sizes[standing, None]
    ten = [_sixteenth(k, links) for k in range(visible.shape[1])]
    place = {wide_index: k for k, wide_index in enumerate(ten)}
    return [place[k] for k in standing], echelon[:, ten]


def _sixteenth(k: int, links: int) -> int:
    """Return the index of column k among sixteen columns per link, which contain the ten parameters of the link."""
    if k >= 10 * links:
        return 6 * links + k
    link, within = divmod(k, 10)
    return 16 * link + (within if within < 4 else within + 6)


def _blocks(links: int, order: Sequence[int]) -> list[list[int]]:
    """Return runs of columns of one link, in order of preference; the π follow the last run of their link."""
    blocks: list[list[int]] = []
    owner = -2
    last: dict[int, int] = {}
    for k in order:
        link = k // 10 if k < 10 * links else -1
        if link != owner:
            blocks.append([])
            owner = link
        blocks[-1].append(_sixteenth(k, links))
        last[link] = len(blocks) - 1
    for link in range(links):
        blocks[last[link]].extend(range(16 * link + 4, 16 * link + 10))
    return blocks
