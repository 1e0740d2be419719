# cython: language_level=3
"""The boundary between Python and the C++ engine: arrays and objects in, arrays and objects out.

Python validates here, the kernels trust.  The algorithms are in the headers, one stage a file:

    dfa.hpp  word_set.hpp  normalise.hpp  lr0.hpp  trie.hpp  lexer.hpp  profile.hpp  parser_dwa.hpp  gss.hpp  engine.hpp  session.hpp
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
from libcpp cimport bool as cbool
from libcpp.map cimport map
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.utility cimport move
from libcpp.vector cimport vector

import numpy as np

from wfsa.errors import ArtifactError, GrammarError, LimitError, StateError
from wfsa.grammar.regular import Alt, And, ByteSet, Cat, Chars, Literal, Minus, Repeat, Table, Unit, Words


cdef extern from *:
    """
    #include <stdexcept>
    #include "runtime/session.hpp"
    #include "regular/word_set.hpp"
    static PyObject *wfsa_limit_error = nullptr, *wfsa_artifact_error = nullptr, *wfsa_grammar_error = nullptr;
    static void wfsa_set_errors(PyObject* limit, PyObject* artifact, PyObject* grammar) {
        Py_INCREF(limit);
        Py_INCREF(artifact);
        wfsa_limit_error = limit;
        wfsa_artifact_error = artifact;
        Py_INCREF(grammar);
        wfsa_grammar_error = grammar;
    }
    static void wfsa_translate() {
        try { throw; }
        catch (const wfsa::LimitExceeded& e) { PyErr_SetString(wfsa_limit_error, e.what()); }
        catch (const wfsa::Undecided& e) { PyErr_SetString(wfsa_grammar_error, e.what()); }
        catch (const wfsa::Damaged& e) { PyErr_SetString(wfsa_artifact_error, e.what()); }
        catch (const wfsa::Miss& e) { PyErr_Format(wfsa_artifact_error, "the compiled tables lack a needed entry (%d)", e.where); }
        catch (const std::bad_alloc&) { PyErr_NoMemory(); }
        catch (const std::exception& e) { PyErr_SetString(PyExc_RuntimeError, e.what()); }
    }
    """
    cdef int wfsa_translate() except +
    void wfsa_set_errors(object, object, object)

wfsa_set_errors(LimitError, ArtifactError, GrammarError)


cdef extern from "runtime/session.hpp" namespace "wfsa" nogil:
    cdef cppclass Edge:
        uint8_t lo, hi
        int32_t target

    cdef cppclass Dfa:
        vector[int32_t] indptr
        vector[Edge] edges
        vector[uint8_t] accept
        int32_t size()

    cdef cppclass Fragment:
        int32_t start, end

    cdef cppclass Nfa:
        Nfa(int64_t)
        Fragment empty() except +wfsa_translate
        Fragment nothing() except +wfsa_translate
        Fragment pair() except +wfsa_translate
        Fragment bytes(const uint8_t*, size_t) except +wfsa_translate
        Fragment embed(const Dfa&) except +wfsa_translate
        cbool has_tail()
        Fragment embed_last(Dfa) except +wfsa_translate
        void byte_range(Fragment, uint8_t, uint8_t) except +wfsa_translate
        void epsilon(int32_t, int32_t) except +wfsa_translate
        void code_points(Fragment, uint32_t, uint32_t) except +wfsa_translate
        void count_first(Fragment) except +wfsa_translate
        Dfa determinize(Fragment) except +wfsa_translate

    cdef cppclass string_view "std::string_view":
        string_view(const char*, size_t)
    Dfa automaton_of_words "wfsa::WordSet::automaton"(const vector[string_view]&) except +wfsa_translate
    Dfa product(const Dfa&, const Dfa&, cbool, int64_t) except +wfsa_translate
    Dfa without_epsilon(const Dfa&) except +wfsa_translate
    cdef cppclass Counters:
        pass

    Counters find_counters(const Dfa&) except +wfsa_translate
    vector[int64_t] state_names "wfsa::StateNames::of"(const Dfa&, cbool) except +wfsa_translate

    cdef cppclass Trie:
        int32_t n_nodes()

    cdef cppclass Vocabulary:
        vector[uint8_t] blob
        vector[int64_t] offsets
        vector[uint8_t] special
        vector[int32_t] eos
        int64_t size
        Trie trie
        int64_t n_tokens()
        int64_t n_words()
        void build() except +wfsa_translate

    cdef cppclass NormalGrammar:
        int32_t n_terms, n_symbols, start
        vector[int32_t] origin
        cbool nullable_start

    cdef struct UnorderedRule:
        int32_t body, rest
        vector[int32_t] members
        vector[uint8_t] required
        vector[vector[int32_t]] groups
        int32_t least, most

    cdef cppclass Normaliser:
        Normaliser(int32_t, int32_t)
        void rule(int32_t, const int32_t*, size_t) except +wfsa_translate
        void unordered(UnorderedRule) except +wfsa_translate
        void distinct(int32_t, cbool) except +wfsa_translate
        NormalGrammar run(int32_t, const vector[uint8_t]&, const vector[uint8_t]&) except +wfsa_translate

    cdef cppclass Terminals:
        cbool longest
        vector[int32_t] start
        void add(const Dfa&, const vector[int64_t]&, const Counters&, int32_t, cbool) except +wfsa_translate
        void add(const Dfa&, const vector[int64_t]&, const Counters&, int32_t, cbool, cbool, int32_t, int32_t) except +wfsa_translate

    cdef cppclass Lexer:
        Terminals terms
        int64_t limit
        size_t n_states()
        size_t n_contexts()
        size_t n_roots()

    cdef cppclass ParserDwa:
        size_t n_states()
        size_t n_transitions()

    cdef cppclass JointTails:
        size_t n_states()
        size_t n_transitions()

    cdef cppclass Profiler:
        size_t n_profiles()

    cdef cppclass LrTables:
        int32_t n_states()

    cdef cppclass Engine:
        Engine(shared_ptr[Vocabulary]) except +
        NormalGrammar grammar
        Lexer lexer
        LrTables lr
        ParserDwa dwa
        JointTails joint
        Profiler profiler
        int32_t end_term
        vector[vector[int32_t]] token_ids
        vector[int32_t] ignored
        cbool frozen, use_parsing
        void build(int64_t) except +wfsa_translate

    cdef cppclass Arrays:
        map[string, vector[int32_t]] of

    void pack(const Engine&, Arrays&) except +wfsa_translate
    void unpack(const Arrays&, Engine&) except +wfsa_translate

    cdef cppclass Ahead:
        Ahead(Engine&) except +wfsa_translate
        cbool advance() except +wfsa_translate
        const char* stage()
        double fraction()
        cbool complete()

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


# --- regular languages -------------------------------------------------------------------------------------------

_AUTOMATA = {}  # (Regular, limit) -> Automaton; front ends share tree objects, so most terminals are found here
_AUTOMATA_MAX = 8192
_KEPT_STATES = 1 << 16  # larger ones are not kept
_MAX_DEPTH = 400
_MANY_WORDS = 8


cdef class Automaton:
    """The minimal byte DFA of a regular tree, without the empty word; `nullable` says whether the tree has it."""

    cdef Dfa with_empty  # only where the empty word is in it
    cdef Dfa dfa         # without
    cdef vector[int64_t] names  # of its states
    cdef Counters counters
    cdef readonly bint nullable

    cdef const Dfa* full(self) noexcept:
        return &self.with_empty if self.nullable else &self.dfa

    @property
    def n_states(self):
        return self.dfa.size()

    def arrays(self):
        """(indptr int32[n+1], lo uint8[e], hi uint8[e], target int32[e], accept uint8[n])."""
        cdef Edge e
        cdef const Dfa* d = self.full()
        cdef size_t i
        lo, hi, to = [], [], []
        for i in range(d.edges.size()):
            e = d.edges[i]
            lo.append(e.lo)
            hi.append(e.hi)
            to.append(e.target)
        return (np.array(d.indptr, np.int32), np.array(lo, np.uint8), np.array(hi, np.uint8),
                np.array(to, np.int32), np.array(d.accept, np.uint8))


cpdef Automaton automaton(tree, int64_t max_states=1 << 18):
    """Compile a :class:`wfsa.grammar.regular.Regular` tree; results are cached by tree.

    Raises LimitError when a DFA needs more than `max_states` states.
    """
    key = (tree, max_states)  # a limit must not depend on what was compiled before
    cdef Automaton got = _AUTOMATA.get(key)
    if got is not None:
        return got
    got = Automaton.__new__(Automaton)
    got.dfa = _dfa(tree, max_states, 0)
    got.nullable = got.dfa.size() > 0 and got.dfa.accept[0] != 0
    if got.nullable:
        got.with_empty = got.dfa
        got.dfa = without_epsilon(got.with_empty)
    kept = got.dfa.size() <= _KEPT_STATES
    got.names = state_names(got.dfa, kept)
    got.counters = find_counters(got.dfa)
    if kept:
        if len(_AUTOMATA) >= _AUTOMATA_MAX:
            _AUTOMATA.clear()
        _AUTOMATA[key] = got
    return got


cdef Dfa _dfa(tree, int64_t limit, int depth) except *:
    cdef Dfa left
    cdef Automaton one, other
    kind = type(tree)
    if kind is And:
        left = automaton(tree.parts[0], limit).full()[0]
        for part in tree.parts[1:]:
            other = automaton(part, limit)
            left = product(left, other.full()[0], True, limit)
        return left
    if kind is Minus:
        one, other = automaton(tree.left, limit), automaton(tree.right, limit)
        return product(one.full()[0], other.full()[0], False, limit)
    cdef Nfa* nfa = new Nfa(limit)
    try:
        return nfa.determinize(_nfa(nfa, tree, limit, depth, True))
    finally:
        del nfa


cdef Fragment _word_set(Nfa* nfa, words, bint last) except *:
    """The automaton of different words, in any order."""
    cdef vector[string_view] views
    cdef Dfa d
    if not words:
        return nfa.nothing()
    ordered = sorted(words)  # holds the bytes of the views
    for word in ordered:
        views.push_back(string_view(PyBytes_AS_STRING(word), PyBytes_GET_SIZE(word)))
    with nogil:
        d = automaton_of_words(views)
    if last and not nfa.has_tail():
        return nfa.embed_last(move(d))
    return nfa.embed(d)


cdef Fragment _nfa(Nfa* nfa, tree, int64_t limit, int depth, bint last) except *:
    """Add the automaton of a tree to `nfa`; `last`: nothing is read after it."""
    cdef Fragment f, g
    cdef const uint8_t* p
    cdef Dfa body
    cdef int64_t k, low, high
    if depth > _MAX_DEPTH:
        raise GrammarError(f"a terminal is nested more than {_MAX_DEPTH} deep; flatten it")
    kind = type(tree)
    if kind is Literal:
        p = <const uint8_t*>PyBytes_AS_STRING(tree.data)
        return nfa.bytes(p, PyBytes_GET_SIZE(tree.data))
    if kind is Cat:
        f = nfa.empty()
        for k, part in enumerate(tree.parts):
            g = _nfa(nfa, part, limit, depth + 1, last and k == len(tree.parts) - 1)
            nfa.epsilon(f.end, g.start)
            f.end = g.end
        return f
    if kind is Words:
        return _word_set(nfa, tree.words, last)
    if kind is Alt:
        f = nfa.pair()
        parts = tree.parts
        if len(parts) >= _MANY_WORDS:
            texts = {part.data for part in parts if type(part) is Literal}
            if len(texts) >= _MANY_WORDS:
                g = _word_set(nfa, texts, last)
                nfa.epsilon(f.start, g.start)
                nfa.epsilon(g.end, f.end)
                parts = [part for part in parts if type(part) is not Literal]
        for part in parts:
            g = _nfa(nfa, part, limit, depth + 1, last)
            nfa.epsilon(f.start, g.start)
            nfa.epsilon(g.end, f.end)
        return f
    if kind is Chars:
        f = nfa.pair()
        for lo, hi in tree.ranges:
            nfa.code_points(f, lo, hi)
        return f
    if kind is ByteSet:
        f = nfa.pair()
        for lo, hi in tree.ranges:
            nfa.byte_range(f, lo, hi)
        return f
    if kind is Repeat:
        low = integer(tree.min)
        high = -1 if tree.max is None else integer(tree.max)
        if low > limit or high > limit:
            raise LimitError(f"a repetition of {max(low, high)} needs more than {limit} DFA states")
        if low + high > 3:
            body = automaton(tree.body, limit).full()[0]
        f = nfa.empty()
        for k in range(low):
            g = nfa.embed(body) if low + high > 3 else _nfa(nfa, tree.body, limit, depth + 1, False)
            nfa.epsilon(f.end, g.start)
            f.end = g.end
        if high < 0:
            g = _nfa(nfa, tree.body, limit, depth + 1, False)
            h = nfa.pair()
            nfa.epsilon(f.end, h.start)
            nfa.epsilon(h.start, g.start)
            nfa.epsilon(g.end, h.start)
            nfa.epsilon(h.start, h.end)
            f.end = h.end
            return f
        end = nfa.pair()
        for k in range(low, high):
            nfa.epsilon(f.end, end.end)
            g = nfa.embed(body) if low + high > 3 else _nfa(nfa, tree.body, limit, depth + 1, False)
            nfa.epsilon(f.end, g.start)
            f.end = g.end
        nfa.epsilon(f.end, end.end)
        f.end = end.end
        return f
    if kind is Table:
        states = [nfa.empty().start for _ in tree.rows]
        f.start, f.end = states[tree.start], nfa.empty().start
        for s, row in zip(states, tree.rows):
            for lo, hi, to in row:
                g.start, g.end = s, states[to]
                nfa.byte_range(g, lo, hi)
        for s, accepts in zip(states, tree.accept):
            if accepts:
                nfa.epsilon(s, f.end)
        return f
    if kind is Unit:
        f = nfa.empty()  # nothing leads back to a state of its own
        g = _nfa(nfa, tree.body, limit, depth + 1, False)
        nfa.epsilon(f.end, g.start)
        nfa.count_first(g)
        f.end = g.end
        return f
    if kind is And or kind is Minus:
        return nfa.embed(automaton(tree, limit).full()[0])
    raise TypeError(f"not a regular tree: {tree!r}")


# --- vocabulary --------------------------------------------------------------------------------------------------

cdef class VocabCore:
    """The engine's view of a vocabulary: sorted trie and profile caches.  Use :class:`wfsa.Vocab`."""

    cdef shared_ptr[Vocabulary] ptr

    def __init__(self, const uint8_t[::1] blob, const int64_t[::1] offsets, const int32_t[::1] special,
                 const int32_t[::1] eos, int64_t size):
        cdef Vocabulary* v
        cdef Py_ssize_t i, n = offsets.shape[0] - 1
        self.ptr = make_shared[Vocabulary]()
        v = self.ptr.get()
        if blob.shape[0]:
            v.blob.assign(&blob[0], &blob[0] + blob.shape[0])
        v.offsets.assign(&offsets[0], &offsets[0] + n + 1)
        v.special.assign(n, 0)
        for i in range(special.shape[0]):
            v.special[special[i]] = 1
        for i in range(eos.shape[0]):
            v.eos.push_back(eos[i])
        v.size = size
        with nogil:
            v.build()

    @property
    def n_nodes(self):
        return self.ptr.get().trie.n_nodes()


