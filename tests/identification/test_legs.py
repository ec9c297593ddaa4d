"""A leg in MuJoCo under a late PD controller: the default MJCF has what was planted, and moves alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.identification.identification import Identification
from steelyard.identification.identify import identify

ARMATURE, DAMPING, FRICTIONLOSS = (0.012, 0.012, 0.02), (0.10, 0.11, 0.12), (0.2, 0.25, 0.3)
NAMES = ("abduction", "hip", "knee")
RATE, DELAY = 500.0, 0.006  # Hz, s


def leg(scale: float = 1.0, planted: bool = True, timestep: float = 0.001) -> str:
    """MJCF of the leg; a description has other inertias by a factor `scale`, and nothing of what was `planted`."""
    bodies = (
        ("hip_link", "0 0 1", "0.02 0.01 0", 0.7, (0.0006, 0.0008, 0.0007), "1 0 0"),
        ("thigh", "0 0.08 0", "-0.004 -0.02 -0.03", 1.0, (0.006, 0.006, 0.001), "0 1 0"),
        ("calf", "0 0 -0.2", "0.005 0 -0.1", 0.2, (0.002, 0.002, 0.0001), "0 1 0"),
    )
    text = ""
    for k, (name, place, centre, mass, moments, axis) in enumerate(bodies):
        held = f'armature="{ARMATURE[k]}" damping="{DAMPING[k]}" frictionloss="{FRICTIONLOSS[k]}"' if planted else ""
        tensor = " ".join(f"{scale * m}" for m in moments)
        text += (
            f'<body name="{name}" pos="{place}"><inertial pos="{centre}" mass="{scale * mass}" diaginertia="{tensor}"/>'
            f'<joint name="{NAMES[k]}" axis="{axis}" {held}/>'
        )
    motors = "".join(f'<motor joint="{name}"/>' for name in NAMES)
    head = '<mujoco model="leg"><compiler angle="radian"/>' + f'<option timestep="{timestep}"/>'
    return f"{head}<worldbody>{text}{'</body>' * 3}</worldbody><actuator>{motors}</actuator></mujoco>"


def rollout(model: Any, seed: int, seconds: float, late_command: bool = False) -> tuple[np.ndarray, ...]:
    """Time, positions, velocities and torques of the leg as it follows sines under a controller that is 6 ms late.

    It sees old states, or its commands act late; the log has the commands when they are given.
    """
    import mujoco

    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    wanted = np.tile([0.0, 0.6, -1.2], (len(t), 1))
    for j in range(3):
        for h in range(1, 8):
            w, size = 0.5 * np.pi * h * (1.0 + 0.07 * j), rng.normal(0.0, 0.35 / h**0.7)
            wanted[:, j] += size * np.sin(w * t + rng.uniform(0.0, 2.0 * np.pi))
    speed = np.gradient(wanted, 1.0 / RATE, axis=0)
    data.qpos[:] = wanted[0]
    seen = [(data.qpos.copy(), data.qvel.copy())] * (round(DELAY * RATE) + 1)
    q, dq, tau = [], [], [np.zeros(3)] * round(DELAY * RATE)
    for k in range(len(t)):
        seen = [*seen[1:], (data.qpos.copy(), data.qvel.copy())]
        state = seen[-1 if late_command else 0]
        tau.append(20.0 * (wanted[k] - state[0]) + 0.5 * (speed[k] - state[1]))
        data.ctrl[:] = tau[k if late_command else -1]
        q.append(seen[-1][0])
        dq.append(seen[-1][1])
        mujoco.mj_step(model, data, round(1.0 / RATE / model.opt.timestep))
    return t, np.array(q), np.array(dq), np.array(tau[-len(t) :])


def log(model: Any, seed: int, late_command: bool = False) -> dict[str, np.ndarray]:
    t, q, dq, tau = rollout(model, seed, 20.0, late_command)
    rng = np.random.default_rng(100 + seed)
    noise = [rng.normal(0.0, size, q.shape) for size in (2e-5, 5e-3, 1e-2)]
    return {"time": t, "q": q + noise[0], "dq": dq + noise[1], "tau": tau + noise[2]}


def identified(
    seed: int, scale: float, folder: Path, timestep: float = 0.001, late_command: bool = False
) -> tuple[Any, Identification, Any]:
    """The plant, the model from two of its logs, and the written MJCF, all as models of MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    plant = mujoco.MjModel.from_xml_string(leg(timestep=timestep))
    (folder / "leg.xml").write_text(leg(scale, planted=False, timestep=timestep))
    robot = sy.load_robot(folder / "leg.xml")
    found = identify(robot, log(plant, seed, late_command), [log(plant, seed + 50, late_command)], check=False)
    run = found.save(folder / "run", overwrite=True)
    return plant, found, mujoco.MjModel.from_xml_path(str(run / "leg.xml"))


