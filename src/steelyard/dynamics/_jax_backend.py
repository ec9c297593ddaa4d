"""Traced functions on JAX arrays, for automatic differentiation and GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steelyard.dynamics.function import Function
from steelyard.dynamics.graph import evaluate_graph
from steelyard.errors import SteelyardError
from steelyard.ground.extras import import_extra

# XLA's fusion on CPUs recomputes the whole chain for every output of a regressor (6–9× slower than without). This is a
# debugging option, so failure must be handled.
_NO_FUSION = {"xla_disable_hlo_passes": "fusion"}


def jax_function(function: Function) -> Callable[..., Any]:
    """Convert to f(*inputs) on JAX arrays `(…, width)` with result `(…, *shape)`, which JAX can compile, map and
    differentiate.

    It computes in JAX's precision: switch on `jax_enable_x64` for doubles.
    """
    jnp = _jax().numpy

    def run(*arrays: Any) -> Any:
        if len(arrays) != len(function.inputs):
            raise SteelyardError(f"{function.name} takes {', '.join(function.inputs)}, but got {len(arrays)} arrays.")
        leading = jnp.broadcast_shapes(*(jnp.shape(a)[:-1] for a in arrays))
        columns = {
            name: [a[..., k] for k in range(width)]
            for (name, width), a in zip(function.inputs.items(), map(jnp.asarray, arrays), strict=True)
        }
        values = evaluate_graph(function.graph, function.outputs, columns, library=jnp)
        flat = jnp.zeros((*leading, function.size))
        if values:
            rows = jnp.stack([jnp.broadcast_to(v, leading) for v in values], axis=-1)
            flat = flat.at[..., function.places].set(rows)
        return flat.reshape(*leading, *function.shape)

    return run


def jitted(function: Function, *examples: Any) -> Callable[..., Any]:
    """Compile a function by XLA, on CPUs without fusion if XLA allows it.

    Args:
        function: Traced function.
        examples: Arrays with the shapes of the inputs.
    """
    jax = _jax()
    run = jax_function(function)
    if jax.default_backend() == "cpu":
        try:
            compiled: Callable[..., Any] = jax.jit(run, compiler_options=_NO_FUSION).lower(*examples).compile()
            return compiled
        except Exception as error:  # XLA raises many kinds of errors; fall back to compiling without the option
            if "xla_disable_hlo_passes" not in str(error):
                raise
    plain: Callable[..., Any] = jax.jit(run).lower(*examples).compile()
    return plain


def _jax() -> Any:
    return import_extra("jax", "jax", "The engine `jax`")
