"""A robot watched while it works: what touches it, what it carries, how its drives age, whether its model holds."""
