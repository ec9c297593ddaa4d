"""Recursive estimation of a payload that the robot picks up."""

from __future__ import annotations

import numpy as np
import pytest
from test_identify_payload import BODY, ROBOT, log_of, plant

from steelyard.errors import SteelyardError
from steelyard.payload import track_payload
from steelyard.robot import load_robot
from steelyard.signals.log import Log


def picked_up() -> Log:
    """A log of the bare arm for four seconds, then with 6 kg; 0.5 N m of noise."""
    before, after = log_of(plant(), 1, 0.5), log_of(plant(BODY), 1, 0.5)
    end = 1600
    tau = np.where(before.t[:, None] < 4.0, before.tau, after.tau)[:end]
    return Log(before.joints, before.t[:end], before.q[:end], dq=before.dq[:end], tau=tau)


def test_the_mass_follows_a_change_within_its_error_bar() -> None:
    log = picked_up()
    found = list(track_payload(plant(), log, noise=0.5))
    assert len(found) == len(log) - 1
    t = np.array([x.t for x in found])
    mass, error = (np.array([getattr(x, name) for x in found]) for name in ("mass", "mass_error"))
    empty, loaded = (t > 1.0) & (t < 4.0), t > 7.0
    assert np.all(np.abs(mass[empty]) < 5.0 * error[empty])
    # Besides the noise, trapezoids at 200 Hz cause an error of 0.1 % of the mass.
    assert np.all(np.abs(mass[loaded] - 6.0) < 5.0 * error[loaded] + 6e-3)
    assert np.all(error[loaded] < 0.05)
    # Just after the change the error bar is large.
    change = (t > 4.1) & (t < 4.4)
    assert np.all(error[change] > 1.0)
    np.testing.assert_allclose(found[-1].load.center_of_gravity, BODY[1:4] / 6.0, atol=0.005)


def test_a_live_stream_gives_the_same_as_a_log() -> None:
    log = picked_up()
    live = zip(log.t, log.q, log.dq, log.tau, strict=True)
    some = [x.mass for _, x in zip(range(300), track_payload(plant(), live, noise=0.5), strict=False)]
    same = [x.mass for _, x in zip(range(300), track_payload(plant(), log, noise=0.5), strict=False)]
    assert some == same


def test_bad_input_is_refused() -> None:
    log = picked_up()
    for options, words in (
        ({"noise": 0.0}, "positive number"),
        ({"memory": 0.0}, "give a positive time"),
        ({"scheme": "dynamic"}, "needs accelerations"),
        ({"frame": "hand"}, "no frame 'hand'"),
    ):
        with pytest.raises(SteelyardError, match=words):
            next(track_payload(plant(), log, **options))
    with pytest.raises(SteelyardError, match="the arm has other joints"):
        next(track_payload(plant(), Log(tuple("abcdef"), log.t, log.q, dq=log.dq, tau=log.tau)))
    with pytest.raises(SteelyardError, match="no velocity"):
        next(track_payload(plant(), Log(log.joints, log.t, log.q, tau=log.tau)))
    assert ROBOT.joint_names != load_robot("arm7").joint_names
