"""`mujoco.sysid` (4.0) on a position actuator with armature, damping, dry friction and a torque limit."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise
from typing import Any

import numpy as np

from entries.problem import Array, DriveProblem, MissingError, Run

_STEP = 0.005
_NAMES = ("stiffness", "damping", "limit", "armature", "friction")


class Entry:
    name = "mujoco.sysid"

    def fit(self, problem: DriveProblem) -> None:
        try:
            import mujoco
            from mujoco import sysid

            sysid.optimize, sysid.ParameterDict  # noqa: B018  # without its extra, the package has no names
        except (ImportError, AttributeError) as error:
            raise MissingError('pip install "mujoco[sysid]"') from error
        runs = problem.runs
        torque, inertia = max(run.gravity for run in runs), max(run.inertia for run in runs)
        stiffness = torque / 0.05 / float(np.median([run.gain for run in runs]))
        # The starts of script.py; two decades to each side.
        starts = dict(zip(_NAMES, (stiffness, 0.1 * torque, 3.0 * torque, 0.3 * inertia, 0.05 * torque), strict=True))
        parameters = sysid.ParameterDict(
            {n: sysid.Parameter(n, np.log(v), np.log(v) - 4.6, np.log(v) + 4.6) for n, v in starts.items()}
        )

        def error(x: Array, params: Any, **_: Any) -> tuple[list[Array], None, None]:
            # The optimizer asks for one set of values, or for several as columns.
            sets = np.atleast_2d(x.T if x.ndim == 2 else x)
            found = [np.concatenate([self._rollout(v, run) - run.position for run in runs]) for v in sets]
            return [np.array(found).T], None, None

        self.mujoco = mujoco
        with contextlib.redirect_stdout(io.StringIO()):
            _, result = sysid.optimize(parameters, error, optimizer="mujoco", verbose=False, max_iters=40)
        self.x = np.asarray(result.x).ravel()

    def predict(self, run: Run) -> Array:
        return self._rollout(self.x, run)

    def _rollout(self, x: Array, run: Run) -> Array:
        from mujoco import rollout

        mujoco = self.mujoco
        kp, damping, limit, armature, friction = np.exp(x)
        model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{_STEP}" integrator="implicitfast"/><worldbody><body>'
            '<joint name="j" type="hinge" axis="0 1 0"/><inertial pos="0 0 -0.1" mass="1" diaginertia="1 1 1"/></body>'
            '</worldbody><actuator><position joint="j" kp="1" forcerange="-1 1"/></actuator></mujoco>'
        )
        # A pendulum with the stated inertia and gravity torque: m g l, and m l² + I.
        lever = 0.1
        mass = run.gravity / 9.81 / lever
        model.body_mass[1], model.body_inertia[1] = mass, max(run.inertia - mass * lever**2, 1e-9)
        model.dof_armature[0], model.dof_damping[0], model.dof_frictionloss[0] = armature, damping, friction
        model.actuator_forcerange[0] = -limit, limit
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)
        grid = np.arange(0.0, run.t[-1] - run.t[0] + _STEP, _STEP)
        goal = np.interp(grid, run.t - run.t[0], np.nan_to_num(run.goal))
        on = np.interp(grid, run.t - run.t[0], run.on) > 0.5
        state = np.array([0.0, run.position[0], 0.0])
        cuts = [0, *(np.flatnonzero(np.diff(on)) + 1).tolist(), len(grid)]
        pieces = []
        for low, high in pairwise(cuts):
            gain = kp * run.gain if on[low] else 0.0
            model.actuator_gainprm[0, 0], model.actuator_biasprm[0, 1] = gain, -gain
            states = rollout.rollout(model, data, state[None], goal[None, low:high, None])[0][0]
            pieces.append(np.concatenate([state[1:2], states[:-1, 1]]))
            state = states[-1]
        return np.interp(run.t - run.t[0], grid, np.concatenate(pieces))
