"""Machine code: the only place that knows of LLVM, ctypes, vector registers, lanes and strides.

Rooms outside hand over traced functions and arrays:

* `run.Compiled`       a function over the samples of a batch: dense results, triangles, Gram matrices,
* `kernel.Kernel`      a function over many robots or one state, for loops that are machine code themselves (`rk4`),
* `gram.LaneEquations` rows that stay where the kernels leave them, between the two passes of a gradient,
* `reflect`, `balance` the inner loops of recursive least squares, sample by sample.

`text` writes LLVM assembly, `emit` writes a graph with it, `drivers` the loops around, and `code` makes it run.
"""
