"""The stage *Motion*: what to play on the robot."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class MotionStage(Stage):
    """What to play on the robot."""

    name = "motion"
    title = "Motion"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Motion</h1>{callout('note', 'what to play on the robot.')}")


STUDIO_STAGES.register("motion")(MotionStage())
