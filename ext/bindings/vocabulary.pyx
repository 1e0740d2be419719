# cython: language_level=3
"""A vocabulary as the engine sees it: arrays in, a trie and caches behind a shared pointer."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.memory cimport make_shared


cdef class VocabCore:
    """The engine's view of a vocabulary: sorted trie and profile caches.  Use :class:`wfsa.Vocab`."""

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
