"""`Study`: shared intermediate results of check, tuning, fit, error bars and scores, each computed once.

These are prepared motions, the dynamics with its terms, base parameters and rows. Short logs are filtered once. Longer
ones, in memory or not, are processed in the same pieces; their first piece, which determines settings, is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError, StructureError
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import Terms, TermsLike, identification_terms
from steelyard.regression.band import BandChoice, BandLevels
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.regression.delay import DelayEstimate
from steelyard.regression.observe import observe, with_history
from steelyard.regression.schemes import Dynamic, Scheme
from steelyard.regression.schemes.scheme import Balanced
from steelyard.regression.schemes.still import Curve
from steelyard.regression.study_cache import StudyCache
from steelyard.regression.torque_between import BetweenChoice, choose_between, delay_of
from steelyard.robot.free import refuse_free
from steelyard.robot.robot import Robot
from steelyard.signals.log import Finding, Log, refuse_without_torque
from steelyard.signals.prepare import (
    Motion,
    Preparation,
    chosen_cutoff,
    prepare,
)
from steelyard.signals.repeats import without_repeats
from steelyard.signals.robot_setup import apply_log_setup
from steelyard.signals.source import LogFile, Source, ahead, is_one_piece, pieces_of, read_beginnings
from steelyard.signals.velocity import VelocityPlan

# Changes a log before it is prepared, for instance by a second rounding of its positions.
_Change = Callable[[Log], Log]
# A column this much smaller than the largest is rounding: differences of constant positions, filtered.
ROUNDING_SHARE = 1e-10


@dataclass(frozen=True, eq=False)
class Study:
    """Logs of one robot with shared intermediate results.

    Attributes:
        robot: Robot, mounted and coupled as the logs state.
        logs: The logs; long ones have several pieces, and files are streamed.
        beginnings: Each log, or the first piece of a long one; they determine settings.
        terms: Joint terms.
        preparation: Settings for the preparation of signals.
        cutoff_hz: Cut-off of the low-pass on both sides of y = A θ [Hz].
        scheme: Form of the equations.
        known_friction: Friction curves over velocity, by joint, that are subtracted from the torque.
        reference: Model that gives the joint loads to terms that depend on load; None: a fit to the beginnings of the
            logs without those terms.
        known_base: Earlier base parameters, used if they belong to this robot and its terms.
        band: Choice of the cut-off by the logs; None: it is stated, or follows from the motion.
        between: Torque between samples; None: not examined.
        delay: Delay of the torques by the logs, also stated in the preparation; None: no delay.
        sources: Source of each joint's velocity; None: by the preparation, log by log.
        look: Checks each later piece of a long log during a pass (`later`); None: no check.
        cache: Results that studies of the same logs share.
    """

    robot: Robot
    logs: tuple[Source, ...]
    beginnings: tuple[Log, ...]
    terms: Terms
    preparation: Preparation
    cutoff_hz: float
    scheme: Scheme = field(default_factory=Dynamic)
    known_friction: Mapping[str, Curve] = field(default_factory=dict)
    reference: Model | None = None
    known_base: BaseParameters | None = None
    band: BandChoice | None = None
    between: BetweenChoice | None = None
    delay: DelayEstimate | None = None
    sources: VelocityPlan | None = None
    look: Callable[[Robot, Log], Sequence[Finding]] | None = None
    cache: StudyCache = field(default_factory=StudyCache, repr=False)
    # Remaining pieces of files whose first piece was read.
    _remaining: dict[int, Iterator[Log]] = field(default_factory=dict, repr=False)
    # Findings of a complete pass over the later pieces of each long log.
    _findings: dict[int, tuple[Finding, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        robot: Robot,
        logs: Source | Sequence[Source],
        terms: TermsLike | None = None,
        preparation: Preparation | None = None,
        needs_torque: bool = True,
    ) -> Study:
        """Open the logs, and determine mounting and cut-off from them.

        Args:
            robot: Robot as described.
            logs: One log or several.
            terms: Joint terms by name or as objects (default: those of `identify`).
            preparation: Filter, derivatives, masks; open settings are chosen by the logs.
            needs_torque: Refuse a log whose torques are all zero; wrist sensors need no joint torques.
        """
        several = (logs,) if isinstance(logs, Log | LogFile) else tuple(logs)
        sources: tuple[Source, ...] = tuple(without_repeats(s) if isinstance(s, Log) else s for s in several)
        if not sources:
            raise SteelyardError("Identification needs at least one log; name one.")
        sources, beginnings, remaining = read_beginnings(sources)
        if needs_torque:
            refuse_without_torque(beginnings)
        refuse_free(robot, "this does not support it", "identify_floating does.")
        mounted = apply_log_setup(robot, beginnings)
        settings = preparation or Preparation()
        bound = identification_terms(mounted, terms)
        return cls(
            mounted, sources, beginnings, bound, settings, chosen_cutoff(beginnings, settings), _remaining=remaining
        )

    def prepared_as(self, preparation: Preparation) -> Study:
        """Return a study of the same logs with another `preparation`."""
        cutoff_hz = chosen_cutoff(self.beginnings, preparation)
        return replace(self, preparation=preparation, cutoff_hz=cutoff_hz, band=None, sources=None)

    def leave_tables(self, levels: BandLevels) -> None:
        """Keep [A y] of the `levels` of the band for the search, which uses the same rows."""
        self.cache.band_tables[:] = [levels]

    def take_tables(self, motions: Sequence[Motion]) -> Iterator[list[Array]]:
        """Return, once, [A y] of the stretches of `motions`, if the choice of the band computed them."""
        return iter(self.cache.band_tables.pop().tables_of(self.base, motions) if self.cache.band_tables else ())

    def with_torque_between(self) -> Study:
        """Determine the torque between samples, unless the preparation or the scheme states it."""
        scheme_states = isinstance(self.scheme, Balanced) and self.scheme.stated_rule != "auto"
        stated = self.preparation.torque_between
        if scheme_states and stated != "auto":
            raise SteelyardError(
                f"The scheme says '{self.scheme.stated_rule}' and --torque-between (torque_between) '{stated}' about "  # type: ignore[attr-defined]
                "the torque between samples; state one of them."
            )
        if self.between is not None or scheme_states:
            return self
        if stated != "auto":
            return replace(self, between=BetweenChoice(stated, stated=True))
        if self.known_friction:  # it is not in the columns, so a delay would be fitted instead
            return self
        motions = tuple(m for k in range(len(self.beginnings)) for m in self.first_motions(k) if m.long_enough)
        alike = tuple(m for m in motions if abs(m.filter.period / motions[0].filter.period - 1.0) < 0.01)
        if not alike:
            return self
        choice = choose_between(delay_of(self.base, alike), alike[0].filter.period)
        return replace(self, preparation=replace(self.preparation, torque_between=choice.name), between=choice)

    def band_levels(self, motion_hz: float, stated_hz: float | None = None) -> BandLevels:
        """Make the rows below each candidate for the cut-off.

        Args:
            motion_hz: Band of the motion [Hz].
            stated_hz: One more candidate [Hz].
        """
        numbered = [(k, m) for k in range(len(self.beginnings)) for m in self.first_motions(k) if m.long_enough]
        return BandLevels(self.dynamics, self.base, numbered, motion_hz, stated_hz)

    def with_terms(self, terms: Terms, reference: Model) -> Study:
        """Return a study with other terms; existing rows are kept if the terms are equal.

        Args:
            terms: Joint terms.
            reference: Model that gives the joint loads.
        """
        made = replace(self, terms=terms, reference=reference)
        if terms.terms == self.terms.terms and not terms.history:
            vars(made).update({x: y for x, y in vars(self).items() if x in ("base", "dynamics", "parts", "rows")})
        return made

    def with_logs(self, logs: Sequence[Log], robot: Robot | None = None, terms: Terms | None = None) -> Study:
        """Return a study of other logs, such as parts of these, which determine their own cut-off.

        Args:
            logs: Logs in memory.
            robot: Robot of the logs, already mounted, such as this one with some joints locked; default: this one.
            terms: Terms bound to that robot; default: these.
        """
        return replace(
            self,
            robot=robot or self.robot,
            logs=tuple(logs),
            beginnings=tuple(logs),
            terms=terms or self.terms,
            cutoff_hz=chosen_cutoff(logs, self.preparation),
            band=None,
            sources=None,
            _remaining={},
            _findings={},
        )

    def for_validation(self, logs: Sequence[Source]) -> Study:
        """Return a study of validation `logs`, which choose no settings.

        A streamed log is read once: a pass starts with its beginning, which the check has read.
        """
        sources, beginnings, remaining = read_beginnings(logs)
        made = replace(self, logs=sources, beginnings=beginnings, _remaining=remaining, _findings={})
        vars(made).update(base=self.base, dynamics=self.dynamics, carrier=self.carrier)
        return made

    @cached_property
    def opening(self) -> Study:
        """The study of the beginnings of the logs."""
        if self.logs == self.beginnings:
            return self
        return replace(self, logs=self.beginnings, _remaining={})

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the robot with its terms."""
        known = self.known_base
        if known is not None and known.robot is self.robot and known.terms is self.terms:
            return known
        same = (b for b in self.cache.bases if b.robot is self.robot and b.terms.terms == self.terms.terms)
        if (found := next(same, None)) is None:
            self.cache.bases.append(found := base_parameters(self.robot, self.terms))
        return found

    @cached_property
    def dynamics(self) -> Dynamics:
        """Dynamics of the robot with its terms."""
        return self.base.structure.dynamics

    def motions_of(self, source: Source) -> Iterable[Motion]:
        """Return the prepared motions of `source`, a log of the study or another one.

        A short log is prepared once; a long one is prepared piece by piece on every pass.
        """
        number = next((k for k, one in enumerate(self.logs) if one is source), None)
        if number is None and not (isinstance(source, Log) and is_one_piece(source)):
            return ahead(m for piece in pieces_of(source) for m in self._prepare(piece))
        if number is not None and self.beginnings[number] is not source:
            return self._streamed(number, source)
        assert isinstance(source, Log)
        return self._motions_in_memory(source)

    def _streamed(self, number: int, source: Source) -> Iterator[Motion]:
        """Yield the beginning from memory, then the remaining pieces; a later pass reads the file again."""
        yield from self._motions_in_memory(self.beginnings[number])
        rest = self._remaining.pop(number, None)
        if rest is None:
            rest = pieces_of(source)
            next(rest)
        yield from ahead(m for piece in self._looked_at(number, rest) for m in self._prepare(piece))

    def _looked_at(self, number: int, pieces: Iterator[Log]) -> Iterator[Log]:
        """Yield the later `pieces` of a log; the first complete pass checks them."""
        if self.look is None or number in self._findings:
            yield from pieces
            return
        found: list[Finding] = []
        for piece in pieces:
            found += self.look(self.robot, piece)
            yield piece
            del piece
        self._findings[number] = tuple(found)

    def later(self, number: int) -> tuple[Finding, ...]:
        """Return the findings in the later pieces of log `number` (from 0), if a pass checked them."""
        return self._findings.get(number, ())

    def _prepare(self, piece: Log) -> Iterator[Motion]:
        motions = prepare(piece, self.preparation, self.cutoff_hz, to_fit=False, velocity=self.sources)
        return (self._add_history(m) for m in motions) if self.terms.history else motions

    def _motions_in_memory(self, log: Log) -> tuple[Motion, ...]:
        between = self.preparation.torque_between
        key: tuple[object, ...] = (log, self.preparation, self.cutoff_hz, self.sources)
        if key not in self.cache.motions:
            # A log is filtered once; the torque between samples only shifts its motions.
            settings = replace(self.preparation, torque_between="auto")
            plain = (log, settings, self.cutoff_hz, self.sources)
            if plain not in self.cache.motions:
                made = prepare(log, settings, self.cutoff_hz, to_fit=False, velocity=self.sources)
                self.cache.motions[plain] = tuple(made)
            self.cache.motions[key] = tuple(m.with_torque(between) for m in self.cache.motions[plain])
        if not self.terms.history:
            return self.cache.motions[key]
        own = (*key, self.terms.history_key, self.carrier)
        if own not in self.cache.motions:
            self.cache.motions[own] = tuple(self._add_history(m) for m in self.cache.motions[key])
        return self.cache.motions[own]

    def _add_history(self, motion: Motion) -> Motion:
        return with_history(self.dynamics, motion, self.carrier)

    @cached_property
    def carrier(self) -> Model | None:
        """Model that gives the joint loads, if terms depend on them."""
        if self.reference is not None or not self.terms.needs_rigid:
            return self.reference
        plain = Terms(self.robot, tuple(t for t in self.terms.terms if not any(a.of_torque for a in t.history)))
        own = replace(self, logs=self.beginnings, scheme=Dynamic(), _remaining={})
        return replace(own, reference=replace(own, terms=plain).quick_fit()[0]).quick_fit()[0]

    def quick_fit(self) -> tuple[Model, Array]:
        """Fit the torques by weighted least squares; return the model and each equation's residual (rms)."""
        columns, factor = list(self.base.independent), self.rows.factor()
        theta = np.zeros(len(self.base.parameters))
        weights, left = None, np.zeros(0)
        for _ in range(2):  # the second time each joint is weighted by its noise
            Ry = factor.combined_triangle(weights, columns)
            scale = np.linalg.norm(Ry[:, :-1], axis=0)
            # Columns of a joint that stands are rounding; their parameters stay zero.
            scale[scale <= ROUNDING_SHARE * scale.max(initial=0.0)] = np.inf
            theta[columns] = np.linalg.lstsq(Ry[:, :-1] / scale, Ry[:, -1], rcond=1e-8)[0] / scale
            left = np.sqrt(factor.residual_sums(theta[columns], columns) / np.maximum(factor.rows, 1))
            weights = 1.0 / np.maximum(left, 1e-9 * max(float(np.max(left)), 1e-9))
        return Model(self.robot, self.terms, theta), left

    def motions(self, source: Source | None = None) -> Iterator[Motion]:
        """Yield the prepared motions of `source` (None: of all logs) that are long enough for a fit."""
        for one in self.logs if source is None else (source,):
            yield from (m for m in self.motions_of(one) if m.long_enough)

    def first_motions(self, number: int) -> tuple[Motion, ...]:
        """Return the prepared motions of the beginning of log `number` (from 0)."""
        return self._motions_in_memory(self.beginnings[number])

    @cached_property
    def parts(self) -> dict[int, RegressionData]:
        """Rows of every log by its number, without logs that are too short for the filter."""
        parts, last = {}, None
        for number, source in enumerate(self.logs):
            try:
                parts[number] = self.rows_of(source)
            except StructureError as error:
                last = error
        if not parts and last is not None:
            raise last
        return parts

    @cached_property
    def rows(self) -> RegressionData:
        """Rows y = A θ of all logs in the form of the scheme; reduced in one pass, log by log."""
        return RegressionData.concatenate(tuple(self.parts.values()))

    def rows_of(self, source: Source) -> RegressionData:
        """Make the rows of the log `source`; for a long one the same pass sums the unfiltered torques."""

        def motions() -> Iterator[Motion]:
            return self.motions(source)

        number = self.logs.index(source)
        if self.beginnings[number] is not source and self.scores_in_the_pass:
            beginning = sum(m.rows for m in self.first_motions(number) if m.long_enough)
            return observe(self.dynamics, self.base, motions, unfiltered=True, beginning=beginning)
        return self._written(motions)

    def changed_rows(self, change: _Change) -> RegressionData:
        """Make the rows of all logs after a `change` of each piece."""

        def motions() -> Iterator[Motion]:
            for source in self.logs:
                for piece in [source] if source in self.beginnings else pieces_of(source):
                    yield from (m for m in self._prepare(change(piece)) if m.long_enough)

        return self._written(motions)

    def _written(self, motions: Callable[[], Iterable[Motion]]) -> RegressionData:
        known = self.known_friction or None
        return self.scheme.data(self.dynamics, self.base, motions, self.preparation.mask, known)

    @property
    def scores_in_the_pass(self) -> bool:
        """Whether rows are torques of all samples, so that the sums of a pass give the errors of any model."""
        plain = isinstance(self.scheme, Dynamic) and self.scheme.reversals == 0.0
        return plain and self.preparation.mask == 0.0 and not self.known_friction

    @property
    def late_velocities(self) -> dict[str, float]:
        """Joints whose logged velocity is used and delayed by more than half a sample, with the delay [s]."""
        if self.sources is None:
            return {}
        period = min(m.filter.period for k in range(len(self.logs)) for m in self.first_motions(k))
        return {self.robot.joint_names[j]: delay for j, delay in self.sources.late(0.5 * period).items()}

    @property
    def velocity(self) -> str:
        """Sources of the velocities."""
        return " and ".join(sorted({m.velocity for k in range(len(self.logs)) for m in self.first_motions(k)}))
