// Questions about the language of a finished Dfa: whether it has a word, how many it has, and which.
#pragma once
#include <string>

#include "regular/dfa.hpp"

namespace wfsa {

constexpr int64_t kManyWords = int64_t(1) << 62;  // more are not told apart
constexpr int64_t kEndless = -1;

inline bool has_word(const Dfa& d, const uint8_t* word, size_t n) {
    int32_t s = d.size() ? 0 : -1;
    for (size_t i = 0; i < n && s >= 0; ++i) s = d.step(s, word[i]);
    return s >= 0 && d.accept[s];
}

// The number of words, or kEndless.  Every state is alive, so the words are endless if and only if a cycle exists; where
// none does, the paths to a state are known once all states that lead to it are done (Kahn 1962).
inline int64_t count_words(const Dfa& d) {
    if (d.size() == 0) return 0;
    vector<int32_t> waiting(size_t(d.size()), 0), done;
    for (const Edge& e : d.edges) ++waiting[e.target];
    if (waiting[0]) return kEndless;  // the start, to which every state but it has a way
    const auto sum = [](int64_t a, int64_t b) { return a > kManyWords - b ? kManyWords : a + b; };
    vector<int64_t> paths(size_t(d.size()), 0);
    paths[0] = 1;
    done.push_back(0);
    int64_t n = 0;
    for (size_t k = 0; k < done.size(); ++k) {
        const int64_t here = paths[done[k]];
        if (d.accept[done[k]]) n = sum(n, here);
        for (const Edge& e : d.row(done[k])) {
            int64_t& there = paths[e.target];
            const int64_t width = e.hi - e.lo + 1;
            there = sum(there, here > kManyWords / width ? kManyWords : here * width);
            if (--waiting[e.target] == 0) done.push_back(e.target);
        }
    }
    return int32_t(done.size()) < d.size() ? kEndless : n;
}

// All words in order; the language must be finite.
inline vector<std::string> list_words(const Dfa& d) {
    vector<std::string> words;
    vector<std::pair<int32_t, std::string>> todo;
    if (d.size()) todo.push_back({0, ""});
    while (!todo.empty()) {
        const auto [s, word] = std::move(todo.back());
        todo.pop_back();
        if (d.accept[s]) words.push_back(word);
        for (int32_t e = d.indptr[s + 1]; e-- > d.indptr[s];)
            for (int32_t b = d.edges[e].hi; b >= d.edges[e].lo; --b)
                todo.push_back({d.edges[e].target, word + char(b)});
    }
    return words;
}

}  // namespace wfsa
