"""The numbers that a paper prints, as they come with the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO

import numpy as np

from steelyard.errors import UnknownNameError
from steelyard.robot.spatial import Array


@dataclass(frozen=True)
class Printed:
    """A table as printed: rows of text by column."""

    rows: tuple[dict[str, str], ...]

    def words(self, column: str) -> tuple[str, ...]:
        self._check(column)
        return tuple(row[column] for row in self.rows)

    def numbers(self, column: str) -> Array:
        """NaN where the paper leaves a cell empty."""
        return np.array([float(word) if word else np.nan for word in self.words(column)])

    def _check(self, column: str) -> None:
        if column not in self.rows[0]:
            raise UnknownNameError("column", column, self.rows[0])


def printed(paper: str, table: str) -> Printed:
    """A table of a paper.

    >>> printed("rotradi", "table2").numbers("filtered_power").tolist()
    [3.76, 2.7, 7.29]
    """
    text = files("steelyard.papers").joinpath("data", paper, f"{table}.csv").read_text(encoding="utf-8")
    return Printed(tuple(csv.DictReader(StringIO(text))))
