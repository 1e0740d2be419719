// Universes: the tails that are asked about together.
//
// The machines that say which tails a stack takes (parser_dwa.hpp, joint_tails.hpp) number tails by their place in
// one trie. Ahead of time there is one universe a terminal, the union of the tails of all its ends; on demand each
// end of a terminal brings its own, so that nothing waits for ends that may never be needed. For each end the slots
// of its own tails in the universe are kept, to get back from tails to tokens.
#pragma once
#include "vocabulary/vocabulary.hpp"

namespace wfsa {

struct Universe {
    int32_t term;
    std::shared_ptr<const SharedTails> shared;
    const Trie& tails() const { return shared->all; }  // its slots are the weights' elements
};

inline std::shared_ptr<const SharedTails> unite(const vector<const Tails*>& parts) {
    auto out = std::make_shared<SharedTails>();
    vector<Word> words;
    for (const Tails* t : parts) words.insert(words.end(), t->trie.slot_word.begin(), t->trie.slot_word.end());
    out->all = Trie(words);
    const vector<Word>& all = out->all.slot_word;
    for (const Tails* t : parts) {
        auto slots = std::make_shared<vector<int32_t>>();
        size_t at = 0;  // both are sorted: one merge
        for (const Word& w : t->trie.slot_word) {
            while (all[at].length != w.length || std::memcmp(all[at].text, w.text, size_t(w.length))) ++at;
            slots->push_back(int32_t(at));
        }
        out->slots.push_back(std::move(slots));
    }
    return out;
}

// Give some ends of one terminal a universe.
inline void add_universe(std::deque<Universe>& universes, Profiler& profiler, Vocabulary& vocab, const Terminals& terms,
                         const vector<int32_t>& ends) {
    constexpr size_t kMinCached = 64;    // tails; fewer are united as fast as they are found
    constexpr size_t kMaxCached = 4096;  // universes of a vocabulary
    vector<int64_t> key;
    vector<const Tails*> parts;
    size_t n_tails = 0;
    for (int32_t i : ends) {
        const Tails& tails = *profiler.terminal_ends[size_t(i)].tails;
        key.push_back(tails.uid);
        parts.push_back(&tails);
        n_tails += tails.trie.slot_word.size();
    }
    std::shared_ptr<const SharedTails> united;
    {
        std::lock_guard<std::mutex> lock(vocab.universes_mutex);
        auto got = vocab.universes.find(key);
        if (got != vocab.universes.end()) united = got->second;
    }
    if (!united) {
        united = unite(parts);
        if (n_tails > kMinCached) {
            std::lock_guard<std::mutex> lock(vocab.universes_mutex);
            if (vocab.universes.size() > kMaxCached) vocab.universes.clear();
            vocab.universes.emplace(key, united);
        }
    }
    const int32_t term = profiler.terminal_ends[size_t(ends[0])].term;
    for (size_t k = 0; k < ends.size(); ++k) {
        TerminalEnd& end = profiler.terminal_ends[size_t(ends[k])];
        end.universe = int32_t(universes.size());
        end.slots = united->slots[k];
        end.index(united->all.slot_word.size(), terms.counted[size_t(term)]);
    }
    universes.push_back({term, united});
}

}  // namespace wfsa
