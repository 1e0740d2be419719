// A shortest end of a text: the fewest bytes after which it is a sentence.
//
// A* over what the text can be: each step is one byte, and of two texts with one situation (Decoder::situation) the longer
// is dropped, and one that was met before is taken again where it is shorter.  The estimate is Decoder::least_to_end, which
// never is too large; so the first sentence taken from the queue is a shortest one.  With an estimate that is exact only the texts of one answer are
// looked at; where it is too small (lengths that are counted, items that must differ) more are, up to the budget.  Same text, same answer: the queue breaks ties by length and by number.
#pragma once
#include <map>
#include <queue>

#include "errors.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

// The bytes into `out`; false: every end has more than `limit` bytes.  LimitExceeded: there are more than `budget` situations to look at.
inline bool closing(const Decoder& from, int64_t limit, int64_t budget, std::string& out) {
    struct Text {
        std::unique_ptr<Decoder> decoder;  // all stay, since situations may name parts of them by their place in memory
        std::string bytes;
        const int64_t* least;  // bytes after which its situation is known to be reached
    };
    typedef std::pair<std::pair<int64_t, int64_t>, size_t> Entry;  // estimate of the whole, minus its bytes; number
    std::vector<Text> texts;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> open;
    std::map<std::vector<int64_t>, int64_t> known;
    std::vector<int64_t> key;
    auto add = [&](std::unique_ptr<Decoder> decoder, std::string bytes) {
        const int64_t n = int64_t(bytes.size());
        key.clear();
        decoder->situation(key);
        const auto at = known.emplace(key, n);
        if (!at.second && at.first->second <= n) return;
        const int64_t whole = n + decoder->least_to_end();
        if (whole > limit) {  // goes, and its nodes with it: another text's may have their addresses
            if (at.second) known.erase(at.first);
            return;
        }
        at.first->second = n;
        if (int64_t(texts.size()) >= budget)
            throw LimitExceeded("the shortest end was not found among " + std::to_string(budget) + " ways to go on");
        texts.push_back({std::move(decoder), std::move(bytes), &at.first->second});
        open.push({{whole, -n}, texts.size() - 1});
    };
    add(from.fork(), std::string());
    while (!open.empty()) {
        const size_t number = open.top().second;
        open.pop();
        const Decoder* at = texts[number].decoder.get();
        const std::string bytes = texts[number].bytes;
        if (*texts[number].least < int64_t(bytes.size())) continue;
        if (at->accepting()) {
            out = bytes;
            return true;
        }
        for (const char c : at->next_bytes()) {
            std::unique_ptr<Decoder> next = at->fork();
            const uint8_t byte = uint8_t(c);
            if (next->commit_bytes(&byte, 1)) add(std::move(next), bytes + c);
        }
    }
    return false;
}

}  // namespace wfsa
