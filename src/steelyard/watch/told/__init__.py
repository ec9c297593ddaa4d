"""What a watch tells, one part a file: see `steelyard.watch.parts`."""
