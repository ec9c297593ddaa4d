"""Parquet files: columns and groups of rows that are not needed are not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steelyard.errors import LogError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.pages import odd_page
from steelyard.signals._arrow import ArrowColumns, is_list
from steelyard.signals.table import READERS, LogReader, TableBlock, later_rows

# Rows of a batch, and bytes that are read ahead of each column: four, and sixteen, times as many take twice the memory.
BATCH, BUFFER = 1 << 14, 1 << 16


@READERS.register("parquet")
class ParquetReader(LogReader):
    """A Parquet file; never more of it is held than a few pages."""

    suffixes = (".parquet", ".pq")
    description = (
        "only the columns and groups of rows that are needed; a column `q` of lists becomes the columns `q1`, `q2`, …, "
        "and one of names (`name`, `joint_names`) names the joints"
    )
    magic = b"PAR1"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        self._looked_at: set[tuple[str, ...]] = set()
        with self._opened() as file:
            schema = file.schema_arrow
            self._check_size(file.metadata)
            self.row_count = int(file.metadata.num_rows)
            lists = tuple(str(field.name) for field in schema if is_list(field.type))
            self._arrow = ArrowColumns(path, schema, self._first_rows(file, lists) if lists else None)
            self.names, self.joints = self._arrow.names, self._arrow.joints

    def _first_rows(self, file: Any, columns: tuple[str, ...]) -> Any:
        self._check_pages(file.schema, 0, columns)
        try:
            return next(file.iter_batches(1, columns=list(columns), use_threads=False), None)
        except Exception as error:  # as below
            raise _broken(self.path, error) from None

    def _check_size(self, metadata: Any) -> None:
        """What a group of rows unpacks to must be in proportion to the file: repeated values shrink to nothing."""
        size = self.path.stat().st_size
        for k in range(metadata.num_row_groups):
            unpacked = metadata.row_group(k).total_byte_size
            if not 0 <= unpacked <= max(BUDGET, MOST_TIMES_SMALLER * size) or metadata.row_group(k).num_rows < 0:
                raise LogError(
                    f"{self.path}: unpacks from {size / 1e6:.3g} MB to {unpacked / 1e6:.3g} MB in one group of rows, "
                    "more than a log would."
                )

    def _check_pages(self, schema: Any, first: int, columns: tuple[str, ...]) -> None:
        """That no page declares more than there is, before room is made for it; once for all passes over all rows."""
        if columns in self._looked_at:
            return
        try:
            paths = enumerate(schema.column(k).path for k in range(len(schema)))
            roots = tuple(f"{name}." for name in columns)
            wanted = [k for k, path in paths if path in columns or path.startswith(roots)]
            with self.path.open("rb") as file:
                odd = odd_page(file, wanted, first)
        except Exception as error:  # as below
            raise _broken(self.path, error) from None
        if odd is not None:
            raise LogError(f"{self.path}: {odd}; write or copy it again.")
        if first == 0:
            self._looked_at.add(columns)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        with self._opened() as file:
            skipped, first = 0, 0
            while first < file.metadata.num_row_groups:
                count = file.metadata.row_group(first).num_rows
                if skipped + count > start:
                    break
                skipped, first = skipped + count, first + 1
            groups = list(range(first, file.metadata.num_row_groups))
            sources = self._arrow.sources(columns)
            self._check_pages(file.schema, first, tuple(sources))
            try:
                batches = file.iter_batches(BATCH, row_groups=groups, columns=sources, use_threads=False)
                found = (self._arrow.block(batch, columns, skipped + k * BATCH) for k, batch in enumerate(batches))
                yield from later_rows(found, start - skipped)
            except LogError:
                raise
            except Exception as error:  # as below
                raise _broken(self.path, error) from None

    def _opened(self) -> Any:
        import pyarrow.parquet as pq

        try:
            # Unbuffered ahead of time: a file with one huge group of rows is then read page by page.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        except (
            Exception
        ) as error:  # of damaged bytes Arrow raises its own errors, and those of Python's text and numbers
            raise _broken(self.path, error) from None


def _broken(path: Path, error: Exception) -> LogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LogError(f"{path}: is not a readable Parquet file, or is cut short ({reason}); write or copy it again.")