# --- the compiled constraint -------------------------------------------------------------------------------------

cdef class ConstraintCore:
    """Tables of one grammar over one vocabulary.  Use :class:`wfsa.Constraint`."""

    cdef shared_ptr[Engine] ptr
    cdef readonly VocabCore vocab

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
        self.ptr.get().use_parsing = on

    def to_arrays(self):
        """All tables as {name: int32 array}; the layout is in ext/artifact/pack.hpp."""
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
        out.ptr = make_shared[Engine](vocab.ptr)
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

    def start(self):
        """A fresh :class:`State`."""
        cdef State s = State.__new__(State)
        s.core = self
        s.n_words = self.vocab.ptr.get().n_words()
        s.session = Session(self.ptr)
        return s


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
    out.ptr = make_shared[Engine](vocab.ptr)
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


# --- decoding ----------------------------------------------------------------------------------------------------

cdef extern from *:
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


cdef int64_t integer(x) except? -1:
    """`x` as an int64, or the nearest one if it does not fit.  TypeError when it is no integer: 1.5, "1", None."""
    cdef int overflow = 0
    cdef int64_t got = PyLong_AsLongLongAndOverflow(x, &overflow)
    return got if not overflow else INT64_MAX if overflow > 0 else INT64_MIN


cdef class TokenMask:
    """The tokens that may come next.

    ``bitmask`` is a read-only int32[ceil(V/32)] array, bit ``i % 32`` of word ``i // 32``, 1 = allowed.
    """

    cdef bytes data
    cdef int64_t n_words

    def __init__(self):
        raise TypeError("a TokenMask comes from State.get_mask()")

    @property
    def bitmask(self):
        return np.frombuffer(self.data, np.int32)

    def to_bool(self):
        """bool[32 * ceil(V/32)], True = allowed."""
        return np.unpackbits(np.frombuffer(self.data, np.uint8), bitorder="little").view(np.bool_)

    def ids(self):
        """The allowed token ids, ascending, int64."""
        return np.flatnonzero(self.to_bool())

    def __len__(self):
        cdef const uint32_t* p = <const uint32_t*>PyBytes_AS_STRING(self.data)
        cdef int64_t i, n = 0
        for i in range(self.n_words):
            n += popcount(p[i])
        return n

    def __contains__(self, token_id):
        cdef int64_t t = integer(token_id)
        if t < 0 or t >= 32 * self.n_words:
            return False
        return bool((<const uint32_t*>PyBytes_AS_STRING(self.data))[t >> 5] >> (t & 31) & 1)

    def __eq__(self, other):
        return isinstance(other, TokenMask) and self.data == (<TokenMask>other).data

    def __hash__(self):
        return hash(self.data)

    def __repr__(self):
        return f"TokenMask({len(self)} tokens)"


