"""Parquet files: only the columns and row groups that are needed are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from steelyard.errors import LogError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.ground.remote import HELD_BYTES, AnyPath, RemoteBytes, RemoteFile
from steelyard.signals._arrow import ArrowColumns, is_list
from steelyard.signals._parquet_pages import column_ranges, odd_page
from steelyard.signals.table import READERS, LogReader, TableBlock, later_rows

# Rows of a batch, and read-ahead of each column [bytes]; four and sixteen times as much take twice the memory.
BATCH, BUFFER = 1 << 14, 1 << 16
# Read-ahead of a remote file with large row groups [bytes]: a request takes as long as a megabyte.
REMOTE_BUFFER = 1 << 20


@READERS.register("parquet")
class ParquetReader(LogReader):
    """Reads a Parquet file, with only a few pages in memory."""

    suffixes = (".parquet", ".pq")
    description = (
        "only the columns and row groups that are needed; a column `q` of lists becomes the columns `q1`, `q2`, …, "
        "and one of names (`name`, `joint_names`) names the joints"
    )
    magic = b"PAR1"
    by_pieces = True

    def __init__(self, path: AnyPath, topic: str | None = None) -> None:
        super().__init__(path, topic)
        self._checked: set[tuple[tuple[str, ...], int, int]] = set()
        self._bytes: RemoteBytes | None = path.open() if isinstance(path, RemoteFile) else None
        with self._opened() as file:
            schema = file.schema_arrow
            self._check_size(file.metadata)
            self.row_count = int(file.metadata.num_rows)
            lists = tuple(str(field.name) for field in schema if is_list(field.type))
            self._arrow = ArrowColumns(path, schema, self._first_rows(file, lists) if lists else None)
            self.names, self.joints = self._arrow.names, self._arrow.joints

    def _first_rows(self, file: Any, columns: tuple[str, ...]) -> Any:
        self._check_pages(file, range(min(1, file.num_row_groups)), columns)
        try:
            return next(file.iter_batches(1, columns=list(columns), use_threads=False), None)
        except Exception as error:  # as below
            raise _broken(self.path, error) from None

    def _check_size(self, metadata: Any) -> None:
        """Refuse row groups of disproportionate size; repeated values compress to almost nothing."""
        size = self.path.stat().st_size
        for k in range(metadata.num_row_groups):
            unpacked = metadata.row_group(k).total_byte_size
            if not 0 <= unpacked <= max(BUDGET, MOST_TIMES_SMALLER * size) or metadata.row_group(k).num_rows < 0:
                raise LogError(
                    f"{self.path}: unpacks from {size / 1e6:.3g} MB to {unpacked / 1e6:.3g} MB in one row group, too "
                    "large for a log."
                )

    def _check_pages(self, file: Any, groups: range, columns: tuple[str, ...]) -> None:
        """Refuse pages that declare more than they have, before memory is allocated; once for all passes."""
        if (columns, groups.start, groups.stop) in self._checked:
            return
        try:
            with self._plain_bytes() as plain, nullcontext() if self._bytes is None else self._bytes.looking_far():
                odd = odd_page(plain, _numbers(file.schema, columns), groups.start, groups.stop)
        except LogError:
            raise
        except Exception as error:  # as below
            raise _broken(self.path, error) from None
        if odd is not None:
            raise LogError(f"{self.path}: {odd}; write or copy it again.")
        self._checked.add((columns, groups.start, groups.stop))

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        with self._opened() as file:
            row, first = 0, 0
            while first < file.metadata.num_row_groups:
                count = file.metadata.row_group(first).num_rows
                if row + count > start:
                    break
                row, first = row + count, first + 1
            sources = self._arrow.sources(columns)
            for groups in self._runs(file, first, tuple(sources)):
                self._check_pages(file, groups, tuple(sources))
                try:
                    batches = file.iter_batches(BATCH, row_groups=list(groups), columns=sources, use_threads=False)
                    blocks = (self._arrow.block(batch, columns, row + k * BATCH) for k, batch in enumerate(batches))
                    yield from later_rows(blocks, max(0, start - row))
                except LogError:
                    raise
                except Exception as error:  # as below
                    raise _broken(self.path, error) from None
                row += sum(file.metadata.row_group(k).num_rows for k in groups)

    def _runs(self, file: Any, first: int, columns: tuple[str, ...]) -> Iterator[range]:
        """Yield ranges of row groups from the `first` on: all at once, or those of a remote file to fetch together."""
        if self._bytes is None:
            yield range(first, file.metadata.num_row_groups)
            return
        try:
            places = column_ranges(self._bytes, _numbers(file.schema, columns))  # type: ignore[arg-type]
        except LogError:
            raise
        except Exception as error:  # as below
            raise _broken(self.path, error) from None
        while first < len(places):
            stop, total = first, 0
            while stop < len(places) and (stop == first or total + _length(places[stop]) <= HELD_BYTES):
                total, stop = total + _length(places[stop]), stop + 1
            self._bytes.expect([place for group in places[first:stop] for place in group])
            yield range(first, stop)
            first = stop

    def _plain_bytes(self) -> Any:
        return self.path.open("rb") if self._bytes is None else nullcontext(self._bytes)

    def _opened(self) -> Any:
        import pyarrow.parquet as pq

        try:
            if self._bytes is not None:
                return pq.ParquetFile(self._bytes, pre_buffer=False, buffer_size=REMOTE_BUFFER)
            # Without pre-buffering, a file with one huge row group is read page by page.
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=BUFFER)
        except LogError:
            raise
        except Exception as error:  # damaged bytes cause many kinds of errors in Arrow
            raise _broken(self.path, error) from None


def _numbers(schema: Any, columns: tuple[str, ...]) -> list[int]:
    """Return the indices of `columns`, and of their nested columns, in the file."""
    paths = enumerate(schema.column(k).path for k in range(len(schema)))
    roots = tuple(f"{name}." for name in columns)
    return [k for k, path in paths if path in columns or path.startswith(roots)]


def _length(places: Sequence[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in places)


def _broken(path: AnyPath, error: Exception) -> LogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LogError(f"{path}: is not a readable Parquet file, or is cut short ({reason}); write or copy it again.")
