"""Monitor a robot while it works: here it replays a log in which somebody pushes joint 2 for 0.3 s."""

import math
from dataclasses import replace

from arm import TRUTH, record

import steelyard as sy

# The limits follow from a log without contacts, and from the rate of false alarms that you accept.
calibration = sy.watch.calibrate_contact(sy.watch.load_uncertain_model(TRUTH), [record(2, seconds=60.0)])
calibration.write("calibration.json")
settings = sy.WatchSettings(calibration="calibration.json", false_alarms_hz=1.0 / 86400.0, speed=math.inf)

log = record(1)
push = (log.t > 5.0) & (log.t < 5.3)
tau = log.tau.copy()
tau[push, 1] -= 15.0  # N m, from outside

pushed = replace(log, tau=tau)

result = sy.monitor(
    TRUTH, pushed, settings=settings, on_event=lambda event: print(f"{event.t:7.2f} s: {event.message}")
)
print(result)
contacts = [event for event in result.events if event.kind == "contact"]
assert any(4.9 < event.t < 5.3 for event in contacts)

# A running robot: an address instead of a log, and a function that ends it.
# sy.monitor("run", "tcp:5005", on_event=print, stopped=lambda: False)
