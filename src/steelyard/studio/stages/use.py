"""The stage *Use*: what the model is good for."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class UseStage(Stage):
    """What the model is good for."""

    name = "use"
    title = "Use"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Use</h1>{callout('note', 'what the model is good for.')}")


STUDIO_STAGES.register("use")(UseStage())
