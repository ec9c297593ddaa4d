"""Job files in the studio's folder, which may come from a stranger: they are shown but never started automatically.

A button starts the command of a job file, but only if the studio itself composes such commands.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.untrusted_files import parse_json, read_text
from steelyard.report.elements import Html, text
from steelyard.studio.containment import OWN, StudioError
from steelyard.studio.jobs import END_FILE, JOB_FILE, Jobs, StudioJob
from steelyard.studio.page import button
from steelyard.studio.stage import RAIL

_MOST_JOBS, _MOST_ENTRIES, _LARGEST_FILE, _LONGEST_COMMAND = 12, 500, 64_000, 400


@dataclass(frozen=True)
class ForeignJob:
    """A job file in the studio's folder.

    Args:
        id: Name of its folder.
        stage: Stage that it belongs to; one of `RAIL`.
        words: Words of its command, without `steelyard`.
        refusal: Reason why the studio does not run it; "" if it can be started.
    """

    id: str
    stage: str
    words: tuple[str, ...]
    refusal: str

    @property
    def command(self) -> str:
        """The command line, quoted for a shell."""
        return shlex.join(["steelyard", *self.words])


def foreign_jobs(jobs: Jobs) -> list[ForeignJob]:
    """List the unfinished job files in the folder of the studio's `jobs`, newest first."""
    home = jobs.folder.root / OWN / "jobs"
    if home.is_symlink() or home.parent.is_symlink():
        return []
    try:
        with os.scandir(home) as entries:
            names = [e.name for e in islice(entries, _MOST_ENTRIES) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    files = (_read(jobs, home / name) for name in sorted(names, reverse=True))
    return list(islice((job for job in files if job is not None), _MOST_JOBS))


def _read(jobs: Jobs, folder: Path) -> ForeignJob | None:
    file = folder / JOB_FILE
    if file.is_symlink() or not file.is_file() or os.path.lexists(folder / END_FILE):
        return None
    try:
        document = parse_json(read_text(file, _LARGEST_FILE, StudioError), str(file), StudioError)
    except SteelyardError:
        return None
    words = document.get("words") if isinstance(document, dict) else None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return None
    refusal = ""
    try:
        jobs.check(words)
    except SteelyardError as error:
        refusal = str(error)
    stage = document.get("stage")
    return ForeignJob(folder.name, stage if stage in RAIL else "use", tuple(words), refusal)


def start_foreign(jobs: Jobs, name: str) -> StudioJob:
    """Start the command of a job file, after the user has seen it and pressed its button.

    Args:
        jobs: The jobs of the studio.
        name: Id of the job file.
    """
    foreign = _get(jobs, name)
    if foreign.refusal:
        raise StudioError(foreign.refusal)
    words = foreign.words
    output = words[words.index("-o") + 1] if "-o" in words else ""
    job = jobs.add(foreign.stage, f"{words[0]}, from a job file of the folder", words, output)
    remove_foreign(jobs, name)
    return job


def remove_foreign(jobs: Jobs, name: str) -> None:
    """Move a job file to the trash of the folder.

    Args:
        jobs: The jobs of the studio.
        name: Id of the job file.
    """
    path = jobs.folder.root / OWN / "jobs" / _get(jobs, name).id
    with suppress(OSError):
        jobs.folder.move_to_trash(path)


def _get(jobs: Jobs, name: str) -> ForeignJob:
    job = next((job for job in foreign_jobs(jobs) if job.id == name), None)
    if job is None:
        raise StudioError("This job file was removed from the folder; reload the page.")
    return job


def foreign_jobs_html(jobs: list[ForeignJob]) -> Html:
    """Render the `jobs` of `foreign_jobs` with their commands; "" for an empty list."""
    if not jobs:
        return Html("")
    rows = []
    for job in jobs:
        start = button("job/start-foreign", "Start", id=job.id) if not job.refusal else ""
        why = f'<p class="why">{text(job.refusal)}</p>' if job.refusal else ""
        rows.append(
            f'<div class="job note" data-foreign="1"><code>{text(shortened(job.command, _LONGEST_COMMAND))}</code>{why}'
            f'<div class="row">{start}{button("job/remove-foreign", "Remove", id=job.id)}</div></div>'
        )
    return Html(
        "<h3>Job files in this folder, not started</h3><p class=\"hint\">These job files came with the folder. Start "
        f"one only if you trust its command.</p>{''.join(rows)}"
    )  # fmt: skip
