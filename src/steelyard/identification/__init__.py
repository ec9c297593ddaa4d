"""Identification of a model from logs: the function, its result, the structure search, the report and the files."""
