"""Identify a model from one log, test it on another, and save a run folder with a report."""

from arm import ARM, record

import steelyard as sy

result = sy.identify(ARM, record(1), validate=record(2), plain=True)

print(result)  # verdict in one line
for name, value, error in zip(result.base.names, result.estimate.beta, result.estimate.standard_errors, strict=True):
    print(f"{name:40.40} {value:9.4g} ± {error:.2g}")

scores = result.to_pandas("scores")  # error of every joint on the hold-out log
print(scores.iloc[:, :4].to_string(index=False))

result.report("report.html")  # the whole report as one page
result.to_urdf("arm_identified.urdf")  # the model for other programs
