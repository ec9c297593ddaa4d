"""Run by every build of a wheel and every editable install: puts the trimmed plotly.js among the assets of reports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TrimPlotly(BuildHookInterface):
    """Plotly is needed to build the package, and never to use it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        path = Path(self.root, "src", "steelyard", "report", "plotly_js.py")
        spec = importlib.util.spec_from_file_location("plotly_js", path)
        assert spec is not None
        assert spec.loader is not None
        # By its path: the package itself cannot be imported where only the tools of the build are installed.
        plotly_js = importlib.util.module_from_spec(spec)
        sys.modules["plotly_js"] = plotly_js  # dataclasses look their module up
        spec.loader.exec_module(plotly_js)
        plotly_js.write_scripts()
