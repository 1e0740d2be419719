// Can a text go on so that no item repeats?  Almost always the first byte behind which no item may repeat decides.
//
// Else the ways to go on are searched, depth first, byte by byte.  Two texts with the same parse whose open items agree in
// their normal forms go on the same, and the second one is dropped: however many spellings a value has, it is looked at
// once.  What may repeat begins like an earlier item, of which there are some; so the search ends, but for numbers, whose
// zeros change nothing and are counted (0.0, 0.00, ...).  They are pumped:
//
//   a parse that comes back within a number, with one zero or digit of the exponent more, can come back for ever.  Where
//   that changes the number there are values without end, and one is new.  Zeros in a fraction change it only if another
//   digit can follow; so they are no longer counted, and if one follows, there are values without end.
#pragma once
#include <set>

#include "json/distinct_items.hpp"
#include "runtime/engine.hpp"
#include "runtime/situation.hpp"

namespace wfsa {

// After some bytes.
struct Trial {
    const Snapshot* at = nullptr;  // nullptr: they are refused
    JsonScan scan;
    bool close = false;  // could what follows be bound to repeat an item?
};

class DistinctSearch {
  public:
    DistinctSearch(Engine& engine, Arena& arena) : e_(engine), arena_(arena) {}

    Trial commit(const Snapshot* at, const JsonScan& scan, const uint8_t* p, size_t n) {
        return e_.run([&](auto& operations) {
            DistinctItems beside(e_.distinct, scan, arena_);
            const Snapshot* to = operations.commit_bytes(at, p, n, arena_, beside);
            return Trial{to, beside.scan, to && beside.is_close()};
        });
    }
    bool is_alive(const Trial& from) {
        if (!from.at) return false;
        if (from.at->finished || !from.close) return true;
        budget_ = kBudget;
        levels_.clear();
        seen_.clear();
        if (opens(from)) return true;
        while (!levels_.empty()) {
            Level& level = levels_.back();
            if (level.next.empty()) {
                levels_.pop_back();
                continue;
            }
            const uint8_t byte = level.next.back();
            level.next.pop_back();
            const Trial to = commit(level.from.at, level.from.scan, &byte, 1);
            if (to.at && (!to.close || opens(to))) return true;
        }
        return false;
    }

  private:
    static constexpr int32_t kBudget = 4096;  // texts that are looked at before one counts as alive
    struct Level {
        Trial from;
        vector<int64_t> parse;  // where it stands
        vector<uint8_t> next;   // bytes that do not decide, the first to be tried last
        bool at_any_place;      // zeros of the fraction being written are not counted
    };
    Engine& e_;
    Arena& arena_;
    vector<Level> levels_;
    std::set<vector<int64_t>> seen_;
    int32_t budget_ = 0;

    // A text more: is there a byte behind which nothing can be bound to repeat an item?  If not, it is a level more,
    // unless another one goes on the same.
    bool opens(const Trial& from) {
        if (--budget_ <= 0) return true;
        Level level{from, {}, {}, false};
        const NumberUnits* number = from.scan.number();
        if (!levels_.empty()) {
            put_situation(from.at, level.parse);
            if (number && comes_back(level)) {
                if (!number->in_fraction()) return true;
                level.at_any_place = true;
            }
            vector<int64_t> key = level.parse;
            from.scan.put_key(key, level.at_any_place);
            if (!seen_.insert(std::move(key)).second) return false;
        }
        bool tokens = false;
        const ByteBits bytes = e_.run([&](auto& operations) { return operations.next_bytes(from.at, tokens); });
        if (tokens) return true;
        const bool in_string = from.scan.in_string;
        bool solid = in_string;  // white space is tried where nothing else can follow: a run of it leads nowhere
        for (int b = '!'; b < 256; ++b) solid |= bytes.has(uint8_t(b));
        for (int b = 255; b >= 0; --b) {
            if (!bytes.has(uint8_t(b)) || (solid && b <= ' ' && !in_string)) continue;
            if (level.at_any_place && b >= '1' && b <= '9') return true;
            JsonScan scan = from.scan;
            scan.push(uint8_t(b), arena_);
            if (!scan.is_close(e_.may_run_out && scan.may_end_item())) return true;
            level.next.push_back(uint8_t(b));
        }
        // What ends an item is tried first, and what ends its array before what begins another one.
        std::stable_partition(level.next.begin(), level.next.end(), [](uint8_t b) { return b != ']' && b != '}'; });
        levels_.push_back(std::move(level));
        return false;
    }
    // Has the parse been here within this number, with the same digits?
    bool comes_back(const Level& now) const {
        vector<int64_t> key, before;
        now.from.scan.put_key(key, true);
        for (auto level = levels_.rbegin(); level != levels_.rend() && level->from.scan.number(); ++level) {
            if (level->parse != now.parse) continue;
            before.clear();
            level->from.scan.put_key(before, true);
            if (before == key) return true;
        }
        return false;
    }
};

}  // namespace wfsa
