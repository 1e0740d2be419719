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
#include <cstring>
#include <map>
#include <set>

#include "json/distinct.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

// Watches a parse: where the parser would reduce to a nonterminal that Tables.distinct marks, an item of an array that cares
// ends.  The reduction is barred if the item equals an earlier one, and under Mark::kRepeats if it equals none.
class DistinctWatch {
  public:
    JsonScan scan;

    DistinctWatch(const Tables& tables, const JsonScan& at, Arena& arena) : scan(at), tables_(tables), arena_(arena) {}

    void push(uint8_t byte) {
        scan.push(byte, arena_);
        known_ = false;
    }
    bool bars(int32_t nonterminal) {
        const Mark mark = tables_.mark(nonterminal);
        if (mark == Mark::kNone) return false;
        if (!known_) repeats_ = scan.repeats();
        known_ = true;
        return repeats_ == (mark != Mark::kRepeats);
    }
    // Could what follows be bound to repeat an item?
    bool is_close() const { return scan.may_be_bound(tables_.may_run_out); }

  private:
    const Tables& tables_;
    Arena& arena_;
    bool known_ = false, repeats_ = false;  // does the item that would end here repeat?
};

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
            DistinctWatch beside(e_, scan, arena_);
            const Snapshot* to = operations.commit_bytes(at, p, n, arena_, beside);
            return Trial{to, beside.scan, to && beside.is_close()};
        });
    }
    // Where the parse stands behind a byte more, as far as terminals go on; nullptr: none does.
    const Snapshot* go_on(const Snapshot* at, uint8_t byte) {
        return e_.run([&](auto& operations) { return operations.go_on(at, byte, arena_); });
    }
    // Is there a byte behind which nothing can be bound to repeat an item?
    bool opens_at_once(const Snapshot* at, const JsonScan& scan) {
        bool tokens = false;
        const ByteBits bytes = next_bytes(at, tokens);
        return tokens || leaves(bytes, scan);
    }
    // Does an open array care?  Else only those count that what follows opens.
    bool cares(const Snapshot* at) const {
        constexpr size_t kMost = 256;  // nodes looked at; in more something is taken to care
        size_t n = 0;
        open_.clear();
        for (int32_t i = 0; i < at->n; ++i)
            open_.insert(open_.end(), at->configs[i].tops, at->configs[i].tops + at->configs[i].n_tops);
        while (!open_.empty()) {
            const Node* node = open_.back();
            open_.pop_back();
            if (++n > kMost || awaits(node->state)) return true;
            open_.insert(open_.end(), node->below, node->below + node->n_below);
        }
        return false;
    }
    // Could what follows be bound to repeat an item?
    bool is_close(const JsonScan& scan) const { return scan.may_be_bound(e_.may_run_out); }
    bool is_alive(const Trial& from) {
        if (!from.at) return false;
        if (from.at->finished || !from.close || !cares(from.at) || opens_at_once(from.at, from.scan)) return true;
        budget_ = kBudget;
        levels_.clear();
        seen_.clear();
        const bool alive = opens(from) || search();
        if (budget_ <= 0) {
            ++e_.n_given_up;
            return true;
        }
        // Of what was looked at on the way to a text that is alive, the way itself is; else all of it is dead.
        for (Level& level : levels_) known_.emplace(std::move(level.key), true);
        if (!alive) for (const vector<int64_t>& key : seen_) known_.emplace(key, false);
        return alive;
    }

  private:
    static constexpr int32_t kBudget = 4096;  // texts that are looked at before one counts as alive
    struct Level {
        Trial from;
        vector<int64_t> parse, key;  // where it stands; and what is written
        vector<uint8_t> next;        // bytes that do not decide, the first to be tried last
        bool at_any_place;           // zeros of the fraction being written are not counted
    };
    Engine& e_;
    Arena& arena_;
    mutable vector<const Node*> open_;
    vector<Level> levels_;
    std::set<vector<int64_t>> seen_;          // in this search
    std::map<vector<int64_t>, bool> known_;   // is it alive?  Of the searches before
    int32_t budget_ = 0;

    bool awaits(int32_t state) const {
        const UnorderedStates& sets = e_.lr.unordered;
        return e_.awaits_distinct[state < sets.first ? state : sets.base_of(state)];
    }
    bool search() {
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

    ByteBits next_bytes(const Snapshot* at, bool& tokens) {
        return e_.run([&](auto& operations) { return operations.next_bytes(at, tokens); });
    }
    bool leaves(const ByteBits& bytes, const JsonScan& scan) {
        for (int b = 255; b > ' '; --b) {
            if (!bytes.has(uint8_t(b))) continue;
            if (scan.leaves(uint8_t(b))) return true;
            JsonScan to = scan;
            to.push(uint8_t(b), arena_);
            if (!is_close(to)) return true;
        }
        return false;
    }

    // A text more: is there a byte behind which nothing can be bound to repeat an item?  If not, it is a level more,
    // unless another one goes on the same.
    bool opens(const Trial& from) {
        if (--budget_ <= 0) return true;
        Level level{from, {}, {}, {}, false};
        if (!levels_.empty() || !known_.empty()) {
            put_situation(from.at, level.parse);
            bool alive = false;
            if (is_known(level, alive)) return alive;
            if (comes_back(level)) {
                if (!from.scan.number()->in_fraction()) return true;
                level.at_any_place = true;
                if (is_known(level, alive)) return alive;
            }
        }
        bool tokens = false;
        const ByteBits bytes = next_bytes(from.at, tokens);
        if (tokens || leaves(bytes, from.scan)) return true;
        const bool in_string = from.scan.in_string, number = from.scan.number();
        for (int b = 255; b >= 0; --b) {
            if (!bytes.has(uint8_t(b))) continue;
            if (level.at_any_place && b >= '1' && b <= '9') return true;
            level.next.push_back(uint8_t(b));
        }
        // What ends an item is tried first, and what ends its array before what begins another one; what only gives a
        // value another spelling is tried last.
        const auto last = [&](const char* bytes) {
            std::stable_partition(level.next.begin(), level.next.end(), [=](uint8_t b) { return std::strchr(bytes, b); });
        };
        if (number) last(".eE+-");
        else last(in_string ? "\\" : "-");
        std::stable_partition(level.next.begin(), level.next.end(), [](uint8_t b) { return b != ']' && b != '}'; });
        // White space comes last of all.  Where it is optional it changes nothing; a layout with a line for each item asks
        // for it in front of an item, where only the end of an empty array could follow without.
        if (!in_string) std::stable_partition(level.next.begin(), level.next.end(), [](uint8_t b) { return b <= ' '; });
        levels_.push_back(std::move(level));
        return false;
    }
    // Has it been looked at?  If not, it is from now on.
    bool is_known(Level& level, bool& alive) {
        level.key = level.parse;
        level.from.scan.put_key(level.key, level.at_any_place);
        const auto known = known_.find(level.key);
        alive = known != known_.end() && known->second;
        return known != known_.end() || !seen_.insert(level.key).second;
    }
    // Has the parse been here within this number, with the same digits?
    bool comes_back(const Level& now) const {
        if (!now.from.scan.number()) return false;
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
