"""Real robots and drives and their pages: commands as a stranger would type them, and a picture of each report.

    STEELYARD_DATA=folder python benchmarks/gallery.py    # into build/gallery and docs/gallery.md
    STEELYARD_DATA=folder python benchmarks/gallery.py --only emps

The reports hold parts of the logs, which belong to those who published them: they stay in build/gallery. Pictures need
Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES, PICTURES = ROOT / "build" / "gallery", ROOT / "docs" / "images" / "gallery"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
FILES = ROOT / "docs" / "gallery-files"
_HEAD = """# Gallery

Default results on published logs. The options name the columns and the joints (and, for one robot, make its angles
exact, as its message advises). Each page was made by the command below it; the logs belong to their publishers and are
not part of this package ([scoreboard](scoreboard.md): their sources, and the figures compared with others). To make all
of them: `python benchmarks/gallery.py`.

"""
# Cards per row at the top of the page, and their width [px].
_CARDS, _CARD_WIDTH = 3, 240


@dataclass(frozen=True)
class Robot:
    """A robot, the logs to fit, those to judge by (none: the last 30 %), and what its command must be told."""

    title: str
    folder: str
    logs: tuple[str, ...]
    judges: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        judged = [x for log in self.judges for x in ("--validate", f"{log}.parquet")] or ["--holdout", "0.3"]
        return ["identify", "robot.urdf", *(f"{log}.parquet" for log in self.logs), *judged, *self.options]


def _map(name: str) -> tuple[str, str]:
    return "--map", f"{name}.toml"


TIAGO = ",".join(("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))))
UR, AIRBOT = "ident__20_02_{}-{}sec_12harm", "vali_ptrnSrch_N7T25QR-{}"
ROBOTS = (
    Robot("Universal Robots UR10e", "ur10e", (UR.format(10, 30),), (UR.format(12, 50),), _map("ur10e")),
    Robot("Franka Panda", "panda_gaz", ("trajectory_1",)),
    Robot("Stäubli TX40", "staubli_tx40", ("trajectory",), (), _map("tx40")),
    Robot("PAL TIAGo", "tiago", ("trajectory",), (), (*_map("tiago"), "--joints", TIAGO)),
    Robot("Krang (Schunk LWA)", "krang_arm", ("train",), ("test",), _map("krang")),
    Robot("AIRBOT Play", "airbot_play", (AIRBOT.format(5), "vali_opt"), ("vali_ga_N12T25",), ()),
    Robot("KUKA KR 300", "kuka_kr300", ("trajectory_A", "trajectory_B"), ("trajectory_C",)),
    Robot("EMPS, a sliding axis", "emps", ("ident",), ("val_pulses",)),
)  # fmt: skip


@dataclass(frozen=True)
class Drive:
    """A drive whose logs may be shared: its command, and the files for simulators to download."""

    title: str
    folder: str
    source: str
    options: tuple[str, ...]
    downloads: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        return ["actuator", "raw.parquet", "--runs", "logs.parquet", *self.options, "--simulators"]


DRIVES = (
    Drive("Dynamixel XL330", "bam_xl330", "runs of [BAM](https://github.com/Rhoban/bam), Apache-2.0",
          ("--holdout", "kp=400", "--name", "xl330"),
          ("mujoco.xml", "mujoco-dcmotor.xml", "bam-m6.json", "drive.json")),
)  # fmt: skip


def identified(robot: Robot | Drive, data: Path) -> dict[str, object]:
    """The verdict and scores of the robot, from its run folder, which is made where it is not there."""
    run = PAGES / robot.folder
    maps = ROOT / "benchmarks" / "maps"
    told = [str(maps / word) if (maps / word).is_file() else word for word in robot.command]
    if not (run / "result.json").exists():
        subprocess.run([sys.executable, "-m", "steelyard", *told, "-o", str(run)], cwd=data / robot.folder, check=True)
    if isinstance(robot, Drive):
        (FILES / robot.folder).mkdir(parents=True, exist_ok=True)
        for name in robot.downloads:
            shutil.copy(run / name, FILES / robot.folder / name)
    found: dict[str, object] = json.loads((run / "result.json").read_text("utf-8"))
    return found


def picture(robot: Robot | Drive) -> None:
    """The top of the report, as a reader meets it."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    at = PICTURES / f"{robot.folder}.webp"
    page = (PAGES / robot.folder / "report.html").resolve().as_uri()
    size = ("--window-size=1100,900", "--force-device-scale-factor=0.7", "--virtual-time-budget=4000")
    subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--hide-scrollbars", *size, f"--screenshot={at}", page],
        check=True, capture_output=True,
    )  # fmt: skip


def section(robot: Robot | Drive, found: dict[str, object]) -> str:
    """A robot's part of the page: its verdict, its picture, its command; files of a drive."""
    said = shlex.join(["steelyard", *robot.command, "-o", "found"])
    shown = f"![The report of the {robot.title}](images/gallery/{robot.folder}.webp)\n\n"
    sentence, links = _sentence(found), ""
    if isinstance(robot, Drive):
        files = " · ".join(f"[{name}](gallery-files/{robot.folder}/{name})" for name in robot.downloads)
        links = f"\nFrom {robot.source}. Download: {files}\n"
    return f"## {robot.title}\n*{sentence}*\n\n{shown}```text\n{said}\n```\n{links}"


def _sentence(found: dict[str, object]) -> str:
    if isinstance(verdict := found.get("verdict"), dict):
        # Without the list of assumptions that the logs cannot test; the picture shows it.
        return re.sub(r"These logs cannot test .*?\.( |$)", "", str(verdict["sentence"])).strip()
    errors = found["errors_rad"]
    assert isinstance(errors, dict)
    fitted, judged = (1e3 * float(errors[name]) for name in ("fit", "hold-out"))
    return f"Rollouts of runs with another gain miss the positions by {judged:.0f} mrad, of the fit by {fitted:.0f}."


def cards(chosen: list[Robot | Drive]) -> str:
    """Rows of linked pictures."""
    cells = [
        f"[![The report of the {x.title}](images/gallery/{x.folder}.webp){{width={_CARD_WIDTH}}}<br>{x.title}]"
        f"(#{_anchor(x.title)})"
        for x in chosen
    ]
    cells += [""] * (-len(cells) % _CARDS)
    rows = [f"| {' | '.join(cells[k : k + _CARDS])} |" for k in range(0, len(cells), _CARDS)]
    return "\n".join([f"|{' |' * _CARDS}", f"|{'---|' * _CARDS}", *rows]) + "\n\n"


def _anchor(title: str) -> str:
    """The anchor that the site gives to a heading."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="one folder")
    given = options.parse_args()
    data = os.environ.get("STEELYARD_DATA")
    if not data or not CHROMIUM:
        print("The gallery needs STEELYARD_DATA, the folder of the logs, and Chromium.", file=sys.stderr)
        return 2
    every: list[Robot | Drive] = [*ROBOTS, *DRIVES]
    chosen = [robot for robot in every if given.only in ("", robot.folder)]
    sections = []
    for robot in chosen:
        folder = Path(data).resolve() / ("actuators" if isinstance(robot, Drive) else "")
        sections.append(section(robot, identified(robot, folder)))
        picture(robot)
    if not given.only:
        (ROOT / "docs" / "gallery.md").write_text(_HEAD + cards(chosen) + "\n".join(sections), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
