"""Look for known vulnerabilities of the pinned versions: python packaging/audit.py [requirements/lock.txt].

Needs pip-audit and a connection to the database that it asks. Exit code 0: none is known. 1: some are; each is named.
2: nothing was audited, because pip-audit is missing or its database cannot be reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements" / "lock.txt"
_SECONDS = 300


def judge(printed: str, said: str) -> tuple[int, str]:
    """Return the exit code and the words for what pip-audit found.

    Args:
        printed: its standard output, JSON where the audit was made.
        said: its standard error.
    """
    try:
        packages = json.loads(printed)["dependencies"]
    except (ValueError, LookupError, TypeError):
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        return 2, f"Nothing was audited: pip-audit did not reach its database ({last[:200]})."
    lines = [
        f"{one['name']} {one['version']}: {hole['id']}; fixed in {', '.join(hole['fix_versions']) or 'no version yet'}"
        for one in packages
        for hole in one.get("vulns", ())
    ]
    if lines:
        return 1, "\n".join([f"{len(lines)} known vulnerabilities; change pyproject.toml and run `make lock`.", *lines])
    # pip-audit itself passes over a package that its database does not know, and ends with 0.
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if skipped or not packages:
        return 2, f"Not audited: {len(skipped)} of {len(packages)} pinned versions ({', '.join(skipped[:5])} …)."
    return 0, f"No vulnerability is known of {len(packages)} pinned versions."


def main(lock: Path) -> int:
    """Audit a file of pinned versions; returns the exit code.

    Args:
        lock: versions with hashes, as `make lock` writes them.
    """
    command = [
        sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--requirement", str(lock), "--format",
        "json", "--progress-spinner", "off",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        code, words = judge(done.stdout, done.stderr)
    except subprocess.TimeoutExpired:
        code, words = 2, f"Nothing was audited: the database did not answer within {_SECONDS} s."
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else LOCK))
