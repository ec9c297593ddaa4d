"""Traced functions on an NVIDIA GPU, through CuPy, from the same graphs as machine code for the processor."""
