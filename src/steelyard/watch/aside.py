"""`WatchAside`: what a watch does that can wait: parts that need not know at once, outputs, snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard.watch.batch import Seen
from steelyard.watch.output import Outputs, WatchReport
from steelyard.watch.parts import PartState, WatchEvent, WatchPart
from steelyard.watch.patient import PatientParts
from steelyard.watch.snapshots import Snapshots
from steelyard.watch.tally import Tally


class WatchAside:
    """Takes what the loop has seen, told and kept, and does the rest.

    Args:
        parts: of the watch, by name; those that are not urgent are shown samples here.
        outputs: where it goes.
        snapshots: where its state is kept; None for nowhere.
        threaded: in a thread of its own, as of a running robot.
    """

    def __init__(
        self, parts: dict[str, WatchPart], outputs: Outputs, snapshots: Snapshots | None, threaded: bool
    ) -> None:
        self._parts, self._outputs, self._snapshots = parts, outputs, snapshots
        self.tally = Tally()
        self._t = float("nan")
        self._patient = PatientParts(self._show, threaded, self.missed, self._failed)

    def seen(self, seen: Seen) -> None:
        """Samples that were `seen`."""
        self._t = float(seen.batch.t[-1])
        self._patient.see(seen)
        self._outputs.took(seen)

    def happened(self, event: WatchEvent) -> None:
        """An `event`."""
        self._outputs.happened(event)

    def reported(self, made: WatchReport) -> None:
        """A report, as far as it was `made`: parts that can wait tell theirs when they have seen as much."""
        self._patient.then(lambda: self._outputs.told(self.whole(made)))

    def kept(self, known: PartState) -> None:
        """Keep the state that is `known` of the urgent, in the same way: samples need not wait for the disk."""

        def keep() -> None:
            assert self._snapshots is not None
            try:
                self._snapshots.write(self.whole_state(known))
            except OSError as why:
                self.tally.count("not kept", f"The state cannot be kept ({why.strerror or why}); make room.")

        self._patient.then(keep)

    def tell(self) -> None:
        """Pass on the sentences about what goes wrong here."""
        for tally in (self._outputs.tally, self.tally):
            for sentence in tally.fetch():
                self._outputs.happened(WatchEvent(self._t, "source", sentence))

    def whole(self, made: WatchReport) -> WatchReport:
        """The report that was `made`, with what is told and counted here."""
        told = ask_parts(self._parts, False, self._failed)
        return replace(made, counts=self.counts(made.counts), parts={**made.parts, **told})

    def whole_state(self, known: PartState) -> PartState:
        """The state that is `known`, with that of the parts here."""
        counts = json.dumps(self.counts(json.loads(str(known["counts"]))))
        return {**known, **states_of(self._parts, False), "counts": np.array(counts)}

    def counts(self, known: Mapping[str, int]) -> dict[str, int]:
        """Counts that are `known`, with what was counted here."""
        return added(known, self._outputs.tally, self.tally)

    def wait(self) -> None:
        """Return when all is done."""
        self._patient.wait()

    def end(self) -> None:
        """The same, and parts write what they hold back: the watch is over."""
        self.wait()
        for part in list(self._parts.values()):
            if not part.urgent:
                try:
                    part.end()
                except Exception as why:
                    self._failed(f"A part did not end well ({type(why).__name__}: {why}).")

    def close(self) -> None:
        """All is done, and no more will come."""
        self._patient.close()
        self._outputs.close()
        if self._snapshots is not None:
            self._snapshots.close()

    def _show(self, seen: Seen) -> None:
        for name, part in list(self._parts.items()):
            if not part.urgent:
                show_part(self._parts, name, seen, self._failed)
                for event in part.fetch_events():
                    self._outputs.happened(event)

    def _failed(self, why: str) -> None:
        self.tally.count("parts failed")
        self._outputs.happened(WatchEvent(self._t, "failed", why, alarm=True))

    def missed(self, count: int = 1) -> None:
        """So many samples did not reach the parts here: `count`."""
        sentence = "Samples come faster than all parts can take them; some miss some."
        self.tally.count("missed by parts", sentence, count)


def show_part(parts: dict[str, WatchPart], name: str, seen: Seen, failed: Callable[[str], None]) -> None:
    """Let a part, one of `parts` by its `name`, see what was `seen`; one that fails (`failed` is told why) must not
    blind the others."""
    try:
        parts[name].take(seen)
    except Exception as why:
        parts.pop(name, None)
        failed(f"The part '{name}' has failed ({type(why).__name__}: {why}); the watch goes on without it.")


def ask_parts(
    parts: dict[str, WatchPart], urgent: bool, failed: Callable[[str], None]
) -> dict[str, Mapping[str, Any]]:  # fmt: skip
    """What those `parts` tell that are `urgent`, or the others; one that fails (`failed` is told why) is left out from
    then on."""
    told: dict[str, Mapping[str, Any]] = {}
    for name, part in list(parts.items()):
        if part.urgent == urgent:
            try:
                told[name] = part.telling()
            except Exception as why:
                parts.pop(name, None)
                failed(f"The part '{name}' has failed ({type(why).__name__}: {why}); the watch goes on without it.")
    return told


def states_of(parts: Mapping[str, WatchPart], urgent: bool, **more: Any) -> PartState:
    """The states of those `parts` that are `urgent`, or of the others, and of what is named beside (`more`)."""
    holders = {f"part {name}": part for name, part in parts.items() if part.urgent == urgent} | more
    return {f"{name}/{key}": np.array(x) for name, holder in holders.items() for key, x in holder.state().items()}


def added(known: Mapping[str, int], *tallies: Tally) -> dict[str, int]:
    """Counts that are `known`, and those of `tallies`."""
    out = dict(known)
    for tally in tallies:
        for kind, count in list(tally.counts.items()):
            out[kind] = out.get(kind, 0) + count
    return out
