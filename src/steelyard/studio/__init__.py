"""The studio: a web server on this machine with six stages from robot file to model, and jobs in child processes."""
