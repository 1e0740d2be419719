# cython: language_level=3
"""Decoding: states of a constraint, and masks of many states at once."""

from cpython.buffer cimport PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from wfsa._ext.constraint cimport ConstraintCore, Engine
from wfsa._ext.integers cimport integer
from wfsa._ext.mask cimport Target, TokenMask, target_open
from wfsa._ext.vocabulary cimport wfsa_translate

import numpy as np

from wfsa.errors import StateError


cdef extern from "runtime/session.hpp" namespace "wfsa" nogil:
    cdef cppclass Session:
        Session()
        Session(shared_ptr[Engine]) except +wfsa_translate
        Session fork() except +wfsa_translate
        cbool commit_token(int32_t) except +wfsa_translate
        cbool commit_bytes(const uint8_t*, size_t) except +wfsa_translate
        cbool rollback(int64_t)
        void mask(uint32_t*, int64_t) except +wfsa_translate
        cbool accepting() except +wfsa_translate
        cbool finished()
        int64_t n_commits()
        int32_t n_configs()
        int64_t validate(const int32_t*, int64_t) except +wfsa_translate
        string forced(size_t) except +wfsa_translate
        string next_bytes() except +wfsa_translate
        string text() except +wfsa_translate
        vector[int32_t] expected() except +wfsa_translate
        MaskJob job(int64_t)

    const char* kMaskJob

    cdef cppclass MaskJob:
        int64_t n_words

    void fill_masks(const vector[MaskJob]&, const vector[uint32_t*]&, int64_t, int64_t) except +wfsa_translate


cdef class State:
    """One sequence under a constraint.  Not for concurrent use by several threads; fork() for that."""

    cdef ConstraintCore core
    cdef Session session
    cdef int64_t n_words
    cdef TokenMask cached
    cdef public object constraint

    def __reduce__(self):
        raise TypeError("a State cannot be pickled; pickle its constraint and the tokens committed so far, and commit them "
                        "again to constraint.start()")

    def __init__(self):
        raise TypeError("a State comes from Constraint.start() or State.fork()")

    def get_mask(self):
        """The tokens that keep the text a viable prefix, as a :class:`TokenMask`; the end token iff it is a sentence."""
        cdef TokenMask m
        cdef uint32_t* p
        if self.cached is None:
            m = TokenMask.__new__(TokenMask)
            m.size = self.core.vocab.ptr.get().size
            m.data = PyBytes_FromStringAndSize(NULL, 4 * self.n_words)
            p = <uint32_t*>PyBytes_AS_STRING(m.data)
            with nogil:
                self.session.mask(p, self.n_words)
            self.cached = m
        return self.cached

    def fill_bitmask(self, buffer, row=None):
        """Copy the mask into an int32[ceil(V/32)] array, or into row `row` of an int32[B, ceil(V/32)] one.

        NumPy arrays and CPU torch tensors; must be contiguous and writable.  Wider rows are filled up with 0.
        Raises StateError on any other buffer, which is left as it was.
        """
        cdef Target target
        target_open(&target, buffer, self.n_words, None if row is None else integer(row))
        try:
            with nogil:
                self.session.mask(target.p, target.n_words)
        finally:
            PyBuffer_Release(&target.view)

    def commit(self, token_id):
        """Append a token.  False, and nothing changes, if it is not allowed.  Raises StateError after the end."""
        cdef int64_t t = integer(token_id)
        cdef cbool ok
        if self.session.finished():
            raise StateError("commit after the end-of-sequence token; start a new state or roll back")
        if t < 0 or t >= self.core.vocab.ptr.get().n_tokens():
            raise StateError(f"token id {t} is out of range: the vocabulary has "
                             f"{self.core.vocab.ptr.get().n_tokens()} tokens")
        with nogil:
            ok = self.session.commit_token(<int32_t>t)
        if ok:
            self.cached = None
        return ok

    def commit_bytes(self, data not None):
        """Append bytes, which may end inside a token.  False, and nothing changes, if no text goes on like this.

        Raises StateError after the end; TypeError or ValueError when `data` is not one contiguous run of bytes.
        """
        cdef const uint8_t[::1] view
        cdef cbool ok
        try:
            view = data
        except BufferError as e:
            raise ValueError(str(e)) from None
        cdef const uint8_t* p = &view[0] if view.shape[0] else NULL
        cdef size_t n = view.shape[0]
        if self.session.finished() and n:
            raise StateError("commit after the end-of-sequence token; start a new state or roll back")
        with nogil:
            ok = self.session.commit_bytes(p, n)
        if ok:
            self.cached = None
        return ok

    def rollback(self, n=1):
        """Undo the last `n` successful commits.  Raises StateError if there were fewer."""
        cdef int64_t back = integer(n)
        if not self.session.rollback(back):
            raise StateError(f"cannot roll back {back} commits: there were {self.session.n_commits()}")
        self.cached = None

    def fork(self):
        """An independent copy; costs one small object, whatever the length of the text."""
        cdef State s = State.__new__(State)
        s.core = self.core
        s.constraint = self.constraint
        s.n_words = self.n_words
        s.cached = self.cached
        s.session = self.session.fork()
        return s

    def validate(self, ids):
        """How many of these tokens could be committed one after another; the state stays as it is.

        Raises TypeError when `ids` are not integers in one dimension; an id out of range is one that is not allowed.
        """
        cdef const int32_t[::1] view
        cdef int64_t n
        array = np.asarray(ids if hasattr(ids, "__array__") else [integer(i) for i in ids])
        if array.size == 0:
            return 0
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise TypeError(f"token ids are integers in one dimension, not {array.dtype} in {array.ndim}")
        known = (array >= 0) & (array < self.core.vocab.ptr.get().n_tokens())
        view = np.where(known, array.astype(np.int32), np.int32(-1))
        with nogil:
            n = self.session.validate(&view[0], view.shape[0])
        return n

    def forced(self, limit=4096):
        """The bytes that must come next (at most `limit`); b"" when there is a choice."""
        return bytes(self.session.forced(max(0, integer(limit))))

    def next_bytes(self):
        """All bytes that can come next, ascending."""
        return bytes(self.session.next_bytes())

    def text(self):
        """What has been committed so far, as bytes; tokens taken by their id, the end among them, add nothing."""
        return bytes(self.session.text())

    def expected_terminals(self):
        """Numbers of the grammar's terminals being read or admissible next; the last one stands for the end."""
        return list(self.session.expected())

    def explain(self, token_id):
        """Why `token_id` is allowed or refused here, in one line."""
        return self.constraint.explain(self, token_id)

    def is_accepting(self):
        """Is the text so far a sentence?"""
        return not self.session.finished() and self.session.accepting()

    def is_finished(self):
        """Has an end-of-sequence token been committed?"""
        return self.session.finished()

    @property
    def n_commits(self):
        return self.session.n_commits()

    @property
    def n_configurations(self):
        """How many configurations (stack tops and lexer states) the state holds; for diagnosis."""
        return self.session.n_configs()


