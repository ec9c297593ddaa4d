"""The poses of a robot's links, and the joint positions that bring a frame to a pose."""
