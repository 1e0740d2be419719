# cython: language_level=3
"""Ids of items by hash, and hashes of contents: the boundary to id_table.hpp and id_map.hpp.

Python has checked shapes and types.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AsStringAndSize, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GetSlice, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_Check, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

import numpy as np


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL
    bint PyUnicode_IS_ASCII(object)


cdef extern from "items/id_table.hpp" namespace "wfsa::items" nogil:
    cdef cppclass Offsets:
        const void* data
        cbool wide
        int64_t at "operator[]"(int64_t)

    cdef cppclass IntegerKeys:
        const int64_t* values

    cdef cppclass ByteKeys:
        const uint8_t* data
        Offsets offsets
        int64_t width

    cdef cppclass IdTable[Keys]:
        IdTable(const Keys&, int64_t) except +
        int64_t distinct()
        void find(const Keys&, int64_t, int, int64_t*) except +

    int64_t mark_among(const int64_t*, int64_t, const int64_t*, int64_t, int64_t, int64_t, uint8_t*) except +
    uint64_t hash_content(const uint8_t*, int64_t, uint64_t)


cdef extern from "items/id_map.hpp" namespace "wfsa::items" nogil:
    cdef cppclass IdMap[Keys]:
        IdMap(const Keys&, Offsets, int64_t) except +
        int64_t bytes()
        cbool distinct()
        void find(const Keys&, int64_t, vector[int64_t]&, int64_t*) except +


cdef void* _data(object array) except? NULL:
    """The first byte of a contiguous array, NULL of None; the caller keeps the array."""
    cdef Py_buffer view
    if array is None:
        return NULL
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    cdef void* found = view.buf
    PyBuffer_Release(&view)
    return found


cdef Offsets _offsets(object array) except *:
    """int32 or int64, or None; the caller keeps the array."""
    cdef Offsets found
    found.data = _data(array)
    found.wide = array is not None and array.dtype.itemsize == 8
    return found


cdef ByteKeys _bytes(object data, object offsets, int64_t width) except *:
    cdef ByteKeys keys
    keys.data = <const uint8_t*>_data(data)
    keys.offsets = _offsets(offsets)
    keys.width = width
    return keys


cdef class IntegerTable:
    """Positions of int64[n] keys, by value; keeps the array alive."""

    cdef unique_ptr[IdTable[IntegerKeys]] table
    cdef object kept

    def __init__(self, object keys):
        cdef IntegerKeys given
        cdef int64_t n = len(keys)
        given.values = <const int64_t*>_data(keys)
        self.kept = keys
        with nogil:
            self.table.reset(new IdTable[IntegerKeys](given, n))

    @property
    def distinct(self):
        """How many different keys there are."""
        return self.table.get().distinct()

    def find(self, object others, int threads):
        """int64[m]: the first position of each of int64[m] among the keys, -1 where it is none."""
        cdef IntegerKeys given
        cdef int64_t n = len(others)
        out = np.empty(n, np.int64)
        given.values = <const int64_t*>_data(others)
        cdef int64_t* out_at = <int64_t*>_data(out)
        with nogil:
            self.table.get().find(given, n, threads, out_at)
        return out


cdef class BytesTable:
    """Positions of n keys of bytes: uint8 data and offsets (int32 or int64)[n + 1], or None and their one width."""

    cdef unique_ptr[IdTable[ByteKeys]] table
    cdef object kept

    def __init__(self, object data, object offsets, int64_t width, int64_t n):
        cdef ByteKeys given = _bytes(data, offsets, width)
        self.kept = (data, offsets)
        with nogil:
            self.table.reset(new IdTable[ByteKeys](given, n))

    @property
    def distinct(self):
        """How many different keys there are."""
        return self.table.get().distinct()

    def find(self, object data, object offsets, int64_t width, int64_t n, int threads):
        """int64[n]: the first position of each of n others among the keys, -1 where it is none."""
        cdef ByteKeys given = _bytes(data, offsets, width)
        out = np.empty(n, np.int64)
        cdef int64_t* out_at = <int64_t*>_data(out)
        with nogil:
            self.table.get().find(given, n, threads, out_at)
        return out


cdef object _copied(const vector[int64_t]& found):
    """int64[n] of a vector."""
    out = np.empty(<int64_t>found.size(), np.int64)
    if found.size():
        memcpy(_data(out), found.data(), 8 * found.size())
    return out


cdef class IntegerMap:
    """Positions of items by int64 id. `order` (int32 or int64)[n] or None: the item at position p has key order[p]."""

    cdef unique_ptr[IdMap[IntegerKeys]] map
    cdef object kept

    def __init__(self, object keys, object order):
        cdef IntegerKeys given
        cdef Offsets places = _offsets(order)
        cdef int64_t n = len(keys)
        given.values = <const int64_t*>_data(keys)
        self.kept = (keys, order)
        with nogil:
            self.map.reset(new IdMap[IntegerKeys](given, places, n))

    @property
    def nbytes(self):
        return self.map.get().bytes()

    def is_distinct(self):
        """Whether no two items have one id."""
        cdef cbool found
        with nogil:
            found = self.map.get().distinct()
        return found

    def find(self, object others):
        """Positions int64[total] of int64[m] others, one after another, and how many each has, int64[m]."""
        cdef IntegerKeys given
        cdef int64_t n = len(others)
        cdef vector[int64_t] found
        counts = np.empty(n, np.int64)
        given.values = <const int64_t*>_data(others)
        cdef int64_t* counts_at = <int64_t*>_data(counts)
        with nogil:
            self.map.get().find(given, n, found, counts_at)
        return _copied(found), counts


cdef class BytesMap:
    """Like :class:`IntegerMap`, for n keys of bytes in the form that :class:`BytesTable` takes."""

    cdef unique_ptr[IdMap[ByteKeys]] map
    cdef object kept

    def __init__(self, object data, object offsets, int64_t width, int64_t n, object order):
        cdef ByteKeys given = _bytes(data, offsets, width)
        cdef Offsets places = _offsets(order)
        self.kept = (data, offsets, order)
        with nogil:
            self.map.reset(new IdMap[ByteKeys](given, places, n))

    @property
    def nbytes(self):
        return self.map.get().bytes()

    def is_distinct(self):
        """Whether no two items have one id."""
        cdef cbool found
        with nogil:
            found = self.map.get().distinct()
        return found

    def find(self, object data, object offsets, int64_t width, int64_t n):
        """Positions int64[total] of n others, one after another, and how many each has, int64[n]."""
        cdef ByteKeys given = _bytes(data, offsets, width)
        cdef vector[int64_t] found
        counts = np.empty(n, np.int64)
        cdef int64_t* counts_at = <int64_t*>_data(counts)
        with nogil:
            self.map.get().find(given, n, found, counts_at)
        return _copied(found), counts


def strings_at(object data, object offsets, int64_t width, object rows, bint text):
    """A list of the keys at int64[m] rows, each a str (decoded from UTF-8) or bytes; data as in :class:`BytesTable`."""
    cdef ByteKeys keys = _bytes(data, offsets, width)
    cdef const int64_t* rows_at = <const int64_t*>_data(rows)
    cdef int64_t n = len(rows), i, row, begin, size
    cdef list found = PyList_New(n)
    cdef const char* at
    for i in range(n):
        row = rows_at[i]
        begin = keys.offsets.at(row) if keys.offsets.data != NULL else row * width
        size = keys.offsets.at(row + 1) - begin if keys.offsets.data != NULL else width
        at = <const char*>keys.data + begin
        one = PyUnicode_DecodeUTF8(at, size, NULL) if text else PyBytes_FromStringAndSize(at, size)
        Py_INCREF(one)
        PyList_SET_ITEM(found, i, one)
    return found


def split_list(list given not None, object indptr):
    """A list of n lists: part i is given[indptr[i]:indptr[i + 1]], for int64[n + 1]."""
    cdef const int64_t* at = <const int64_t*>_data(indptr)
    cdef int64_t n = len(indptr) - 1, i
    cdef list parts = PyList_New(n)
    for i in range(n):
        part = PyList_GetSlice(given, at[i], at[i + 1])
        Py_INCREF(part)
        PyList_SET_ITEM(parts, i, part)
    return parts


def among(object ids, object wanted, int64_t low, int64_t span):
    """bool[N]: which of int64[N] are among int64[n] wanted, and the first of these that none is, or -1.

    All wanted lie in low .. low + span - 1; takes span / 4 bytes.
    """
    cdef int64_t n_ids = len(ids), n = len(wanted), missing
    chosen = np.empty(n_ids, np.bool_)
    cdef const int64_t* ids_at = <const int64_t*>_data(ids)
    cdef const int64_t* wanted_at = <const int64_t*>_data(wanted)
    cdef uint8_t* out = <uint8_t*>_data(chosen)
    with nogil:
        missing = mark_among(ids_at, n_ids, wanted_at, n, low, span, out)
    return chosen, missing


def pack_strings(object given):
    """A list or tuple of str, or of bytes, as uint8 data in UTF-8, int64 lengths, and whether they are str.

    One pass, since reaching each object costs more than all else. TypeError on anything else among them.
    """
    given = tuple(given)  # the methods of a subclass of str may change the list
    cdef Py_ssize_t n = len(given), i, size = 0
    cdef vector[char] data
    cdef const char* at = NULL
    cdef bint text = n == 0 or not isinstance(given[0], bytes)
    lengths = np.empty(n, np.int64)
    cdef int64_t* lengths_at = <int64_t*>_data(lengths)
    for i in range(n):
        one = given[i]
        if text and PyUnicode_Check(one):
            if PyUnicode_IS_ASCII(one):
                at = PyUnicode_AsUTF8AndSize(one, &size)
            else:  # not the function above: it keeps what it encodes
                one = one.encode()
                PyBytes_AsStringAndSize(one, <char**>&at, &size)
        elif not text and isinstance(one, bytes):
            PyBytes_AsStringAndSize(one, <char**>&at, &size)
        else:
            raise TypeError(f"{type(one).__name__} among {'str' if text else 'bytes'}")
        lengths_at[i] = size
        data.insert(data.end(), at, at + size)
    out = np.empty(data.size(), np.uint8)
    if data.size():
        memcpy(_data(out), data.data(), data.size())
    return out, lengths, bool(text)


def content_hash(object array, uint64_t seed):
    """64 bits that tell a contiguous array's bytes from others'; follows `seed`, so that several can be chained."""
    cdef const uint8_t* at = <const uint8_t*>_data(array)
    cdef int64_t n = array.nbytes
    cdef uint64_t found
    with nogil:
        found = hash_content(at, n, seed)
    return found
