"""LeRobot data sets: a folder with meta/info.json and Parquet files of one or several episodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.untrusted_files import read_json, regular_file
from steelyard.signals.readers.parquet import ParquetReader
from steelyard.signals.table import READERS, ColumnValues, LogReader, TableBlock, block_length, later_rows, numbered

_MOST_FILES = 100_000
_EPISODE = re.compile(r"episode_(\d+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_CLOCK = ("frame_index", "episode_index")


@READERS.register("lerobot")
class LeRobotReader(LogReader):
    """Reads the episodes of a data set one after the other; the clock of each begins at zero.

    Vectors become columns such as "observation.state/elbow.pos" if their parts have names, else "observation.state1".
    The time is the frame number over the frames per second, since the stored stamps have single precision.
    """

    path: Path
    suffixes = ()
    description = (
        "a data set's folder (`meta/info.json`, versions 2 and 3): columns `t`, `observation.state/<name>`, "
        "`action/<name>`, …; the mapping's key `episodes` selects some; images are ignored"
    )
    folders = True
    part = "episode"

    @classmethod
    def claims(cls, path: Path) -> bool:
        return (path / "meta" / "info.json").is_file()

    def __init__(self, path: Path, topic: str | None = None) -> None:
        super().__init__(path, topic)
        info = read_json(path / "meta" / "info.json", LogError, "name the folder of the data set")
        entries = info.entries()
        if "fps" not in entries or "features" not in entries:
            info.fail("lacks fps or features, which every data set has.")
        self._fps = entries["fps"].positive()
        self._episodes = _parse_episodes(path, topic)
        self._files = self._data_files()
        self._first = ParquetReader(self._files[0])
        missing = [name for name in _CLOCK if name not in self._first.names]
        if missing:
            raise LogError(f"{self._files[0]}: lacks the column '{missing[0]}', which every data set has.")
        self._sources = {"t": "frame_index", **self._named(entries["features"].value)}
        self.names = tuple(self._sources)
        whole = self._episodes is None or all(_EPISODE.fullmatch(file.stem) for file in self._files)
        if len(self._files) == 1 and whole:
            self.row_count = self._first.row_count

    def _data_files(self) -> list[Path]:
        files = sorted(self.path.glob("data/chunk-*/*.parquet"))[:_MOST_FILES]
        for file in files:
            regular_file(file, LogError)
        numbers = [_EPISODE.fullmatch(file.stem) for file in files]
        if self._episodes is not None:  # files of a single episode have its number in their names
            files = [f for f, n in zip(files, numbers, strict=True) if n is None or int(n[1]) in self._episodes]
        if not files:
            part = "" if self._episodes is None else f" of the episodes {self.topic}"
            raise LogError(f"{self.path}: has no data files{part} (data/chunk-…/*.parquet); copy the data set again.")
        return files

    def _named(self, features: Any) -> dict[str, str]:
        """Map the column names of the reader to those of the file; parts of vectors get their names."""
        out: dict[str, str] = {}
        known = set(self._first.names)
        for feature, about in features.items() if isinstance(features, Mapping) else ():
            parts = about.get("names") if isinstance(about, Mapping) else None
            if isinstance(parts, Mapping):  # {"motors": [...]}, as in earlier versions
                parts = next(iter(parts.values()), None)
            texts = [str(x) for x in parts] if isinstance(parts, list) else []
            columns = numbered(str(feature), len(texts))
            if texts and set(columns) <= known and len(set(texts)) == len(texts):
                out |= {f"{feature}/{text}": column for text, column in zip(texts, columns, strict=True)}
        taken = {*out.values(), "timestamp", *_CLOCK}
        return out | {name: name for name in self._first.names if name not in taken}

    def estimated_rows(self) -> int:
        return (self._first.row_count or 0) * len(self._files)

    def blocks(self, columns: Sequence[str], start: int = 0) -> Iterator[TableBlock]:
        return later_rows(self._all_blocks(columns), start)

    def _all_blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        wanted = list(dict.fromkeys([*_CLOCK, *(self._sources[name] for name in columns)]))
        empty = True
        for file in self._files:
            reader = self._first if file == self._files[0] else ParquetReader(file)
            missing = next((name for name in wanted if name not in reader.names), None)
            if missing is not None:
                raise LogError(f"{file}: lacks the column '{missing}', which {self._files[0].name} has.")
            for block in reader.blocks(wanted):
                selected = self._select_episodes(block)
                empty = empty and not block_length(selected)
                yield {name: self._column(selected, name) for name in columns}
        if empty:
            raise LogError(f"{self.path}: has no rows of the episodes {self.topic or 'in it'}.")

    def _select_episodes(self, block: TableBlock) -> TableBlock:
        if self._episodes is None:
            return block
        rows = np.isin(block["episode_index"], list(self._episodes))
        return block if rows.all() else {name: column[rows] for name, column in block.items()}

    def _column(self, block: TableBlock, name: str) -> ColumnValues:
        values = block[self._sources[name]]
        return np.asarray(values, dtype=float) / self._fps if name == "t" else values


def _parse_episodes(path: Path, text: str | None) -> set[int] | None:
    """Parse episodes such as "0-4,7"; None for all."""
    if text is None:
        return None
    out: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) - int(match[1]) > 1_000_000:
            raise LogError(f"{path}: episodes are numbers such as 0-4,7, not '{text[:60]}'.")
        out |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return out
