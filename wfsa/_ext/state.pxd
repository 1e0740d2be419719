# Types for other extension modules; the documentation is in ext/bindings/state.pyx.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from wfsa._ext.mask cimport TokenMask
from wfsa._ext.vocabulary cimport Vocabulary, wfsa_translate


cdef extern from "runtime/decoder.hpp" namespace "wfsa" nogil:
    cdef cppclass Decoder:
        unique_ptr[Decoder] fork() except +wfsa_translate
        unique_ptr[Decoder] restart() except +wfsa_translate
        void stop_at(vector[int32_t], vector[int32_t]) except +wfsa_translate
        cbool commit_token(int32_t) except +wfsa_translate
        cbool commit_bytes(const uint8_t*, size_t) except +wfsa_translate
        cbool rollback(int64_t) except +wfsa_translate
        int64_t n_commits()
        void mask(uint32_t*, int64_t) except +wfsa_translate
        int64_t min_tokens() except +wfsa_translate
        cbool has_min_tokens() except +wfsa_translate
        cbool accepting() except +wfsa_translate
        cbool finished()
        cbool is_quick()
        string text() except +wfsa_translate
        string forced(size_t) except +wfsa_translate
        string next_bytes() except +wfsa_translate
        vector[int32_t] expected() except +wfsa_translate
        int32_t n_configs()

    cdef struct Budget:
        int64_t tokens
        int64_t wrap_up

    int64_t most_after(const Decoder&, const Budget&) except +wfsa_translate


cdef extern from "drafts/memory.hpp" namespace "wfsa" nogil:
    cdef cppclass DraftMemory:
        DraftMemory()
        DraftMemory(const DraftMemory&)
        void rolled_back(int64_t)

    DraftMemory* own_memory(shared_ptr[DraftMemory]&) except +wfsa_translate


cdef extern from "bindings/held.hpp" namespace "wfsa":
    cdef cppclass Held:
        void hold(int32_t*)


cdef enum:
    kFewMasks = 8  # for which the interpreter lock is kept


cdef class State:
    cdef unique_ptr[Decoder] decoder
    cdef int64_t n_words, n_tokens, size
    cdef int32_t n_reads, n_changes  # that run without the interpreter lock
    cdef const Vocabulary* vocab
    cdef shared_ptr[DraftMemory] drafting  # of the text, shared with forks until one of them drafts; null before a draft
    cdef TokenMask cached
    cdef readonly tuple stop_token_ids
    cdef readonly object constraint  # keeps what the decoder reads
    cdef Decoder* now(self) except NULL
    cdef Decoder* read(self, Held& held) except NULL
    cdef Decoder* change(self, Held& held) except NULL
    cdef int write_mask(self, uint32_t* out, int64_t n_words, max_tokens, wrap_up) except -1


# A state before the first token; takes the decoder.  `kind` is State or a subclass, stop_token_ids a sorted list or None.
cdef object start_state(type kind, Decoder* decoder, object constraint, const Vocabulary* vocab, object stop_token_ids)
cdef token_ids(ids, int64_t n_tokens)
cdef Budget budget_of(tokens, wrap_up) except *
cdef list max_tokens_of_each(max_tokens, n)
