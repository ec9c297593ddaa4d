"""The stage *Identify*: the model."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class IdentifyStage(Stage):
    """The model."""

    name = "identify"
    title = "Identify"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Identify</h1>{callout('note', 'the model.')}")


STUDIO_STAGES.register("identify")(IdentifyStage())