def token_mask(bytes data not None):
    """A TokenMask of packed words that another module has computed; their number of bytes is a multiple of four."""
    cdef TokenMask m = TokenMask.__new__(TokenMask)
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes are no int32 words")
    m.data, m.n_words = data, len(data) // 4
    return m


cdef extern from *:
    int popcount "__builtin_popcount"(uint32_t) noexcept nogil


cdef class State:
    """One sequence under a constraint.  Not for concurrent use by several threads; fork() for that."""

    cdef ConstraintCore core
    cdef Session session
    cdef int64_t n_words
    cdef TokenMask cached
    cdef public object constraint

    def __init__(self):
        raise TypeError("a State comes from Constraint.start() or State.fork()")

    def get_mask(self):
        """The tokens that keep the text a viable prefix, as a :class:`TokenMask`; the end token iff it is a sentence."""
        cdef TokenMask m
        cdef uint32_t* p
        if self.cached is None:
            m = TokenMask.__new__(TokenMask)
            m.n_words = self.n_words
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


cdef struct Target:
    Py_buffer view
    uint32_t* p
    int64_t n_words


cdef int target_open(Target* target, buffer, int64_t need, row) except -1:
    cdef int64_t width
    if not PyObject_CheckBuffer(buffer) and hasattr(buffer, "numpy"):
        try:
            buffer = buffer.numpy()
        except Exception as e:
            raise StateError(f"the mask buffer must be a CPU tensor without gradient: {e}") from None
    try:
        PyObject_GetBuffer(buffer, &target.view, PyBUF_FORMAT | PyBUF_ND | PyBUF_STRIDES | PyBUF_WRITABLE)
    except (BufferError, ValueError, TypeError) as e:
        raise StateError(f"the mask buffer must be a writable int32 array: {e}") from None
    try:
        _check_target(&target.view, need, row)
    except BaseException:
        PyBuffer_Release(&target.view)
        raise
    width = target.view.shape[target.view.ndim - 1]
    target.p = <uint32_t*>target.view.buf + (0 if row is None or target.view.ndim == 1 else <int64_t>row * width)
    target.n_words = width
    return 0


cdef int _check_target(Py_buffer* view, int64_t need, row) except -1:
    if view.itemsize != 4 or (view.format != NULL and view.format[0] not in (b"i", b"l")):
        kind = b"B" if view.format == NULL else <bytes>view.format
        raise StateError(f"the mask buffer must be int32, not format {kind!r} of {view.itemsize} bytes")
    if view.ndim == 1:
        if row is not None and row != 0:
            raise StateError(f"row {row} of a one-dimensional mask buffer")
    elif view.ndim == 2:
        if row is None and view.shape[0] != 1:
            raise StateError("a two-dimensional mask buffer needs row=")
        if row is not None and not 0 <= row < view.shape[0]:
            raise StateError(f"row {row} is out of range: the mask buffer has {view.shape[0]} rows")
    else:
        raise StateError(f"the mask buffer must have one or two dimensions, not {view.ndim}")
    if view.shape[view.ndim - 1] < need:
        raise StateError(f"the mask buffer has {view.shape[view.ndim - 1]} words a row, the vocabulary needs {need}")
    if view.strides[view.ndim - 1] != 4 or (view.ndim == 2 and view.strides[0] != 4 * view.shape[1]):
        raise StateError("the mask buffer must be C-contiguous")
    return 0
