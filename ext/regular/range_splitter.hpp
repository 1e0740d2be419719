// Edges of many states on one: where their byte ranges begin and end.
#pragma once
#include "regular/dfa.hpp"

namespace wfsa {

// Split the union of many edge lists into disjoint ranges; calls visit(lo, hi, targets) with sorted unique targets.
struct RangeSplitter {
    vector<std::pair<int32_t, int32_t>> opens;  // (position, +target+1 / -(target+1))
    vector<int32_t> active, out;
    int64_t work = 0;  // steps taken, for who has to bound them
    void clear() { opens.clear(); }
    void add(uint8_t lo, uint8_t hi, int32_t target) {
        opens.push_back({lo, target + 1});
        opens.push_back({int32_t(hi) + 1, -(target + 1)});
    }
    template <class Visit> void run(Visit visit) {
        std::sort(opens.begin(), opens.end());
        active.clear();
        for (size_t i = 0; i < opens.size();) {
            int32_t at = opens[i].first;
            for (; i < opens.size() && opens[i].first == at; ++i) {
                work += int64_t(active.size()) / 8 + 1;
                if (opens[i].second > 0) active.push_back(opens[i].second - 1);
                else active.erase(std::find(active.begin(), active.end(), -opens[i].second - 1));
            }
            if (active.empty() || i == opens.size()) continue;
            work += int64_t(active.size());
            out.assign(active.begin(), active.end());
            std::sort(out.begin(), out.end());
            out.erase(std::unique(out.begin(), out.end()), out.end());
            visit(uint8_t(at), uint8_t(opens[i].first - 1), out);
        }
    }
};

}  // namespace wfsa
