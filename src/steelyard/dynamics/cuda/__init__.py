"""Traced functions on an NVIDIA GPU, through CuPy: the same graph that becomes machine code for the processor."""
