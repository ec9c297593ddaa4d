"""The experiment of Chávez-Olivares et al. 2012 on the simulated Rotradi: its torques, sensors and recipes."""

from __future__ import annotations

import csv
from functools import cache
from io import StringIO

import numpy as np
import papers.closed_forms as forms

from steelyard.dynamics import Dynamics, Model
from steelyard.parameters import Term, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.simulation import Sensors, Simulation, simulate
from steelyard.simulation.torque_signal import TorqueSignal, Wave

PERIOD, RATE, LIMITS = 2.5e-3, 9.11, (50.0, 150.0, 15.0)
ENCODER = 2.0 * np.pi / 1_024_000
SCHEMES = ("dynamic", "filtered-dynamic", "energy", "power", "filtered-power")

# Table 3; columns in the order of SCHEMES.
TABLE3 = """
0.479009,4.839356,7.009950,2.888327,6.898808
-0.461404,-2.575465,-6.661319,-3.415853,-5.760731
0.344644,0.022786,1.148168,-0.330842,0.907252
0.299623,0.129456,0.311715,0.086156,0.307757
1.082750,-0.176323,1.670970,1.341880,0.950775
-0.410681,0.203473,0.217950,-0.021440,0.229051
-0.335658,0.070929,0.120283,0.084380,0.089418
-0.028669,0.040085,0.139611,-0.032441,0.138681
0.277173,0.005589,0.252541,0.313766,0.179179
0.722382,1.251908,1.135231,0.251029,1.241647
0.110651,0.115441,-0.992245,-1.027069,-0.517621
1.224468,2.946636,3.095483,0.283465,3.039795
-0.093521,0.108159,0.129069,-0.031523,0.116468
9.464194,55.627596,58.612386,8.539072,56.402487
-0.583702,-0.272837,-0.723836,4.162913,-0.769716
7.453121,6.641267,4.561149,2.281325,5.274038
6.357999,8.185720,10.774579,14.299126,9.883181
4.094850,0.914984,0.863654,-0.146318,1.187124
6.671452,6.292514,3.045569,4.220494,3.745695
0.063043,0.406734,0.499775,3.760149,0.301726
-0.211661,0.793576,1.554679,-10.315979,1.831335
"""


def table3() -> dict[str, np.ndarray]:
    rows = np.array(list(csv.reader(StringIO(TABLE3.strip()))), dtype=float)
    return dict(zip(SCHEMES, rows.T, strict=True))


def _sine(joint: int, amplitude: float, rate: float, low: float = 0.0, high: float = 0.0) -> Wave:
    return Wave(joint=joint, amplitude=amplitude, rate=rate * np.pi, phase=(_rad(low - 90.0), _rad(high - 90.0)))


def _rad(degrees: float) -> float:
    return float(np.deg2rad(degrees))


def identification_torque(seed: int = 0, draw: str = "run") -> TorqueSignal:
    """(30)–(32)."""
    pi = np.pi
    waves = (
        Wave(joint=0, amplitude=34, rate=1.26 * pi, other_rate=0.9 * pi, phase=(_rad(-5), _rad(45))),
        Wave(joint=0, amplitude=15, rate=2.306 * pi, phase=(_rad(-35), _rad(35))),
        Wave(joint=1, amplitude=-28, decay=1.8),
        Wave(joint=1, amplitude=30, rate=1.2 * pi, other_rate=pi),
        _sine(1, 10.0, 3.12, -50.0, 0.0),
        _sine(1, 7.5, 5.8, 40.0, 100.0),
        _sine(1, 15.0, 2.4, 5.0, 35.0),
        Wave(joint=2, amplitude=-2, rate=1.2 * pi, other_rate=pi),
        _sine(2, -1.65, 2.58, -30.0, 30.0),
    )
    return TorqueSignal(joints=3, waves=waves, limits=LIMITS, draw=draw, seed=seed)


def validation_torque() -> TorqueSignal:
    """(40)–(42)."""
    waves = (
        _sine(0, 30.0, 2.4),
        Wave(joint=0, amplitude=-6, rate=0.4 * np.pi),
        Wave(joint=1, amplitude=-29, rate=2.1 * np.pi),
        Wave(joint=2, amplitude=3, rate=1.8 * np.pi),
    )
    return TorqueSignal(joints=3, waves=waves, limits=LIMITS)


def clock(seconds: float = 10.0, period: float = PERIOD) -> np.ndarray:
    return period * np.arange(round(seconds / period) + 1)


def played(model: Model, signal: TorqueSignal, t: np.ndarray, **options) -> Simulation:
    """The arm from rest at q = 0 under a torque that is held from sample to sample."""
    spacing = float(t[1] - t[0])
    return simulate(model, signal.table(t), times=t, step=spacing / 4, **options)


def measured(sim: Simulation) -> Log:
    """The encoder's counts, and backward differences of them."""
    return sim.log(sensors=Sensors(position_resolution=ENCODER, velocity="backward", acceleration="backward"))


class Arm:
    """The Rotradi with friction terms of one's own choice, and the paper's θ1…θ21 from our parameters."""

    def __init__(self, *friction: str | Term) -> None:
        self.robot = load_robot("rotradi")
        self.terms = terms(self.robot, *friction)
        self.base = base_parameters(self.robot, self.terms)
        self.dynamics = Dynamics(self.robot, self.terms)
        self.map = forms.map_of(forms.ROTRADI + forms.ROTRADI_FRICTION, self.robot, self.terms.names)
        nominal = Model.nominal(self.robot)
        self.truth = Model(self.robot, self.terms, nominal.theta)
        self.theta = self.map @ nominal.theta

    def model(self, theta: np.ndarray) -> Model:
        """A model with the paper's parameters: our vector nearest to the truth that has them."""
        change = np.linalg.lstsq(self.map, theta - self.theta, rcond=None)[0]
        return Model(self.robot, self.terms, self.truth.theta + change)

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """Percent of each of θ1…θ21."""
        return 100.0 * np.abs(theta - self.theta) / np.abs(self.theta)


@cache
def arm(*friction: str | Term) -> Arm:
    return Arm(*(friction or ("viscous", "coulomb")))
