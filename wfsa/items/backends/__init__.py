"""The step over items, with the same choices everywhere (wfsa/items/beams.py): what differs is where the arrays lie.

    cython   the host's: the compiled step (ext/items/step.hpp)
    array_step.py    one step in array operations of fixed shape, over a trie in them (array_trie.py), for
        numpy    the host, to compare with
        torch    any torch device
        jax      a JAX device, jitted
    triton   two fused kernels a step (triton_kernels.py), on a GPU

``ItemIndex`` and ``LiveItems`` step with ``cython`` and ``numpy``; the others copy either to a device.
"""
