"""How large pages are, and how long a browser takes to open them: `python benchmarks/pages.py [RUN/report.html …]`.

A headless Chromium, warmed up for three seconds, opens each page from a server on this machine, anew every time and
without a cache. Told are the median and the slowest of the rounds, in milliseconds after the page was asked for: until
the text is painted and the figures in view are drawn, and until all others can be (half a second later on purpose; the
robot begins when it is looked at).
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
# What the requirement says: bytes, and milliseconds.
MOST_BYTES, MOST_MILLISECONDS = 2_000_000, 1000
WATCH = """<script>(function look() {
  var page = document.documentElement.dataset, paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (!paint || (document.querySelector("figure.plot") && !page.loaded)) { setTimeout(look, 20); return; }
  var seen = { opened: Math.max(paint.startTime, Number(page.ready || 0)), loaded: Number(page.loaded || 0) };
  fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
})();</script>"""


# A browser that has just been started is busy with itself: this page hands over when it is not any more.
WAIT = b"<!doctype html><title>wait</title><script>setTimeout(() => location.replace('/page'), 3000)</script>"


def opened(page: str, rounds: int, priority: int) -> list[dict[str, float]]:
    """When a page was open and loaded, in each of so many rounds."""
    answers: queue.Queue[bytes] = queue.Queue()
    body = page.replace("</body>", f"{WATCH}</body>").encode("utf-8")

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = WAIT if self.path == "/" else body
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(sent)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(sent)

        def do_POST(self) -> None:
            answers.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Say nothing."""

    found = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
                browser = subprocess.Popen(
                    [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
                     "--disable-background-networking", f"--user-data-dir={profile}",
                     "--window-size=1400,900", "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    preexec_fn=(lambda: os.nice(priority)) if priority else None,
                )  # fmt: skip
                try:
                    found.append(json.loads(answers.get(timeout=120)))
                finally:
                    browser.terminate()
                    browser.wait()
        server.shutdown()
    return found


def main() -> int:
    """Measure, print a table, and exit with 1 where a page is too large or too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="reports; default: those of the gallery, made if need be")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--priority", type=int, default=0, help="niceness of the browser, where the machine is busy")
    given = parser.parse_args()
    if not given.pages:
        subprocess.run([sys.executable, str(Path(__file__).with_name("gallery.py"))], check=True)
        given.pages = sorted(Path(__file__).parents[1].glob("build/gallery/*/report.html"))
    if not CHROMIUM:
        print("This needs Chromium.", file=sys.stderr)
        return 2
    print("| page | kB | opened [ms], median | slowest | all loaded [ms] |\n|---|---|---|---|---|")
    failed = False
    for path in given.pages:
        page = path.read_text("utf-8")
        times = opened(page, given.rounds, given.priority)
        first, whole = ([t[name] for t in times] for name in ("opened", "loaded"))
        size, middle = len(page.encode("utf-8")), statistics.median(first)
        failed |= size > MOST_BYTES or middle > MOST_MILLISECONDS
        row = (path.parent.name or path.stem, size / 1000.0, middle, max(first), statistics.median(whole))
        print("| {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |".format(*row))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
