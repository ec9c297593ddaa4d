"""From logs to a model: the verb, its result, what tunes it, and how it is written."""
