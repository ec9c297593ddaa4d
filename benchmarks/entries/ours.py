"""`steelyard identify` without options but mapping, joints and hold-out; from the raw logs, as a user has them."""

from __future__ import annotations

from entries.problem import Array, Problem


class Entry:
    name = "Steelyard"

    def fit(self, problem: Problem) -> None:
        from steelyard import identify, load_robot, read_log

        robot = load_robot(problem.urdf, joints=list(problem.joints), gravity=problem.gravity)
        logs = [read_log(path, robot, problem.mapping or None) for path in problem.raw]
        if problem.split is not None:
            logs = [problem.split(log)[0] for log in logs]
        self.found, self.rate = identify(robot, logs, check=False), problem.rate

    def predict(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        return self.found.model.torque(q, dq, ddq, 1.0 / self.rate)
