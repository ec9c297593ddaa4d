"""Targets that go on from a saved state: snapshots of a watch, streams of recursive least squares, exported models.

A state that is accepted is used: the watch takes samples, the stream is fed, the model is evaluated. What a damaged
number breaks shows there, not while the file is read.
"""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import mutators as change
from steelyard.dynamics.model import Model
from steelyard.estimation.recursion.stream import Recursive, recursive
from steelyard.export.sidecar import load_model, model_to_sidecar, sidecar_path
from steelyard.export.urdf import model_to_urdf
from steelyard.ground.arrays import one_blas_thread
from steelyard.parameters.terms import terms
from steelyard.robot.robot import Robot
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.live_source import ReconnectingSource, SourceOptions, open_source
from steelyard.watch.loop import RobotWatch
from steelyard.watch.monitor_base import MONITORS, WatchSetup
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs
from steelyard.watch.snapshots import Snapshots

Target = tuple[str, str, tuple[bytes, ...], change.Mutator, Callable[[Path], Any]]
_NUMBERS = (0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, -1e300, 1e149, -1e149, 1e30, 5e-324, 1e-200, 2.0**62)
# Terms with options of every kind: numbers, lists of numbers, text.
_TERMS = ("rotor", "viscous-saturating", "coulomb", "stribeck", "friction-table", "ripple", "stop", "lag", "offset")


def state_targets(folder: Path, robot: Robot) -> Iterator[Target]:
    """Targets by name; `folder` is for the files that an input stands beside, `robot` the one that is watched."""
    yield _watched(folder, robot)
    yield _stream(folder, robot)
    yield _exported(folder, robot)


def change_arrays(rng: random.Random, data: bytes) -> bytes:
    """An archive whose arrays are whole and differ in names, shapes, types and numbers; sometimes its bytes."""
    if rng.random() < 0.2:
        return change.change_npz(rng, data)
    try:
        with np.load(io.BytesIO(data)) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception:  # what was changed before may not be readable
        return change.change_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if arrays:
            _change_one(rng, arrays)
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _change_one(rng: random.Random, arrays: dict[str, Any]) -> None:
    name = rng.choice(sorted(arrays))
    x = np.asarray(arrays[name])
    match rng.randrange(20):
        case 0:
            del arrays[name]
        case 1:
            arrays[rng.choice((*sorted(arrays), "part load/P", "x", "source/samples", "head"))] = x
        case 2:
            arrays[name] = x.reshape(-1)[: rng.randrange(x.size + 1)]
        case 3:
            arrays[name] = np.concatenate([np.atleast_1d(x)] * rng.choice((2, 3, 50)))
        case 4:
            arrays[name] = x.T if x.ndim > 1 else x[None]
        case 5:
            arrays[name] = np.array(rng.choice(("", "{}", "[]", '{"samples": -1}', '{"samples": 1e999}', "load", "x")))
        case 6 if x.dtype.kind in "fiub":
            kind = rng.choice(("f4", "i8", "?", "c16", "u1", "U20", "S5", "m8[s]"))
            with np.errstate(all="ignore"):
                arrays[name] = np.nan_to_num(x.astype(float), posinf=0.0, neginf=0.0).astype(kind)
        case _ if x.dtype.kind in "fiub" and x.size:
            y = np.array(x, dtype=float)
            places = rng.sample(range(y.size), rng.randint(1, min(y.size, rng.choice((1, 1, 3, 10**6)))))
            y.reshape(-1)[places] = [rng.choice(_NUMBERS) for _ in places]
            arrays[name] = y


def _motion(robot: Robot, begin: float, count: int) -> Any:
    t = begin + np.arange(count) * 0.05
    q = np.sin(np.outer(t, 1.0 + np.arange(robot.dof)))
    dq = (1.0 + np.arange(robot.dof)) * np.cos(np.outer(t, 1.0 + np.arange(robot.dof)))
    tau = np.random.default_rng(int(begin)).normal(size=q.shape)
    return np.column_stack([t, q, dq, tau])


def _watched(folder: Path, robot: Robot) -> Target:
    """A snapshot, and a watch that goes on from it."""
    place = folder / "watch-state"
    setup = WatchSetup(Model.nominal(robot), options={"adapt": str(folder / "adapted"), "adapt_every_s": 1e9})
    parts = {name: made(setup) for name, made in MONITORS.items()}
    source = ReconnectingSource(open_source("-", SourceOptions(robot)))

    def made() -> RobotWatch:
        clock = SampleClock(plausible_bounds(robot))
        watch = RobotWatch(source, clock, MomentumObserver(setup.model), {}, Outputs([], waits=True))
        watch.monitors |= parts
        watch.background._queue._threaded = False  # what fails must fail here
        return watch

    def goes_on(watch: RobotWatch, begin: float) -> None:
        with one_blas_thread():
            for batch in watch.clock.add(_motion(robot, begin, 120)):
                watch._process(batch)
            watch.report()
            watch.state()

    first = made()
    new = first.state()
    snapshots = Snapshots(place, setup.model, source.source.identity)
    snapshots.write(new)
    seeds = [(place / "state.npz").read_bytes()]
    goes_on(first, 0.0)
    setup.model.dynamics.evaluator("bias_torque").compile()  # before anything is watched
    snapshots.write(first.state())
    seeds.append((place / "state.npz").read_bytes())
    (place / "state-before.npz").unlink()

    def read(path: Path) -> None:
        watch = made()
        watch.restore(new)
        shutil.copyfile(path, place / "state.npz")
        snapshots.read(watch._restore_from_file)
        goes_on(watch, 6.0)

    return "watch-snapshot", ".npz", tuple(seeds), change_arrays, read


def _stream(folder: Path, robot: Robot) -> Target:
    """A saved stream, and one that is fed on from it."""

    def made() -> Recursive:
        return recursive(robot, (), moments=16)

    def feed(stream: Recursive, begin: float) -> None:
        rows, n = _motion(robot, begin, 40), robot.dof
        q, dq, tau = (rows[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))
        stream.feed(zip(rows[:, 0].tolist(), q, dq, tau, strict=True))

    stream = made()
    feed(stream, 0.0)
    stream.save(folder / "stream.npz")

    def read(path: Path) -> None:
        again = made()
        again.restore(path)
        feed(again, 2.0)

    return "stream-state", ".npz", ((folder / "stream.npz").read_bytes(),), change_arrays, read


def _exported(folder: Path, robot: Robot) -> Target:
    """A sidecar, and the torque of the model that it belongs to."""
    bound = terms(robot, *_TERMS)
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, np.ones(len(bound))]))
    description = folder / "exported.urdf"
    model_to_urdf(model, description)
    model_to_sidecar(model, sidecar_path(description))
    state = 0.3 * np.ones((2, robot.dof))

    def read(path: Path) -> None:
        found = load_model(description, path)
        with np.errstate(all="ignore"):  # numbers up to 1e15 in terms that are not linear
            found.torque(state, state, state)

    return "sidecar-used", ".json", (sidecar_path(description).read_bytes(),), change.change_json, read
