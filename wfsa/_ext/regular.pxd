# Types for other extension modules; the documentation is in ext/bindings/regular.pyx.

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector


cdef extern from "regular/likeness.hpp" namespace "wfsa" nogil:
    cdef cppclass Edge:
        uint8_t lo, hi
        int32_t target

    cdef cppclass Dfa:
        vector[int32_t] indptr
        vector[Edge] edges
        vector[uint8_t] accept
        int32_t size()

    cdef cppclass Likeness:
        vector[int32_t] kind
        int32_t longest
        int32_t part(int32_t, int32_t)


cdef class Automaton:
    cdef Dfa with_empty  # only where the empty word is in it
    cdef Dfa dfa         # without
    cdef vector[int64_t] names  # of its states; this and the next when `labelled`
    cdef Likeness likeness
    cdef bint labelled, kept
    cdef readonly bint nullable
    cdef const Dfa* full(self) noexcept
    cdef int64_t bytes(self) noexcept
    cdef int label(self) except -1


cpdef Automaton automaton(tree, int64_t max_states=*)
