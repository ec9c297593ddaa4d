"""The studio: a web server on this machine with six stages from robot file to model, and jobs in child processes."""

from .jobs import JobLimits
from .server import ServeOptions, serve

__all__ = [
    "JobLimits", "ServeOptions", "serve",
]  # fmt: skip
