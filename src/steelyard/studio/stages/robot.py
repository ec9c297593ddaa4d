"""The stage *Robot*: what is to be identified."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class RobotStage(Stage):
    """What is to be identified."""

    name = "robot"
    title = "Robot"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Robot</h1>{callout('note', 'what is to be identified.')}")


STUDIO_STAGES.register("robot")(RobotStage())
