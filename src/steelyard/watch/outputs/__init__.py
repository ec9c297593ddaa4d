"""Where what a watch tells goes, one kind a file: see `steelyard.watch.output`."""
