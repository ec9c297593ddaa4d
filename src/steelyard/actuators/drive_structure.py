"""`DriveStructure`: the effects of a drive, and the traced equations of one step with their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from steelyard.actuators.drive_model import DRIVE_FRICTION, drive_parameters
from steelyard.dynamics import Function, LaneScan
from steelyard.dynamics.function import Trace, dense
from steelyard.dynamics.graph import Graph, forward

# Time-varying inputs of a step: the goal at its begin and at its end, the share of the step with the latter and its
# derivative by the delay, the share of the step with the drive on, the supply voltage, the feed-forward torque.
SAMPLED = ("goal", "next_goal", "next_share", "next_share_by_delay", "enabled", "supply", "feedforward")
# Constants of a run, besides the parameters.
FIRST_POSITION = "start"  # name of the first position among the parameters of sensitivities
OF_RUN = ("step", "inertia", "gravity", "rest_angle", "kp", "kd")


@dataclass(frozen=True)
class DriveStructure:
    """The effects of a drive, without numbers.

    Args:
        kind: "voltage", "torque" or "position-loop".
        friction: "M1" to "M6".
        effects: Further effects (`DRIVE_EFFECTS`).
        stribeck_exponent: Exponent of the fading of friction, 1 or 2.
    """

    kind: str
    friction: str
    effects: tuple[str, ...] = ()
    stribeck_exponent: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return drive_parameters(self.kind, self.friction, self.effects)

    @property
    def label(self) -> str:
        """Short name, such as "M3 + delay"."""
        return " + ".join([self.friction, *(e.replace("_", " ") for e in self.effects)])

    @property
    def states(self) -> int:
        """Number of states: position, velocity, and the goal's filter."""
        return 3 if "goal_time" in self.effects else 2


def _larger(graph: Graph, a: Any, b: Any) -> Any:
    return graph.binary("max", a, b)


def _smaller(graph: Graph, a: Any, b: Any) -> Any:
    return graph.binary("min", a, b)


def _step(
    s: DriveStructure, graph: Graph, sample: list[Any], state: list[Any], p: Mapping[str, Any], corrected: bool
) -> list[Any]:
    """One step: midpoint rule for the forces, implicit viscous terms, dry friction as a proximal step.

    Dry friction enters as v ← sign(N)·max(|N| − F, 0)/m: it only removes momentum. The velocity of a joint that it can
    hold is exactly zero, and so are its sensitivities. Velocity-dependent friction and limits use the velocity at the
    begin of the step, or, with `corrected`, the velocity at its middle from a first such step.
    """
    goal, next_goal, later, _, enabled, supply, feedforward = sample
    q, v = state[0], state[1]
    h = p["step"]
    middle = q + 0.5 * h * v
    rest: list[Any] = []
    if "goal_time" in s.effects:
        share = 1.0 - graph.unary("exp", -h / p["goal_time"])
        filtered = state[2] + (goal + (next_goal - goal) * later - state[2]) * share
        errors = [(1.0, 0.5 * (state[2] + filtered) - middle)]
        rest = [filtered]
    else:
        # A jump of the goal within the step: the torque limit applies to both goals separately, not to their mean.
        errors = [(1.0 - later, goal - middle), (later, next_goal - middle)]
    external = -p["gravity"] * graph.unary("sin", middle - p["rest_angle"] + p["offset"])
    heavy = (p["inertia"] + p["armature"]) / h

    def following(speed: Any) -> Any:
        force, drag, motor = _motor(s, graph, errors, speed, p, (enabled, supply, feedforward))
        dry = _dry(s, graph, speed, motor, external, p)
        drag = drag + p["friction_viscous"]
        momentum = v * (heavy - 0.5 * drag) + force + external
        moving = _larger(graph, 0.0, graph.unary("abs", momentum) - dry)
        return graph.unary("sign", momentum) * moving / (heavy + 0.5 * drag)

    v_next = following(v)
    if corrected:
        v_next = following(0.5 * (v + v_next))
    return [q + 0.5 * h * (v + v_next), v_next, *rest]


