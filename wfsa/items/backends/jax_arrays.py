"""An index's arrays in JAX: as arguments of programs, and in 64 bits.

**Programs.** JAX copies the arrays that a jitted function closes over into the program, gigabytes here. So what holds
them is a pytree with the arrays as leaves, and jitted functions take it as an argument. Its static rest has no arrays:
a program that JAX keeps keeps no index alive.

**64 bits.** Node ids are int64, and JAX makes no int64 unless it is told to. To tell it so for the whole program
(``jax_enable_x64``) would turn the defaults of a model to 64 bits. So methods run in a scope of their own
(``jax.enable_x64``, from JAX 0.8), and what they return is int64 outside, too; there it can be passed on, through
``jit`` and ``scan``, but arithmetic on it is cut to 32 bits. A node id that was cut is refused by its dtype.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

from wfsa.installing import needs

with needs("wfsa.items.backends.jax_arrays", extra="jax"):
    import jax
    import jax.numpy as jnp

from wfsa.items.backends.device_layout import ArrayOps, DeviceFilters, device_layout
from wfsa.items.beams import Beams
from wfsa.items.csr import CsrLayout
from wfsa.items.interval import IntervalLayout

jax.tree_util.register_dataclass(Beams, list(Beams.__slots__), [])
jax.tree_util.register_dataclass(DeviceFilters, ["which", "words", "before", "rows", "dead"], ["fingerprint"])


def jax_ops(device: Any) -> ArrayOps:
    """The index arithmetic's operations; ``take_along`` is for one request's arrays."""
    return ArrayOps(
        upload=lambda array: jax.device_put(array, device),
        where=jnp.where,
        zeros_like=jnp.zeros_like,
        gather=lambda array, at: array[at.clip(0, array.shape[0] - 1)].astype(jnp.int64),
        take_along=lambda array, at: array[at],
        count_less=jnp.searchsorted,
        stack=lambda arrays: jnp.stack(arrays, -1),
    )


def jit_64(*static: str) -> Callable[[Any], Any]:
    """``jax.jit`` with these arguments static, in a scope with 64 bits."""

    def decorate(function: Any) -> Any:
        jitted = jax.jit(function, static_argnames=static)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with jax.enable_x64(True):
                return jitted(*args, **kwargs)

        return call

    return decorate


class LayoutPytree:
    """Has ``layout``, an index's trie on a device, whose arrays are its leaves. Other attributes are static.

    A subclass is registered by ``jax.tree_util.register_pytree_node_class``, and sets nothing after ``_put``.
    """

    def _put(self, layout: IntervalLayout | CsrLayout, device: Any) -> None:
        with jax.enable_x64(True):
            self.layout = device_layout(layout, jax_ops(device))
        self._names = tuple(name for name, value in vars(self.layout).items() if isinstance(value, jax.Array))
        self._static = self._with([None] * len(self._names))

    def _with(self, arrays: Any) -> Any:
        other = copy.copy(self)
        other.layout = copy.copy(self.layout)
        vars(other.layout).update(zip(self._names, arrays, strict=True))
        return other

    def tree_flatten(self) -> tuple[list[Any], Any]:
        return [getattr(self.layout, name) for name in self._names], self._static

    @classmethod
    def tree_unflatten(cls, static: Any, arrays: Any) -> Any:
        whole = static._with(arrays)
        whole._static = static
        return whole
