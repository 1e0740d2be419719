# cython: language_level=3
"""The compiled tables: building them from a grammar's numbers, expanding them, and arrays out of and into them."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.map cimport map
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from wfsa._ext.regular cimport Automaton, Counters, Dfa
from wfsa._ext.vocabulary cimport VocabCore, Vocabulary, wfsa_translate

import atexit
import os

import numpy as np


cdef extern from "artifact/read.hpp" namespace "wfsa" nogil:
    cdef cppclass Arrays:
        map[string, vector[int32_t]] of

    void pack(const Engine&, Arrays&) except +wfsa_translate
    void unpack(const Arrays&, Engine&) except +wfsa_translate


cdef extern from "runtime/memory.hpp" namespace "wfsa" nogil:
    shared_ptr[Engine] make_engine(shared_ptr[Vocabulary]) except +wfsa_translate
    map[string, int64_t] memory_of(const Engine&) except +wfsa_translate
    void stop_reaper "wfsa::Reaper::stop"()
    void before_fork "wfsa::Reaper::before_fork"()
    void after_fork "wfsa::Reaper::after_fork"(cbool)


cdef extern from "ahead.hpp" namespace "wfsa" nogil:
    cdef cppclass Ahead:
        Ahead(Engine&) except +wfsa_translate
        cbool advance() except +wfsa_translate
        const char* stage()
        double fraction()
        cbool complete()


@atexit.register
def _stop():
    """No thread destroys engines while the process ends."""
    with nogil:
        stop_reaper()


def _before_fork():
    with nogil:
        before_fork()


def _after_fork():
    after_fork(False)


def _after_fork_in_child():
    after_fork(True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


cdef class ConstraintCore:
    """Tables of one grammar over one vocabulary.  Use :class:`wfsa.Constraint`."""

    def counts(self):
        """Sizes of the tables so far."""
        cdef Engine* e = self.ptr.get()
        return {
            "lr_states": e.lr.n_states(), "contexts": e.lexer.n_contexts(), "lexer_roots": e.lexer.n_roots(),
            "lexer_states": e.lexer.n_states(), "profiles": e.profiler.n_profiles(),
            "dwa_states": e.dwa.n_states() + e.joint.n_states(),
            "dwa_transitions": e.dwa.n_transitions() + e.joint.n_transitions(),
        }

    @property
    def frozen(self):
        return self.ptr.get().frozen

    def parse_tails(self, bint on):
        """For tests: decide tails by parsing them on the stack instead of by the parser DWA."""
        self.ptr.get().parse_tails(on)

    def memory(self):
        """Bytes by part, and their "total"; what equal constraints share is the vocabulary's."""
        cdef map[string, int64_t] parts
        with nogil:
            parts = memory_of(self.ptr.get()[0])
        return {item.first.decode(): item.second for item in parts}

    def to_arrays(self):
        """All tables as {name: int32 array}; the layout is in ext/artifact/write.hpp."""
        cdef Arrays arrays
        pack(self.ptr.get()[0], arrays)
        return {item.first.decode(): _as_array(item.second) for item in arrays.of}

    @staticmethod
    def from_arrays(VocabCore vocab, dict arrays):
        """The inverse of `to_arrays`; raises ArtifactError when anything does not fit."""
        cdef ConstraintCore out = ConstraintCore.__new__(ConstraintCore)
        cdef Arrays packed
        cdef const int32_t[::1] view
        for name, array in arrays.items():
            view = np.ascontiguousarray(array, np.int32)
            if view.shape[0]:
                packed.of[name.encode()].assign(&view[0], &view[0] + view.shape[0])
            else:
                packed.of[name.encode()].clear()
        out.vocab = vocab
        out.ptr = make_engine(vocab.ptr)
        with nogil:
            unpack(packed, out.ptr.get()[0])
        return out

    def expand(self, progress=None, deadline=None):
        """Expand everything that decoding can reach.  `progress(stage, fraction)` is called between slices.

        `deadline()` is called too and may raise.  False when some contexts were left to be expanded on demand.
        """
        cdef Ahead* ahead = new Ahead(self.ptr.get()[0])
        cdef cbool more = True
        try:
            while more:
                with nogil:
                    more = ahead.advance()
                if progress is not None:
                    progress(ahead.stage().decode(), ahead.fraction())
                if deadline is not None:
                    deadline()
            return ahead.complete()
        finally:
            del ahead