def _motor(
    s: DriveStructure, graph: Graph, errors: list[tuple[Any, Any]], v: Any, p: Mapping[str, Any],
    inputs: tuple[Any, Any, Any],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Force, drag and torque of the motor, torque = force − drag·v; `errors` are (share of the step, error)."""
    enabled, supply, feedforward = inputs
    drag: Any
    if s.kind == "voltage":
        gain = p["duty_gain"] * p["kp"]
        duty = sum(w * _larger(graph, -1.0, _smaller(graph, 1.0, gain * error)) for w, error in errors)
        force, drag = enabled * (p["torque_per_volt"] * supply * duty), enabled * p["back_emf"]
        motor = force - drag * v
        if "torque_limit" not in s.effects:
            return force, drag, motor
        limit = p["torque_limit"]
        inside = graph.unary("step", limit - motor) * graph.unary("step", motor + limit)
        motor, drag = _larger(graph, -limit, _smaller(graph, limit, motor)), drag * inside
        return motor + drag * v, drag, motor
    stiffness = p["kp_gain"] * p["kp"] if s.kind == "torque" else p["stiffness"]
    damping = p["kd_gain"] * p["kd"] if s.kind == "torque" else p["damping"]
    if "torque_limit" not in s.effects:
        spring = sum(w * (stiffness * error) for w, error in errors) + feedforward
        return enabled * spring, enabled * damping, enabled * (spring - damping * v)
    up = down = p["torque_limit"]
    if "no_load_speed" in s.effects:
        share = v / p["no_load_speed"]
        up = up * _larger(graph, 0.0, _smaller(graph, 1.0, 1.0 - share))
        down = down * _larger(graph, 0.0, _smaller(graph, 1.0, 1.0 + share))
    motor = drag = 0.0
    for w, error in errors:
        wanted = stiffness * error + feedforward - damping * v
        motor = motor + w * _larger(graph, -down, _smaller(graph, up, wanted))
        # Inside the limits the damping is also implicit, so that a stiff loop is stable with any step.
        drag = drag + w * graph.unary("step", up - wanted) * graph.unary("step", wanted + down)
    motor, drag = enabled * motor, enabled * drag * damping
    return motor + drag * v, drag, motor


def _dry(s: DriveStructure, graph: Graph, v: Any, motor: Any, external: Any, p: Mapping[str, Any]) -> Any:
    """The largest dry friction torque at velocity v (Duclusaud et al., ICRA 2025, M1 to M6)."""
    names = DRIVE_FRICTION[s.friction]
    dry = p["friction_base"]
    through = graph.unary("abs", motor - external)
    if "load_friction" in names:
        dry = dry + p["load_friction"] * through
    if "load_friction_quad" in s.effects:
        dry = dry + p["load_friction_quad"] * through * through
    if "load_friction_motor" in names:
        dry = dry + graph.unary("abs", p["load_friction_motor"] * motor - p["load_friction_external"] * external)
    if "friction_stribeck" in names:
        share = graph.unary("abs", v) / p["stribeck_velocity"]
        fade = graph.unary("exp", -(share * share if s.stribeck_exponent == 2 else share))
        slow = p["friction_stribeck"]
        if "load_friction_stribeck" in names:
            slow = slow + p["load_friction_stribeck"] * through
        if "load_friction_motor_stribeck" in names:
            both = p["load_friction_motor_stribeck"] * motor - p["load_friction_external_stribeck"] * external
            slow = slow + graph.unary("abs", both)
        if "load_friction_motor_quad" in names:
            opposed = graph.unary("step", -motor * external)
            lifting = graph.unary("step", graph.unary("abs", motor) - graph.unary("abs", external))
            of_load = lifting * p["load_friction_external_quad"] * external * external
            of_motor = (1.0 - lifting) * p["load_friction_motor_quad"] * motor * motor
            slow = slow + opposed * (of_load + of_motor)
        dry = dry + fade * slow
    return dry


def step_function(s: DriveStructure, wrt: tuple[str, ...], corrected: bool) -> Function:
    """Return one step of a structure with the sensitivities to the parameters `wrt`, for `LaneScan`.

    Results: position, velocity, then the position's sensitivities.

    Args:
        s: Structure.
        wrt: Names of parameters.
        corrected: Use the velocity of the step's middle for friction and limits.
    """
    n, names = s.states, (*s.names, *OF_RUN)
    widths = {"sample": len(SAMPLED), "state": n * (1 + len(wrt)), "lag": 0, "fixed": len(names)}
    t = Trace(widths)
    sample, state, _, fixed = t.all()
    following = _step(s, t.graph, sample, state[:n], dict(zip(names, fixed, strict=True)), corrected)
    moved: list[Any] = []
    for k, name in enumerate(wrt):
        tangents: dict[tuple[str, int], Any] = {("state", i): state[n * (1 + k) + i] for i in range(n)}
        if name == "delay":
            tangents["sample", SAMPLED.index("next_share")] = sample[SAMPLED.index("next_share_by_delay")]
        elif name != FIRST_POSITION:
            tangents["fixed", names.index(name)] = 1.0
        moved.append(forward(t.graph, following, tangents))
    flat = [*following, *(x for column in moved for x in column)]
    results = [following[0], following[1], *(column[0] for column in moved)]
    return dense(f"drive {s.label}", t.graph, widths, [*flat, *results])


@cache
def scan_of(s: DriveStructure, wrt: tuple[str, ...], corrected: bool) -> LaneScan:
    """Return the compiled scan of a structure; it has working memory for one thread.

    Args:
        s: Structure.
        wrt: Names of parameters with sensitivities.
        corrected: Use the velocity of the step's middle for friction and limits.
    """
    return LaneScan(step_function(s, wrt, corrected))
