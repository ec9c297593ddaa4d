"""Predict the torques of a log with a model and its 95 % band, for collision detection or feed-forward."""

from arm import ARM, record

import steelyard as sy

result = sy.identify(ARM, record(1), validate=record(2), plain=True, check=False)
predictions = sy.predict(result, record(4))
print(predictions)
print(predictions.to_pandas().to_string(index=False))
predictions.save("torques", overwrite=True)
