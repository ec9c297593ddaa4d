"""Job files that lie in the studio's folder. They may come from a stranger: they are shown, and never started.

Earlier versions kept their jobs there. A job is started again only by the button of a form that shows its command, and
only if the studio itself composes such commands.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.untrusted import parse_json, read_text
from steelyard.report.elements import Html, text
from steelyard.studio.containment import OWN, StudioError
from steelyard.studio.jobs import ENDED, JOB, Jobs, StudioJob
from steelyard.studio.page import button
from steelyard.studio.stage import RAIL

_MOST_JOBS, _MOST_ENTRIES, _LARGEST_FILE, _LONGEST_COMMAND = 12, 500, 64_000, 400


@dataclass(frozen=True)
class FoundJob:
    """A job file in the folder that was not started here.

    Args:
        id: the name of its folder.
        stage: the stage it belongs to; one of `RAIL`.
        words: of its command, without `steelyard`.
        refusal: why the studio does not run it; "" if it can be started.
    """

    id: str
    stage: str
    words: tuple[str, ...]
    refusal: str

    @property
    def command(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(["steelyard", *self.words])


def found_jobs(jobs: Jobs) -> list[FoundJob]:
    """List the job files in the folder that never ended, the newest first; none is started.

    Args:
        jobs: the jobs of the studio, which know what may be run.
    """
    home = jobs.place.root / OWN / "jobs"
    if home.is_symlink() or home.parent.is_symlink():
        return []
    try:
        with os.scandir(home) as entries:
            names = [e.name for e in islice(entries, _MOST_ENTRIES) if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    made = (_read(jobs, home / name) for name in sorted(names, reverse=True))
    return list(islice((job for job in made if job is not None), _MOST_JOBS))


def _read(jobs: Jobs, folder: Path) -> FoundJob | None:
    file = folder / JOB
    if file.is_symlink() or not file.is_file() or os.path.lexists(folder / ENDED):
        return None
    try:
        said = parse_json(read_text(file, _LARGEST_FILE, StudioError), str(file), StudioError)
    except SteelyardError:
        return None
    words = said.get("words") if isinstance(said, dict) else None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return None
    refusal = ""
    try:
        jobs.check(words)
    except SteelyardError as error:
        refusal = str(error)
    stage = said.get("stage")
    return FoundJob(folder.name, stage if stage in RAIL else "use", tuple(words), refusal)


def start_found(jobs: Jobs, name: str) -> StudioJob:
    """Start the command of a job file; the user has seen the command and pressed its button.

    Args:
        jobs: the jobs of the studio.
        name: the folder of the job file.
    """
    found = _named(jobs, name)
    if found.refusal:
        raise StudioError(found.refusal)
    words = found.words
    output = words[words.index("-o") + 1] if "-o" in words else ""
    job = jobs.add(found.stage, f"{words[0]}, found in the folder", words, output)
    forget_found(jobs, name)
    return job


def forget_found(jobs: Jobs, name: str) -> None:
    """Move a job file to the trash of the folder.

    Args:
        jobs: the jobs of the studio.
        name: the folder of the job file.
    """
    folder = jobs.place.root / OWN / "jobs" / _named(jobs, name).id
    with suppress(OSError):
        jobs.place.trash(folder)


def _named(jobs: Jobs, name: str) -> FoundJob:
    found = next((one for one in found_jobs(jobs) if one.id == name), None)
    if found is None:
        raise StudioError("There is no such job file in the folder; it may have been moved.")
    return found


def found_html(jobs: list[FoundJob]) -> Html:
    """Draw the job files of the folder with their commands; "" if there are none.

    Args:
        jobs: what `found_jobs` lists.
    """
    if not jobs:
        return Html("")
    rows = []
    for job in jobs:
        start = button("job/start-found", "Start it", id=job.id) if not job.refusal else ""
        why = f'<p class="why">{text(job.refusal)}</p>' if job.refusal else ""
        rows.append(
            f'<div class="job note" data-found="1"><code>{text(shortened(job.command, _LONGEST_COMMAND))}</code>{why}'
            f'<div class="row">{start}{button("job/forget-found", "Remove", id=job.id)}</div></div>'
        )
    return Html(
        "<h3>Found in the folder, not started</h3><p class=\"hint\">These job files came with the folder. Start one "
        f"only if you know its command.</p>{''.join(rows)}"
    )  # fmt: skip