cdef _as_array(const vector[int32_t]& v):
    out = np.empty(v.size(), np.int32)
    cdef int32_t[::1] view = out
    if v.size():
        memcpy(&view[0], v.data(), 4 * v.size())
    return out


def build_core(VocabCore vocab, list automata, list token_ids, list ranks, ignore, rules, int32_t n_nonterms,
               int32_t start, bint longest, int64_t max_lr_states, int64_t max_lexer_states, list units, unordered, distinct):
    """Normalise, build the LR tables, and return a ConstraintCore with empty caches.

    automata: Automaton or None (token-level) per terminal; token_ids: list of id lists per terminal; ranks: preference
    at equal length per terminal; rules: (nonterminal number, right-hand side symbols as in grammar.ir).
    units: (least, most or None) per counted terminal, else None.  unordered: grammar.ir.Unordered lists.
    distinct: as in grammar.ir.
    Returns None when the start symbol derives nothing.
    """
    cdef ConstraintCore out = ConstraintCore.__new__(ConstraintCore)
    cdef Engine* e
    cdef Normaliser* norm
    cdef vector[uint8_t] dead, nullable
    cdef vector[int32_t] word, ids
    cdef Dfa none
    cdef vector[int64_t] no_names
    cdef Counters no_counters
    cdef int32_t n_terms = len(automata), s, lhs, t
    cdef Automaton a
    cdef UnorderedRule listed
    cdef set ignored = set(ignore)
    out.vocab = vocab
    out.ptr = make_engine(vocab.ptr)
    e = out.ptr.get()
    e.lexer.terms.longest = longest
    e.lexer.limit = max_lexer_states
    for t in range(n_terms):
        a = automata[t]
        ids = token_ids[t]
        if a is None:
            dead.push_back(ids.empty())
            nullable.push_back(0)
            e.lexer.terms.add(none, no_names, no_counters, ranks[t], t in ignored)
        else:
            dead.push_back(a.dfa.size() == 0)
            nullable.push_back(a.nullable)
            if units[t] is None:
                e.lexer.terms.add(a.dfa, a.names, a.counters, ranks[t], t in ignored)
            else:
                least, most = units[t]
                e.lexer.terms.add(a.dfa, a.names, a.counters, ranks[t], t in ignored, True, least, 0x7FFFFFFF if most is None else most)
        e.token_ids.push_back(ids)
    # One more terminal and nonterminal: S' -> S END; END stands for the end-of-sequence tokens.
    e.end_term = n_terms
    dead.push_back(0)
    nullable.push_back(0)
    e.lexer.terms.add(none, no_names, no_counters, 0, False)
    e.token_ids.push_back(vocab.ptr.get().eos)
    for t in sorted(ignored):
        if not dead[t]:
            e.ignored.push_back(t)
    norm = new Normaliser(n_terms + 1, n_nonterms + 1)
    try:
        for lhs, rhs in rules:
            word.clear()
            for s in rhs:
                word.push_back(s if s >= 0 else n_terms + 1 + ~s)
            norm.rule(lhs, word.data(), word.size())
        for u in unordered:
            listed.body, listed.rest, listed.members = u.body, u.rest, u.members
            listed.required = u.required
            listed.groups = u.groups
            listed.least, listed.most = u.least, 0x7FFFFFFF if u.most is None else u.most
            norm.unordered(listed)
        for lhs, may_run_out in distinct:
            norm.distinct(lhs, may_run_out)
        word.clear()
        word.push_back(n_terms + 1 + start)
        word.push_back(n_terms)
        norm.rule(n_nonterms, word.data(), word.size())
        e.grammar = norm.run(n_nonterms, dead, nullable)
    finally:
        del norm
    if e.grammar.start < 0:
        return None
    with nogil:
        e.build(max_lr_states)
    return out
