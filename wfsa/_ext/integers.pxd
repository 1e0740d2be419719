# Python integers as int64.

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t


cdef extern from *:
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


cdef inline int64_t integer(x) except? -1:
    """`x` as an int64, or the nearest one if it does not fit.  TypeError when it is no integer: 1.5, "1", None."""
    cdef int overflow = 0
    cdef int64_t got = PyLong_AsLongLongAndOverflow(x, &overflow)
    return got if not overflow else INT64_MAX if overflow > 0 else INT64_MIN
