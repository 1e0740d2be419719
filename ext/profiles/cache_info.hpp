// How much a vocabulary's caches hold.
#pragma once
#include <map>
#include <string>

#include "profiles/cache.hpp"

namespace wfsa {

// cache -> "entries", "bytes".
inline std::map<std::string, std::map<std::string, int64_t>> cache_info_of(Vocabulary& v) {
    const ProfileCache& c = v.kept<ProfileCache>();
    auto numbers = [](size_t entries, size_t bytes) {
        return std::map<std::string, int64_t>{{"entries", int64_t(entries)}, {"bytes", int64_t(bytes)}};
    };
    const size_t own = v.blob.capacity() + 8 * v.offsets.capacity() + v.special.capacity();
    return {
        {"tokens", numbers(size_t(v.n_tokens()), own + v.trie.bytes())},
        {"token sets", numbers(c.insides.entries(), c.insides.bytes())},
        {"tails", numbers(c.tails.entries(), c.tails.bytes())},
        {"universes", numbers(c.universes().entries(), c.universes().bytes())},
        {"walks", numbers(c.walks.entries() + c.loops().entries() + c.spelled.entries(),
                          c.walks.bytes() + c.loops().bytes() + c.spelled.bytes())},
    };
}

}  // namespace wfsa
