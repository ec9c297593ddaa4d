"""Machine code: the only place that knows of LLVM, ctypes, vector registers, lanes and strides.

Rooms outside hand over traced functions and arrays:

* `run.Compiled`        a function over the samples of a batch: dense results, triangles, Gram matrices,
* `kernel.Kernel`       a function over many robots, and `Single` over one state,
* `rk4.Stepper`         robots that are stepped together,
* `gram.BlockFunction`  a function whose results stay where it leaves them, and `BlockEquations`, their Gram matrices,
* `reflect`, `balance`  the inner loops of recursive least squares, sample by sample.

`text` writes LLVM assembly, `emit` writes a graph with it, `drivers` the loops around, and `code` makes it run.
"""
