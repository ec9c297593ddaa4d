"""Machine code: the only room that uses LLVM, ctypes, vector registers, lanes and strides.

Other rooms pass traced functions and arrays:

* `run.CompiledFunction`        a function over the samples of a batch: dense results, triangles, Gram matrices,
* `kernel.Kernel`       a function over many robots, and `Single` over one state,
* `rk4.Stepper`         robots that are stepped together,
* `gram.BlockFunction`  a function whose results stay in the kernel's layout, and `BlockEquations`, their Gram matrices,
* `reflect`, `balance`  the inner loops of recursive least squares, sample by sample.

`text` writes LLVM assembly, `emit` a graph with it, `drivers` the loops around, and `code` compiles and loads it.
"""
