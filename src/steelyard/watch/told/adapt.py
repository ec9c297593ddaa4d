"""A model that goes along with the robot: recursive least squares over all that is seen, written whole every so often.

It begins at the model that the robot is watched by, known to some percent, and forgets along what the motion shows and
nowhere else, so that weeks of the same work do not lose what other motions have told. What is written is a model like
any other (URDF with its sidecar): `steelyard watch`, `predict` and `export` take it; beside it lies how its base
parameters came about. A load that is carried all the time becomes a part of it. Friction that remembers is followed
along the motion and taken off the torque: its own numbers stay, and what changes of it goes to the other terms.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.folders import run_folder
from steelyard.ground.outcome import REPORT
from steelyard.regression.base_parameters import base_parameters
from steelyard.watch.batch import Seen
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.told._memory import Memory

if TYPE_CHECKING:
    from steelyard.estimation.history import ParameterHistory
    from steelyard.estimation.recursion.stream import Recursive

# At most so many samples a second (1/s): robots move by a few Hz, and recursive least squares costs 30 µs a sample.
_RATE_HZ = 100.0
# What was seen fades to a third in so long (s) of motion: friction changes over hours.
_MEMORY_S = 3600.0
# How far off the first model may be, as a part of each base parameter and of the largest of its kind.
_OFF, _LEAST = 0.1, 0.01
_EVERY_S = 600.0
# So many moments of the way are kept, evenly spread over it: a line of a figure has no more to show.
_MOMENTS = 256


@WATCH_PARTS.register("adapt")
class AdaptPart(WatchPart):
    """Keeps a recursive model and writes it.

    Args:
        setup: what it is made for; option "adapt" names the folder (without it nothing is done), "adapt_every_s" how
            often it is written, s of the robot's clock (default: ten minutes).
    """

    title = "adapted model"

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self._folder = str(setup.options.get("adapt", ""))
        self._every = float(setup.options.get("adapt_every_s", _EVERY_S))
        self._slot, self._written, self._now = np.nan, np.nan, np.nan
        self._fresh = True
        self._run: Recursive | None = None
        self._memory = Memory(setup.model)
        if self._folder:
            self._run = self._begin(self._memory.plain)

    @staticmethod
    def _begin(model: Model) -> Recursive:
        from steelyard.estimation.recursion.forgetting import Directional
        from steelyard.estimation.recursion.stream import recursive

        base = base_parameters(model.robot, model.terms)
        beta = base.values(model.theta)
        return recursive(
            model.robot,
            (),
            base=base,
            theta0=model.theta,
            P0=(_OFF * np.abs(beta) + _LEAST * float(np.abs(beta).max())) ** 2,
            forgetting=Directional(1.0 - 1.0 / (_MEMORY_S * _RATE_HZ)),
            moments=_MOMENTS,
            eigenvalues=False,  # they would put megabytes into every snapshot
            # Every so-manieth sample of a faster stream: whatever its torque does between two of them, it is not held.
            torque_between="sampled",
        )

    def take(self, seen: Seen) -> None:
        batch = seen.batch
        if self._run is None or not len(batch):
            return
        self._fresh = self._fresh or batch.fresh
        slots = np.floor(batch.t * _RATE_HZ)
        if self._fresh:
            self._slot = np.nan
        at = np.flatnonzero(np.diff(slots, prepend=self._slot) != 0.0)
        self._slot, self._now = slots[-1], float(batch.t[-1])
        if self._fresh:
            self._memory.begin()
        tau = batch.tau - self._memory.torque(batch.q, batch.dq)
        if not len(at):
            return
        self._run.feed(zip(batch.t[at].tolist(), batch.q[at], batch.dq[at], tau[at], strict=True), self._fresh)
        self._fresh = False
        if np.isnan(self._written):
            self._written = float(batch.t[0])
        # By the clock of the robot, and at its marks, so that batches make no difference.
        if np.floor(self._now / self._every) > np.floor(self._written / self._every):
            self._written = self._now
            self._write()

    def end(self) -> None:
        if self._run is not None and self._run.samples and self._now != self._written:
            self._write()

    @property
    def model(self) -> Model:
        """The model as it is known now."""
        if self._run is None:
            return self.setup.model
        return self._memory.with_memory(self._run.theta)

    @property
    def parameter_history(self) -> ParameterHistory | None:
        """How its base parameters came about, up to now; None where nothing was followed yet."""
        if self._run is None or not len(self._run.history):
            return None
        history = self._run.parameter_history
        if history.at[-1] >= self._now:
            return history
        # The last moment that was kept may be a hundredth of the way ago: hours, after a month.
        at, beta = np.append(history.at, self._now), np.vstack([history.beta, self._run.estimate])
        return replace(history, at=at, beta=beta)

    def _write(self) -> None:
        from steelyard.export.sidecar import model_to_sidecar
        from steelyard.export.urdf import model_to_urdf

        model, history = self.model, self.parameter_history
        try:
            with run_folder(self._folder, overwrite=True) as folder:
                name = model.robot.name
                model_to_urdf(model, Path(folder) / f"{name}.urdf")
                model_to_sidecar(model, Path(folder) / f"{name}.steelyard.json")
                if history is not None:
                    history.to_csv(folder / "history.csv")
                    (folder / REPORT).write_text(history.page(), "utf-8")
        except (SteelyardError, OSError) as problem:
            self.tell(WatchEvent(self._now, "adapt", f"The adapted model could not be written: {problem}"))

    def telling(self) -> dict[str, Any]:
        if self._run is None:
            return {"adapts": False}
        before = self._run.base.values(self._memory.plain.theta)
        scale = np.sqrt(np.mean(before**2))
        change = float(np.sqrt(np.mean((self._run.estimate - before) ** 2)) / scale)
        written = None if np.isnan(self._written) else self._written
        return {"adapts": True, "samples": self._run.samples, "change": change, "written": written}

    @property
    def state_rules(self) -> dict[str, ArrayRule]:  # type: ignore[override]
        """Where a saved state may differ from that of a new part; one without `adapt` has no stream yet."""
        if self._run is None:
            return {}
        rules = self._run.state_rules
        return {name: replace(rules.get(name, ArrayRule()), optional=True) for name in self._run.state()}

    def state(self) -> PartState:
        own = np.array([self._slot, self._written, self._now, float(self._fresh)])
        memory = {"memory": self._memory.state.copy()} if len(self._memory.state) else {}
        return {"adapt": own, **memory, **(self._run.state() if self._run is not None else {})}

    def restore(self, state: PartState) -> None:
        self._slot, self._written, self._now, _ = state["adapt"].tolist()
        self._fresh = bool(state["adapt"][3])
        if self._run is not None and "samples" in state:
            self._run.go_on_from({name: x for name, x in state.items() if name not in ("adapt", "memory")})
        if "memory" in state:
            self._memory.state[:] = state["memory"]
