# Types for other extension modules; the documentation is in ext/bindings/mask.pyx.

from libc.stdint cimport int64_t, uint32_t


cdef class TokenMask:
    cdef bytes data     # ceil(size / 32) words
    cdef int64_t size   # of the vocabulary: the width of the model's logits


cdef struct Target:
    Py_buffer view
    uint32_t* p
    int64_t n_words

cdef int target_open(Target* target, buffer, int64_t need, row) except -1
