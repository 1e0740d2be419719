# cython: language_level=3
"""States over a closed set of byte strings: the boundary to strings.hpp. Python has checked what comes in here."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr, make_shared
from libcpp.vector cimport vector

from operator import index as integer

import numpy as np

from wfsa._ext.mask import token_mask
from wfsa.errors import StateError


cdef extern from "texts/texts.hpp" namespace "wfsa" nogil:
    cdef cppclass Place:
        int64_t lo, hi, depth

    cdef cppclass StringTable:
        vector[uint8_t] blob
        vector[int64_t] offset
        vector[int64_t] order
        vector[int32_t] eos
        vector[int32_t] hub_tokens
        vector[uint8_t] special
        int64_t hub, n_given
        int64_t n()
        int64_t n_hubs()
        void set_strings(const uint8_t*, const int64_t*, int64_t) except +
        void load_strings(const uint8_t*, int64_t, const int64_t*, const int64_t*, int64_t, int64_t) except +
        void set_vocabulary(const uint8_t*, const int64_t*, int64_t, const int32_t*, int64_t, const int32_t*,
                            int64_t) except +
        void build_hubs(int64_t) except +
        cbool accepting(const Place&)
        cbool step_bytes(Place&, const uint8_t*, int64_t)
        cbool step_token(Place&, int32_t)
        void mask(const Place&, uint32_t*, int64_t)
        vector[uint8_t] next_bytes(const Place&) except +
        int64_t shared(const Place&, int64_t)

    cdef cppclass MaskJob:
        pass

    cdef cppclass StringMask:
        const StringTable* table
        Place place
        MaskJob job(int64_t)

    const char* kMaskJob


cdef class StringsCore:
    """The table of one set of strings over one vocabulary. Use :func:`wfsa.compile_items`."""

    cdef shared_ptr[StringTable] ptr
    cdef readonly int64_t n_words, n_tokens, size

    def __init__(self, const uint8_t[::1] blob, const int64_t[::1] offsets, const uint8_t[::1] token_blob,
                 const int64_t[::1] token_offsets, const int32_t[::1] special, const int32_t[::1] eos, int64_t size,
                 int64_t hub, int64_t hub_tokens, const int64_t[::1] order=None, int64_t n_given=0):
        """Sorts the texts; with `order` they are those of :meth:`arrays`, which ValueError checks.

        blob uint8, offsets int64[n + 1] of the texts and the tokens; special, eos int32; order int64[n], each text's
        position among the n_given.
        """
        cdef StringTable* t
        cdef const uint8_t* bytes_ = &blob[0] if blob.shape[0] else NULL
        cdef const uint8_t* token_bytes = &token_blob[0] if token_blob.shape[0] else NULL
        cdef const int32_t* specials = &special[0] if special.shape[0] else NULL
        cdef const int32_t* ends = &eos[0] if eos.shape[0] else NULL
        cdef const int64_t* positions = NULL
        cdef int64_t n = offsets.shape[0] - 1
        if order is not None:
            if n < 1 or order.shape[0] != n:
                raise ValueError(f"{order.shape[0]} input positions of {n} texts")
            positions = &order[0]
        self.ptr = make_shared[StringTable]()
        t = self.ptr.get()
        self.size = size
        self.n_words = (size + 31) // 32
        self.n_tokens = token_offsets.shape[0] - 1
        t.hub = hub
        with nogil:
            if positions:
                t.load_strings(bytes_, blob.shape[0], &offsets[0], positions, n, n_given)
            else:
                t.set_strings(bytes_, &offsets[0], n)
            t.set_vocabulary(token_bytes, &token_offsets[0], self.n_tokens, specials, special.shape[0], ends,
                             eos.shape[0])
            t.build_hubs(hub_tokens)

    @property
    def hub(self):
        return self.ptr.get().hub

    def arrays(self):
        """The sorted texts, copied: blob uint8, offsets int64[n + 1], order int64[n]."""
        cdef StringTable* t = self.ptr.get()
        cdef uint8_t[::1] blob = np.empty(<int64_t>t.blob.size(), np.uint8)
        cdef int64_t[::1] offsets = np.empty(t.n() + 1, np.int64), order = np.empty(t.n(), np.int64)
        memcpy(&blob[0], t.blob.data(), t.blob.size())
        memcpy(&offsets[0], t.offset.data(), 8 * t.offset.size())
        memcpy(&order[0], t.order.data(), 8 * t.order.size())
        return np.asarray(blob), np.asarray(offsets), np.asarray(order)

    def counts(self):
        """Strings, texts they were made from, bytes of text, places with a list, tokens in the lists."""
        cdef StringTable* t = self.ptr.get()
        return {"strings": t.n(), "given": t.n_given, "bytes": t.blob.size(), "hubs": t.n_hubs(), "hub_tokens": t.hub_tokens.size()}

    def text(self, int64_t i):
        """String i of the sorted ones."""
        cdef StringTable* t = self.ptr.get()
        if not 0 <= i < t.n():
            raise IndexError(i)
        return PyBytes_FromStringAndSize(<const char*>t.blob.data() + t.offset[i], t.offset[i + 1] - t.offset[i])

    def start(self):
        """A state before the first token."""
        cdef StringState s = StringState.__new__(StringState)
        s.core = self
        s.place.lo, s.place.hi, s.place.depth = 0, self.ptr.get().n(), 0
        s.ended = False
        return s


cdef class StringState:
    """One sequence over a closed set of strings; the methods are those of :class:`wfsa.State`."""

    cdef StringsCore core
    cdef Place place
    cdef cbool ended
    cdef vector[Place] history
    cdef object cached
    cdef StringMask view  # of place and ended, where a mask is made
    cdef MaskJob mask_job
    cdef public object constraint

    def __init__(self):
        raise TypeError("a StringState comes from a constraint's start() or from fork()")

    def get_mask(self):
        """The tokens that keep the text a prefix of a string, as a TokenMask; the end token iff it is a string."""
        cdef bytes data
        cdef uint32_t* p
        if self.cached is None:
            data = PyBytes_FromStringAndSize(NULL, 4 * self.core.n_words)
            p = <uint32_t*>PyBytes_AS_STRING(data)
            with nogil:
                self._mask(p)
            self.cached = token_mask(data, self.core.size)
        return self.cached

    cdef void _mask(self, uint32_t* p) noexcept nogil:
        self._view()
        self.view.table.mask(self.view.place, p, self.core.n_words)

    cdef void _view(self) noexcept nogil:
        """Set `view` to what has been written, or after the end to no place."""
        cdef Place nowhere
        self.view.table = self.core.ptr.get()
        if self.ended:
            nowhere.lo = nowhere.hi = nowhere.depth = 0
            self.view.place = nowhere
        else:
            self.view.place = self.place

    def _mask_job(self):
        """What wfsa.fill_bitmasks takes of this state, in a capsule; holds until the state changes."""
        self._view()
        self.mask_job = self.view.job(self.core.n_words)
        return PyCapsule_New(&self.mask_job, kMaskJob, NULL)

    def fill_bitmask(self, buffer, row=None):
        """Copy the mask into an int32[ceil(V/32)] array, or into row `row` of an int32[B, ceil(V/32)] one.

        NumPy arrays and CPU torch tensors; must be contiguous and writable. Wider rows are filled up with 0.
        Raises StateError on any other buffer, which is left as it was.
        """
        cdef int32_t[::1] view
        cdef uint32_t* p
        array = buffer
        if not isinstance(array, np.ndarray):
            try:
                array = np.asarray(memoryview(buffer)) if not hasattr(buffer, "numpy") else buffer.numpy()
            except Exception as e:
                raise StateError(f"the mask buffer must be a writable int32 array: {e}") from None
        n_words = self.core.n_words
        if array.dtype != np.int32 or not array.flags.c_contiguous or not array.flags.writeable:
            raise StateError("the mask buffer must be a contiguous, writable int32 array")
        if array.ndim != (1 if row is None else 2) and not (array.ndim == 2 and array.shape[0] == 1):
            raise StateError(f"the mask buffer has {array.ndim} dimensions; give a row for one of two")
        if array.ndim == 2:
            at = 0 if row is None else integer(row)
            if not 0 <= at < array.shape[0]:
                raise StateError(f"row {at} is out of range for the mask buffer")
            array = array[at]
        if array.shape[0] < n_words:
            raise StateError(f"the mask buffer has {array.shape[0]} words a row, {n_words} are needed")
        view = array
        p = <uint32_t*>&view[0]
        with nogil:
            self._mask(p)
        array[n_words:] = 0

    def commit(self, token_id):
        """Append a token. False, and nothing changes, if it is not allowed. Raises StateError after the end."""
        cdef int64_t t = integer(token_id)
        cdef Place after = self.place
        cdef StringTable* table = self.core.ptr.get()
        if self.ended:
            raise StateError("commit after the end-of-sequence token; start a new state or roll back")
        if t < 0 or t >= self.core.n_tokens:
            raise StateError(f"token id {t} is out of range: the vocabulary has {self.core.n_tokens} tokens")
        if self._is_end(<int32_t>t):
            if not table.accepting(self.place):
                return False
            self.history.push_back(self.place)
            self.ended = True
        else:
            if not table.step_token(after, <int32_t>t):
                return False
            self.history.push_back(self.place)
            self.place = after
        self.cached = None
        return True

    cdef cbool _is_end(self, int32_t token) noexcept:
        cdef int32_t end
        for end in self.core.ptr.get().eos:
            if end == token:
                return True
        return False

    def commit_bytes(self, data not None):
        """Append bytes, which may end inside a token. False, and nothing changes, if no string goes on like this."""
        cdef const uint8_t[::1] view
        cdef Place after = self.place
        try:
            view = data
        except BufferError as e:
            raise ValueError(str(e)) from None
        if not view.shape[0]:
            return True  # nothing is no commit
        if self.ended:
            raise StateError("commit after the end-of-sequence token; start a new state or roll back")
        if not self.core.ptr.get().step_bytes(after, &view[0], view.shape[0]):
            return False
        self.history.push_back(self.place)
        self.place = after
        self.cached = None
        return True

    def rollback(self, n=1):
        """Undo the last `n` successful commits. Raises StateError if there were fewer."""
        cdef int64_t back = integer(n)
        if back < 0 or back > <int64_t>self.history.size():
            raise StateError(f"cannot roll back {back} commits: there were {self.history.size()}")
        if back:
            self.place = self.history[self.history.size() - back]
            self.history.resize(self.history.size() - back)
            self.ended = False  # the end was the last commit
            self.cached = None

    def fork(self):
        """An independent copy."""
        cdef StringState s = StringState.__new__(StringState)
        s.core, s.constraint, s.cached = self.core, self.constraint, self.cached
        s.place, s.ended, s.history = self.place, self.ended, self.history
        return s

    def validate(self, ids):
        """How many of these tokens could be committed one after another; the state stays as it is."""
        array = np.asarray(ids if hasattr(ids, "__array__") else [integer(i) for i in ids])
        if array.size == 0:
            return 0
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"token ids are integers in one dimension, not {array.dtype} in {array.ndim}")
        probe, n = self.fork(), 0
        for t in array.tolist():
            if probe.is_finished() or not 0 <= t < self.core.n_tokens or not probe.commit(t):
                break
            n += 1
        return n

    def forced(self, limit=4096):
        """The bytes that must come next (at most `limit`); b"" when there is a choice."""
        cdef StringTable* t = self.core.ptr.get()
        cdef int64_t n
        if self.ended or t.accepting(self.place):
            return b""
        n = t.shared(self.place, max(0, integer(limit)))
        if n == 0:
            return b""
        return PyBytes_FromStringAndSize(
            <const char*>t.blob.data() + t.offset[self.place.lo] + self.place.depth, n)

    def next_bytes(self):
        """All bytes that can come next, ascending."""
        cdef vector[uint8_t] found
        if self.ended:
            return b""
        found = self.core.ptr.get().next_bytes(self.place)
        return PyBytes_FromStringAndSize(<const char*>found.data(), found.size())

    def expected_terminals(self):
        """0 while a string can go on, 1 (the end) where one is complete."""
        if self.ended:
            return []
        return ([0] if self.next_bytes() else []) + ([1] if self.is_accepting() else [])

    def text(self):
        """What has been committed so far, as bytes."""
        return self.core.text(self.place.lo)[: self.place.depth]

    def explain(self, token_id):
        """Why `token_id` is allowed or refused here, in one line."""
        return self.constraint.explain(self, token_id)

    def is_accepting(self):
        """Is the text so far one of the strings?"""
        return not self.ended and self.core.ptr.get().accepting(self.place)

    def is_finished(self):
        """Has an end-of-sequence token been committed?"""
        return self.ended

    def item(self):
        """The first input position of the string that is written; -1 where the text is none."""
        if not self.core.ptr.get().accepting(self.place):
            return -1
        return self.core.ptr.get().order[self.place.lo]

    @property
    def n_strings(self):
        """How many of the strings begin with the text so far."""
        return self.place.hi - self.place.lo

    @property
    def n_commits(self):
        return self.history.size()

    @property
    def n_configurations(self):
        """1: a place is an interval."""
        return 1
