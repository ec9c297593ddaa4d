"""Sources of samples, one per file: see `steelyard.watch.live_source`."""
