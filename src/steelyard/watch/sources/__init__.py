"""Sources of samples, one kind a file: see `steelyard.watch.source`."""
