"""The step over items, five times, with the same choices (wfsa/items/beams.py): what differs is where the arrays lie.

    numpy    the reference: one node at a time, in the words of the definitions
    cython   the host's: the compiled step (ext/items/step.hpp)
    torch    tensor operations of fixed shape, on any torch device
    triton   two fused kernels a step (triton_kernels.py), on a GPU
    jax      array operations of fixed shape, jitted

``ItemIndex`` steps with the first two; the others copy an index to a device, and share ``device_layout.py``: what a
node's entries are, in operations that torch and JAX both have.
"""
