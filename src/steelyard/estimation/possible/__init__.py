"""The fit among the robots that can exist."""
