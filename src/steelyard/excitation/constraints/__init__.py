"""What a motion must keep to: limits of joints, of drives and of space, at every instant and not only at samples."""

from steelyard.excitation.constraints.constraint import Constraint
from steelyard.excitation.constraints.joint_limits import JointLimits
from steelyard.excitation.constraints.limits import Limits, default_limits
from steelyard.excitation.constraints.space import Plane, Point, box
from steelyard.excitation.constraints.traced_limit import TracedLimit

__all__ = ["Constraint", "JointLimits", "Limits", "Plane", "Point", "TracedLimit", "box", "default_limits"]
