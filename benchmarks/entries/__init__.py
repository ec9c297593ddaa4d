"""Methods of the open scoreboard: one file per method (README.md)."""
