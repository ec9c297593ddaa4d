"""Files of a designed motion for robot controllers."""