def errors_over_bars(found: Identification, made: Any) -> np.ndarray:
    """The file's value minus the true one, over its error bar, for parameters with an error bar.

    The armatures of the first two joints lack one: they add to moments of inertia that nothing else shows.
    """
    (mjcf,) = (file for file in found.files if file.format == "mjcf")
    pairs = {"armature": ARMATURE, "damping": DAMPING, "friction": FRICTIONLOSS}
    stated = {"armature": made.dof_armature, "damping": made.dof_damping, "friction": made.dof_frictionloss}
    return np.array(
        [
            (stated[name][k] - pairs[name][k]) / joint.standard_errors[name]
            for k, joint in enumerate(mjcf.joints)
            for name in pairs
            if name in joint.standard_errors
        ]
    )


def inertias(model: Any) -> np.ndarray:
    """The diagonal of M(q), armatures included, in three postures."""
    import mujoco

    data, out = mujoco.MjData(model), []
    for q in ((0.0, 0.6, -1.2), (0.3, 0.0, -0.5), (-0.4, 1.0, -2.0)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        whole = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, whole)
        out.append(np.diag(whole))
    return np.array(out)


def differences(plant: Any, made: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of positions and torques of both in closed loop, 5 s of another motion; over what the plant's vary by."""
    (_, q, _, tau), (_, ours, _, our_tau) = (rollout(model, seed, 5.0) for model in (plant, made))
    return tuple(np.sqrt(np.mean((a - b) ** 2, axis=0)) / b.std(axis=0) for a, b in ((ours, q), (our_tau, tau)))


def test_what_was_planted_stands_in_the_file(tmp_path: Path) -> None:
    plant, found, made = identified(0, 1.15, tmp_path)
    beyond = errors_over_bars(found, made)
    assert len(beyond) == 7
    assert np.max(np.abs(beyond)) < 3.0
    np.testing.assert_allclose(made.dof_damping, DAMPING, rtol=0.03)  # measured: 0.4, 0.3, 1.5 %
    np.testing.assert_allclose(made.dof_frictionloss, FRICTIONLOSS, rtol=0.02)
    np.testing.assert_allclose(inertias(made), inertias(plant), rtol=0.02)
    moved, driven = differences(plant, made, 7)
    assert np.max(moved) < 0.003  # measured: 0.001 and 0.006
    assert np.max(driven) < 0.02


def test_commands_that_act_late_do_not_pass_for_damping(tmp_path: Path) -> None:
    """Soft friction acts ahead of the velocity, a late command behind it: both are estimated together."""
    _, found, made = identified(0, 1.15, tmp_path, late_command=True)
    assert np.max(np.abs(errors_over_bars(found, made))) < 3.0
    np.testing.assert_allclose(made.dof_damping, DAMPING, rtol=0.1)
    np.testing.assert_allclose(made.dof_frictionloss, FRICTIONLOSS, rtol=0.05)


@pytest.mark.proof
@pytest.mark.parametrize("timestep", [0.002, 0.001, 0.0005])
def test_error_bars_hold_and_rollouts_match(timestep: float, tmp_path: Path) -> None:
    """Ten motions, the simulator taking one, two and four steps while a torque is held; others judge in closed loop."""
    beyond, moved, driven = [], [], []
    for seed in range(10):
        plant, found, made = identified(seed, (1.0, 1.15)[seed % 2], tmp_path, timestep)
        beyond.append(np.abs(errors_over_bars(found, made)))
        for one, other in zip((moved, driven), differences(plant, made, 100 + seed), strict=True):
            one.append(np.max(other))
    inside = np.mean(np.concatenate(beyond) < 2.0)
    print(f"{timestep} s: {100 * inside:.0f} % within two error bars, at most {np.max(beyond):.1f}")
    print(f"rollouts differ by up to {100 * max(moved):.2f} % in position, {100 * max(driven):.1f} % in torque")
    assert inside > 0.88
    assert np.max(beyond) < 4.0
    assert max(moved) < 0.005
    assert max(driven) < 0.04
