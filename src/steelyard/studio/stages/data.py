"""The stage *Data*: what was recorded."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class DataStage(Stage):
    """What was recorded."""

    name = "data"
    title = "Data"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Data</h1>{callout('note', 'what was recorded.')}")


STUDIO_STAGES.register("data")(DataStage())
