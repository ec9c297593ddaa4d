"""Loads exported models with Pinocchio, MuJoCo and a C compiler."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracles import states

from steelyard.dynamics.model import Model
from steelyard.export import model_to_c
from steelyard.parameters import Stop, terms

# -pedantic and -Werror: the code must compile without warnings.
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]


def rigid_part(model: Model, *kinds: str) -> Model:
    """The model with only the terms of these kinds."""
    remaining = terms(model.robot, *(t for t in model.terms.terms if t.kind in kinds))
    values = dict(zip(model.terms.names, model.theta[model.robot.inertial_count :], strict=True))
    theta = [*model.theta[: model.robot.inertial_count], *(values[name] for name in remaining.names)]
    return Model(model.robot, remaining, np.array(theta))


def motion(model: Model, samples: int = 4):
    """The joints of the file by name, their rates per coordinate, and random states of the coordinates."""
    robot = model.robot
    leads = [robot.joints[link.coordinate].name == link.joint for link in robot.links]
    lever = np.zeros((len(robot.links), robot.dof))
    shift = np.zeros(len(robot.links))
    for i, (link, lead) in enumerate(zip(robot.links, leads, strict=True)):
        lever[i, link.coordinate] = 1.0 if lead else link.ratio
        shift[i] = 0.0 if lead else link.offset
    return [link.joint for link in robot.links], lever, shift, states(robot, samples)


def pinocchio_torque(path: Path, model: Model) -> np.ndarray:
    """Inverse dynamics of a URDF in Pinocchio at the states of `motion`; torques of mimic joints are projected."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")
    theirs = pin.buildModelFromUrdf(str(path))
    theirs.gravity = pin.Motion(np.array(model.robot.gravity), np.zeros(3))
    data = theirs.createData()
    names, lever, shift, s = motion(model)
    assert set(names) == set(theirs.names) - {"universe"}
    place = [theirs.joints[theirs.getJointId(name)].idx_v for name in names]
    out = []
    for q, dq, ddq in zip(s.q, s.dq, s.ddq, strict=True):
        position, velocity, acceleration = np.zeros((3, theirs.nv))
        position[place], velocity[place], acceleration[place] = lever @ q + shift, lever @ dq, lever @ ddq
        at = pin.integrate(theirs, pin.neutral(theirs), position)
        out.append(lever.T @ pin.rnea(theirs, data, at, velocity, acceleration)[place])
    return np.array(out)


def mujoco_torque(xml: str, model: Model, passive: bool = False, armature: bool = False) -> np.ndarray:
    """`mj_inverse` of a URDF or MJCF at the states of `motion`, without constraints."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the oracle (pip install 'steelyard[oracle]')")
    theirs = mujoco.MjModel.from_xml_string(xml)
    np.testing.assert_allclose(theirs.opt.gravity, model.robot.gravity, rtol=1e-15)
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if not passive:
        theirs.dof_damping[:] = 0.0
        theirs.jnt_stiffness[:] = 0.0
        theirs.tendon_damping[:] = 0.0
    if not armature:
        theirs.dof_armature[:] = 0.0
        theirs.tendon_armature[:] = 0.0
    data = mujoco.MjData(theirs)
    names, lever, shift, s = motion(model)
    assert theirs.nv == len(names)
    place = [theirs.joint(name).dofadr[0] for name in names]
    out = []
    for q, dq, ddq in zip(s.q, s.dq, s.ddq, strict=True):
        data.qpos[place], data.qvel[place], data.qacc[place] = lever @ q + shift, lever @ dq, lever @ ddq
        mujoco.mj_inverse(theirs, data)
        out.append(lever.T @ data.qfrc_inverse[place])
    return np.array(out)


def our_torque(model: Model) -> np.ndarray:
    s = motion(model)[3]
    return model.torque(s.q, s.dq, s.ddq)


class Compiled:
    """A model's C code, compiled and loaded."""

    def __init__(self, model: Model, folder: Path, name: str = "arm") -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler (gcc or cc) on this machine")
        self.name, self.n = name, model.robot.dof
        self.source, self.header = model_to_c(model, folder / f"{name}.c", name)
        library = folder / f"{name}.so"
        command = [compiler, *FLAGS, "-shared", "-fPIC", str(self.source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self.library = ctypes.CDLL(str(library))
        self.stops = sum(isinstance(a, Stop) for a, _ in model.terms.history)

    def __call__(self, function: str, shape: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
        out = []
        pointer = ctypes.POINTER(ctypes.c_double)
        state = np.full(2 * self.stops, np.nan)
        remembers = [state] if self.stops and function == "inverse_dynamics" else []
        for k, row in enumerate(zip(*arrays, strict=True)):
            given = [*remembers, *(np.ascontiguousarray(x) for x in row)]
            if remembers and k == 0:
                getattr(self.library, f"{self.name}_init")(*(x.ctypes.data_as(pointer) for x in given[:2]))
            result = np.full(shape, np.nan)
            getattr(self.library, f"{self.name}_{function}")(*(x.ctypes.data_as(pointer) for x in [*given, result]))
            out.append(result)
        return np.array(out)
