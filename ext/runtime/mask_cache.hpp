// Finished masks of one thread, keyed by what decides them.
//
// The same few situations come again and again (inside this string, at a digit of that number), and copying a finished
// bitmap is cheaper than composing it.  A mask is kept when its key is seen for the second time and only if the parser
// DWA decided it on the topmost states; the key holds those.  Direct-mapped and per thread: no lock, bounded memory
// (64 bitmaps, 1 MB for 128k tokens).
#pragma once
#include <cstdint>
#include <vector>

#include "regular/dfa.hpp"

namespace wfsa {

class MaskCache {
  public:
    struct Entry {
        vector<int64_t> key;
        vector<uint32_t> bitmap;
    };
    vector<int64_t> key;  // of the mask being asked for; the caller fills it

    const vector<uint32_t>* find() {
        hash_ = 0x9E3779B97F4A7C15ull;
        for (int64_t k : key) { hash_ ^= uint64_t(k); hash_ *= 0xff51afd7ed558ccdull; hash_ ^= hash_ >> 29; }
        const Entry& e = entries_[hash_ % kEntries];
        return e.key == key ? &e.bitmap : nullptr;
    }
    // After a miss: keep the mask if this key was seen before.
    void put(const uint32_t* mask, size_t n_words) {
        uint64_t& seen = seen_[hash_ % kSeen];
        if (seen != hash_) { seen = hash_; return; }
        Entry& e = entries_[hash_ % kEntries];
        e.key = key;
        e.bitmap.assign(mask, mask + n_words);
    }

  private:
    static constexpr size_t kEntries = 64, kSeen = 4096;
    uint64_t hash_ = 0;
    vector<Entry> entries_ = vector<Entry>(kEntries);
    vector<uint64_t> seen_ = vector<uint64_t>(kSeen);
};

}  // namespace wfsa
