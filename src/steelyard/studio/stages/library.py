"""The stage *Library*: every run in the folder."""

from __future__ import annotations

from steelyard.report.elements import Html, callout
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent, Stage, Standing


class LibraryStage(Stage):
    """Every run in the folder."""

    name = "library"
    title = "Library"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("empty", "not yet")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return Html(f"<h1>Library</h1>{callout('note', 'every run in the folder.')}")


STUDIO_STAGES.register("library")(LibraryStage())
