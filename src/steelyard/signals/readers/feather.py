"""Arrow files: Feather (version 2) and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from steelyard.errors import LogError
from steelyard.ground.archives import BUDGET, MOST_TIMES_SMALLER
from steelyard.signals._arrow import ArrowColumns
from steelyard.signals.table import READERS, LogReader, TableBlock, block_length, later_rows


@READERS.register("feather")
class FeatherReader(LogReader):
    """Reads a file of record batches, one at a time."""

    suffixes = (".feather", ".arrow", ".ipc", ".arrows")
    description = "Feather and Arrow's IPC, one record batch after the other; lists of numbers as in Parquet"
    magic = b"ARROW1"

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        with path.open("rb") as file:
            start = file.read(6)
        if start.startswith(b"FEA1"):
            raise LogError(f"{path}: is a Feather file of version 1; write it again as version 2.")
        self._stream = start != self.magic
        batches = self._batches()
        schema = next(batches)
        self._arrow = ArrowColumns(path, schema, next(batches, None))
        self.names, self.joints = self._arrow.names, self._arrow.joints

    def counted_rows(self) -> int:
        batches = self._batches()
        next(batches)  # the schema
        return sum(batch.num_rows for batch in batches)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        return later_rows(self._all_blocks(columns), start)

    def _all_blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        batches, row = self._batches(), 0
        next(batches)  # the schema
        for batch in batches:
            block = self._arrow.block(batch, columns, row)
            row += block_length(block)
            yield block

    def _batches(self) -> Iterator[Any]:
        """Yield the schema, and then every batch after its validation."""
        import pyarrow as pa

        total, most = 0, max(BUDGET, MOST_TIMES_SMALLER * self.path.stat().st_size)
        try:
            with pa.OSFile(str(self.path), "rb") as source:
                file = pa.ipc.open_stream(source) if self._stream else pa.ipc.open_file(source)
                yield file.schema
                for batch in file if self._stream else map(file.get_batch, range(file.num_record_batches)):
                    batch.validate(full=True)
                    total += batch.nbytes
                    if total > most:
                        raise LogError(f"{self.path}: unpacks to {total / 1e6:.3g} MB, too large for a log.")
                    yield batch
        except LogError:
            raise
        except Exception as error:  # damaged bytes cause many kinds of errors in Arrow
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LogError(
                f"{self.path}: is not a readable Feather or Arrow file, or is cut short ({reason}); write it again."
            ) from None
