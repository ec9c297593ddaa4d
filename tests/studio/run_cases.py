"""Run folders on disk, and a studio without a browser."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.ground.folders import run_folder
from steelyard.ground.repeat import running_command

if TYPE_CHECKING:
    from steelyard.studio.jobs import StudioJob


def made_run(folder: Path, name: str, command: str, result: Any, files: Mapping[str, str] | None = None) -> Path:
    """Write a run as commands do: `result.json`, `files`, and a manifest with the `command`."""
    words = shlex.split(command)
    with running_command(words, words), run_folder(folder / name) as staging:
        (staging / "result.json").write_text(json.dumps(result), "utf-8")
        for file, content in (files or {}).items():
            (staging / file).write_text(content, "utf-8")
    return folder / name


def identified_result(errors: tuple[float, ...] = (2.0, 5.0), grade: str = "good", robot: str = "arm") -> Any:
    """Return the parts of an identification's result that summaries need."""
    score = {"log": "b", "joints": [{"joint": f"q{k}", "nrmse_percent": e} for k, e in enumerate(errors, 1)]}
    verdict = {"grade": grade, "sentence": f"The model is {grade}.", "reasons": ["All links are possible."]}
    return {
        "robot": {"name": robot, "joints": ["q1", "q2"]}, "verdict": verdict, "validation": [score],
        "identification": [score], "nominal": [], "base_parameters": {"count": 3}, "estimation": {},
        "settings": {"estimator": "wls", "cutoff_hz": 20.0},
    }  # fmt: skip


class Visitor:
    """A client without a browser that has opened the studio of a `folder`."""

    def __init__(self, folder: Path) -> None:
        from starlette.testclient import TestClient

        from steelyard.studio.jobs import Jobs
        from steelyard.studio.server import ServeOptions, make_app
        from steelyard.studio.studio_folder import StudioFolder

        self.folder = StudioFolder(folder)
        self.jobs = Jobs(self.folder)
        app, address = make_app(self.folder, ServeOptions(), 8421)
        self.client = TestClient(app, base_url="http://127.0.0.1:8421", headers={"x-steelyard": "1"})
        self.client.__enter__()  # one loop for all requests, as a server has
        self.client.get(address, follow_redirects=False)

    def see(self, address: str, status: int = 200) -> str:
        """Return the page at an `address`."""
        answer = self.client.get(address)
        if 'class="placeholder' in answer.text:  # a slow machine sends the placeholder first
            answer = self.client.get(f"/body{address}")
        assert answer.status_code == status, answer.text
        return str(answer.text)

    def do(self, action: str, status: int = 200, **fields: Any) -> str:
        """Send a form."""
        answer = self.client.post(f"/do/{action}", data=fields)
        assert answer.status_code == status, answer.text
        return str(answer.text)

    def wait(self, seconds: float = 90.0) -> StudioJob:
        """Wait until the newest job has ended."""
        end = time.monotonic() + seconds
        while (job := self.jobs.all()[0]).live:
            self.jobs.step()
            assert time.monotonic() < end, self.jobs.console_output(job.id)
            time.sleep(0.1)
        assert job.state == "done", job.message
        return job


PAYLOAD_KG = 2.0


def payload_arm(folder: Path) -> Path:
    """Create a project of an arm with logs for identification and validation, and one with a payload."""
    import numpy as np

    from steelyard.dynamics.model import Model
    from steelyard.export import model_to_urdf
    from steelyard.payload import Payload, cuboid
    from steelyard.robot.load import load_robot
    from steelyard.signals.log import Log

    arm = load_robot("szabo3r")
    body = cuboid(PAYLOAD_KG, np.array([0.1, 0.1, 0.1]), np.array([0.1, 0.02, 0.05]))
    carrying = Payload("", body, np.zeros((10, 10))).attach_to(arm)
    (folder / "logs").mkdir(parents=True)
    model_to_urdf(Model.nominal(arm), folder / "arm.urdf")
    for seed, (name, robot) in enumerate((("a", arm), ("b", arm), ("loaded", carrying))):
        rng = np.random.default_rng(seed)
        t = np.arange(1600) / 200.0
        w = 2.0 * np.pi * np.array([0.25, 0.5, 0.75, 1.0])[:, None]
        a, phase = rng.uniform(0.3, 0.7, (4, 3)) / w, rng.uniform(0.0, 2.0 * np.pi, (4, 3))
        angle = t[:, None, None] * w + phase
        q, dq, ddq = (a * np.sin(angle)).sum(1), (a * w * np.cos(angle)).sum(1), -(a * w**2 * np.sin(angle)).sum(1)
        tau = Model.nominal(robot).torque(q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        Log(arm.joint_names, t, q, dq=dq, tau=tau).save(folder / "logs" / f"{name}.csv")
    (folder / "steelyard.toml").write_text(
        'robot = "arm.urdf"\nruns = "runs"\n[logs]\nidentify = ["logs/a.csv"]\nvalidate = ["logs/b.csv"]\n'
        'payload = ["logs/loaded.csv"]\n', "utf-8",
    )  # fmt: skip
    return folder
