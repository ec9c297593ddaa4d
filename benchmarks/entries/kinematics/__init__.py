"""Methods of the table of kinematics (../README.md)."""
