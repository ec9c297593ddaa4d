"""One step of a drive, written once over scalars: forces, delayed feedback, dry friction with exact stops, play.

Forces by the midpoint rule, viscous terms by the trapezoidal rule, dry friction by the share of the step in motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.actuators.drive_model import DRIVE_FRICTION

if TYPE_CHECKING:
    from steelyard.actuators.drive_structure import DriveStructure
    from steelyard.dynamics.graph import Graph

# Added to speeds and angles in denominators [rad/s, rad]: far below the resolution of any sensor.
_TINY = 1e-12


def step_of(
    s: DriveStructure, graph: Graph, sample: list[Any], state: list[Any], lag: tuple[list[Any], list[Any]],
    p: Mapping[str, Any], corrected: bool,
) -> list[Any]:  # fmt: skip
    """Return the state after a step: position, velocity, then goal's filter, gap and speed of the gears where there.

    Friction and limits that depend on the velocity use the velocity at the begin of the step, or, with `corrected`, the
    mean velocity over the step from a first such step.

    Args:
        s: Structure of the drive.
        graph: Graph that records the operations.
        sample: Inputs of the step (`SAMPLED`).
        state: State before the step.
        lag: Positions and velocities at two neighbouring earlier steps, for a delayed feedback.
        p: Parameters and constants of the run, by name.
        corrected: Use the mean velocity over the step.
    """
    goal, next_goal, later, _, enabled, supply, feedforward = sample
    q, v, h = state[0], state[1], p["step"]
    middle = q + 0.5 * h * v
    measured, late = middle, None
    if "feedback_delay" in s.effects:
        share = p["feedback_delay"] / h - 0.5 - p["lag_steps"]
        measured, late = ((1.0 - share) * near + share * far for near, far in zip(*lag, strict=True))
    rest: list[Any] = []
    if "goal_time" in s.effects:
        share = 1.0 - graph.unary("exp", -h / p["goal_time"])
        filtered = state[2] + (goal + (next_goal - goal) * later - state[2]) * share
        errors = [(1.0, 0.5 * (state[2] + filtered) - measured)]
        rest = [filtered]
    else:
        # A jump of the goal within the step: the torque limit applies to both goals separately, not to their mean.
        errors = [(1.0 - later, goal - measured), (later, next_goal - measured)]
    external = -p["gravity"] * graph.unary("sin", middle - p["rest_angle"] + p["offset"])
    inputs = (enabled, supply, feedforward)

    def torques(speed: Any) -> tuple[Any, Any, Any]:
        return _motor(s, graph, errors, speed, p, inputs, late)

    if "backlash" in s.effects:
        play = state[-2:]
        new_q, new_v, play, mean = _with_play(s, graph, q, v, play, external, torques, p, play[1])
        if corrected:
            new_q, new_v, play, mean = _with_play(s, graph, q, v, state[-2:], external, torques, p, mean)
        return [new_q, new_v, *rest, *play]

    def following(speed: Any) -> tuple[Any, Any]:
        force, drag, motor = torques(speed)
        dry = _dry(s, graph, speed, motor, external, p)
        mass = (p["inertia"] + p["armature"]) / h
        return _slid(graph, v, 1.0, mass, drag + p["friction_viscous"], force + external, dry)

    v_next, mean = following(v)
    if corrected:
        v_next, mean = following(mean)
    return [q + h * mean, v_next, *rest]


def _slid(graph: Graph, v: Any, share: Any, mass: Any, drag: Any, pull: Any, dry: Any) -> tuple[Any, Any]:
    """Velocity after a share of a step with dry friction, and the way over it in units of velocity and step.

    The joint slides until it stops, and rests or starts to slide back in the remaining time. A joint that dry friction
    can hold has a velocity of exactly zero, and so have its sensitivities. `mass` is the inertia over the step.
    """
    side, speed = graph.unary("sign", v), graph.unary("abs", v)
    heavy, half = mass, 0.5 * drag * share
    end = side * (v * (heavy - half) + share * (pull - side * dry)) / (heavy + half)
    sliding, beyond = _larger(graph, 0.0, end), _larger(graph, 0.0, -end)
    moving = speed / (speed + beyond + _TINY)
    left = share * (1.0 - moving)
    free = graph.unary("sign", pull) * _larger(graph, 0.0, graph.unary("abs", pull) - dry)
    back = free * left / (heavy + 0.5 * drag * left)
    way = 0.5 * share * moving * (v + side * sliding) + 0.5 * left * back
    return side * sliding + back, way


def _with_play(
    s: DriveStructure, graph: Graph, q: Any, v: Any, play: list[Any], external: Any, torques: Any,
    p: Mapping[str, Any], speed: Any,
) -> tuple[Any, Any, list[Any], Any]:  # fmt: skip
    """A step of gears and load with play between them: apart until they touch, then together (inelastic impact).

    The encoder is on the side of the load, friction on that of the gears. `play` has the angle of the gears minus that
    of the load, and the speed of the gears.
    """
    gap, gears, h, half = play[0], play[1], p["step"], 0.5 * p["backlash"]
    rotor, load = p["armature"] / h, p["inertia"] / h
    force, drag, motor = torques(speed)
    drag = drag + p["friction_viscous"]
    alone, way = _slid(graph, gears, 1.0, rotor, drag, force, _dry(s, graph, speed, motor, 0.0, p))
    loose = v + external / load
    loose_way = 0.5 * (v + loose)
    change = h * (way - loose_way)
    # Share of the step until the gears touch the side towards which they move.
    room = half - graph.unary("sign", change) * gap
    apart = _smaller(graph, 1.0, _larger(graph, 0.0, room) / (graph.unary("abs", change) + _TINY))
    touch, left = graph.unary("step", 1.0 - apart), 1.0 - apart
    both = rotor + load
    at = (rotor * (gears + apart * (alone - gears)) + load * (v + apart * (loose - v))) / both
    dry = _dry(s, graph, speed, motor, external, p)
    joined, joined_way = _slid(graph, at, left, both, drag, force + external, dry)
    new_v = loose + touch * (joined - loose)
    new_gears = alone + touch * (joined - alone)
    new_gap = _larger(graph, -half, _smaller(graph, half, gap + change))
    # The ways of both until the contact, along parabolas, then the common way.
    own = apart * (v + 0.5 * apart * (loose - v))
    new_q = q + h * (own + joined_way)
    moved = apart * (gears + 0.5 * apart * (alone - gears)) + joined_way
    return new_q, new_v, [new_gap, new_gears], moved


def _motor(
    s: DriveStructure, graph: Graph, errors: list[tuple[Any, Any]], v: Any, p: Mapping[str, Any],
    inputs: tuple[Any, Any, Any], late: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Force, drag and torque of the motor, torque = force − drag·v; `errors` are (share of the step, error).

    `late` is the delayed velocity in the feedback of the loop; None: its present velocity, as an implicit drag.
    """
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
        if late is not None:
            force = enabled * (spring - damping * late)
            return force, 0.0, force
        return enabled * spring, enabled * damping, enabled * (spring - damping * v)
    up = down = p["torque_limit"]
    if "no_load_speed" in s.effects:
        share = v / p["no_load_speed"]
        up = up * _larger(graph, 0.0, _smaller(graph, 1.0, 1.0 - share))
        down = down * _larger(graph, 0.0, _smaller(graph, 1.0, 1.0 + share))
    motor = drag = 0.0
    for w, error in errors:
        wanted = stiffness * error + feedforward - damping * (v if late is None else late)
        motor = motor + w * _larger(graph, -down, _smaller(graph, up, wanted))
        # Inside the limits the damping is also implicit, so that a stiff loop is stable with any step.
        drag = drag + w * graph.unary("step", up - wanted) * graph.unary("step", wanted + down)
    motor, drag = enabled * motor, enabled * drag * damping
    if late is not None:
        return motor, 0.0, motor
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


def _larger(graph: Graph, a: Any, b: Any) -> Any:
    return graph.binary("max", a, b)


def _smaller(graph: Graph, a: Any, b: Any) -> Any:
    return graph.binary("min", a, b)
