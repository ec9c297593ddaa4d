"""Methods of the table of actuators (../README.md)."""
