"""A designed motion in the words of robot controllers."""
