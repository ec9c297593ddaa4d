"""The observer in C compiles without warnings and gives the same result as the one in Python, sample by sample."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_observer import motion, pendulum, rubbing_arm
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics import Model
from steelyard.export.observer_code import observer_to_c
from steelyard.robot.library import builtin, builtin_names
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver

# The code must compile without warnings.
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]


class ObserverInC:
    """The exported code, compiled by gcc."""

    def __init__(self, model: Model, folder: Path) -> None:
        source, _ = observer_to_c(model, folder / "arm_observer.c", "arm")
        library = folder / "arm_observer.so"
        subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        self._code = ctypes.CDLL(str(library))
        # The struct has e, r, p, d, t, rate, dq, tau, begun, u, s; this is larger than needed.
        self._state = np.zeros(64 + 8 * model.robot.dof + 2 * len(model.terms.history))
        self._n = model.robot.dof

    def observe(self, batch: SampleBatch, cutoff_hz: float) -> np.ndarray:
        """Return e, r, p, d at every sample, shape (samples, 4, joints)."""
        address = ctypes.c_void_p(self._state.ctypes.data)
        self._code.arm_observer_init(address, ctypes.c_double(cutoff_hz))
        out = []
        for t, *signals in zip(batch.t, batch.q, batch.dq, batch.tau, strict=True):
            rows = [np.ascontiguousarray(x) for x in signals]
            pointers = [ctypes.c_void_p(x.ctypes.data) for x in rows]
            assert self._code.arm_observer_step(address, ctypes.c_double(t), *pointers) == (1 if out else 0)
            out.append(self._state[: 4 * self._n].reshape(4, self._n).copy())
        result = self._code.arm_observer_step(address, ctypes.c_double(batch.t[-1]), *pointers)
        assert result == 0
        assert np.array_equal(self._state[: 4 * self._n].reshape(4, self._n), out[-1])
        return np.array(out)


@pytest.mark.parametrize("name", ["all kinds of friction", "pendulum", *builtin_names()])
def test_c_equals_python(name: str, tmp_path: Path) -> None:
    makers = {"all kinds of friction": rubbing_arm, "pendulum": pendulum}
    model = makers[name]() if name in makers else Model.nominal(builtin(name))
    batch = motion(model.robot.dof, 400)
    ours = MomentumObserver(model, 7.0).observe(batch)
    theirs = ObserverInC(model, tmp_path).observe(batch, 7.0)
    expected = np.stack([ours.e, ours.r, ours.p, ours.d], axis=1)
    size = np.max(np.abs(expected))
    assert np.max(np.abs(theirs - expected)) < 1e-10 * max(size, 1.0)


def test_command_writes_the_observer(tmp_path: Path) -> None:
    words = ["export", "arm7", "--c", "--observer", "--name", "my-arm", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    wanted = {"my-arm.c", "my-arm.h", "my-arm_observer.c", "my-arm_observer.h"}
    assert wanted <= {p.name for p in (tmp_path / "out").iterdir()}
    code = (tmp_path / "out" / "my-arm_observer.c").read_text()
    assert "malloc" not in code
    assert code.count("#include") == 2