def start(ConstraintCore core not None):
    """A :class:`State` before the first token."""
    cdef State s = State.__new__(State)
    s.core = core
    s.n_words = core.vocab.ptr.get().n_words()
    s.session = Session(core.ptr)
    return s


def fill_bitmasks(states, buffer, threads=1, rows=None):
    """Fill row ``rows[i]`` (row i when `rows` is None) of an int32[B, ceil(V/32)] buffer with the mask of states[i].

    The states may belong to different constraints, closed sets of texts among them.  The masks are computed on
    `threads` threads, without the interpreter lock.  Raises StateError on a buffer that does not fit, or when two
    states share a row; the buffer is left as it was then.  TypeError on what is no state.
    """
    cdef Target target
    cdef vector[MaskJob] jobs
    cdef vector[uint32_t*] outs
    cdef MaskJob job
    cdef int64_t n_words = 0, n_threads = integer(threads)
    states = list(states)
    rows = list(range(len(states))) if rows is None else [integer(r) for r in rows]
    if len(rows) != len(states) or len(set(rows)) != len(rows):
        raise StateError(f"{len(states)} states need as many different rows, not {rows}")
    if n_threads < 1:
        raise StateError(f"threads must be at least 1, not {n_threads}")
    if not states:
        return
    for state in states:
        job = mask_job(state)
        n_words = max(n_words, job.n_words)
        jobs.push_back(job)
    target_open(&target, buffer, n_words, min(rows))
    try:
        if target.view.ndim == 1 and len(states) > 1 or max(rows) >= (target.view.shape[0] if target.view.ndim == 2 else 1):
            raise StateError(f"row {max(rows)} is out of range for the mask buffer")
        for row in rows:
            outs.push_back(<uint32_t*>target.view.buf + <int64_t>row * target.n_words)
        with nogil:
            fill_masks(jobs, outs, target.n_words, n_threads)
    finally:
        PyBuffer_Release(&target.view)


cdef MaskJob mask_job(state) except *:
    """Of a State, or of another module's state, which has it in a capsule."""
    if isinstance(state, State):
        return (<State>state).session.job((<State>state).n_words)
    if not hasattr(state, "_mask_job"):
        raise TypeError(f"a {type(state).__name__} is no state of a constraint")
    return (<MaskJob*>PyCapsule_GetPointer(state._mask_job(), kMaskJob))[0]
