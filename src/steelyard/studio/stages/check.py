"""The stage *Check*: is the log sound?"""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class CheckStage(Stage):
    """Is the log sound?"""

    name = "check"
    title = "Check"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Check</h1>{callout('note', 'is the log sound?')}")


STUDIO_STAGES.register("check")(CheckStage())
