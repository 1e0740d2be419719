// Equal lists get equal numbers, from 0 on in the order in which they were first met.
//
// Lists lie one behind the other in an arena and do not move; the table is one array, at most half full. So a list
// costs its numbers and a few bytes, and letting a million of them go costs nothing.
#pragma once
#include "containers/fields.hpp"
#include "containers/numbers.hpp"
#include "containers/span_arena.hpp"

namespace wfsa {

class Interner {
  public:
    int32_t intern(List key) { return insert(key).first; }
    // The number of a list, and whether it is new.
    std::pair<int32_t, bool> insert(List key) {
        if (2 * (lists_.size() + 1) > slots_.size()) grow();
        const uint32_t hash = hash_of(key);
        Slot& slot = slots_[at(key, hash)];
        if (slot.id >= 0) return {slot.id, false};
        slot = {hash, size()};
        lists_.push_back(arena_.keep(key));
        return {slot.id, true};
    }
    int32_t find(List key) const {  // -1: not met
        return slots_.empty() ? -1 : slots_[at(key, hash_of(key))].id;
    }
    List operator[](int32_t id) const { return lists_[id]; }
    int32_t size() const { return int32_t(lists_.size()); }
    // Without what expansion needs numbers are forgotten, and lists that were read stay where they are.
    template <class Self, class V> static void fields(Self& i, V& v) {
        v.made(i.arena_);
        v.expansion(i.lists_, i.slots_);
    }

  private:
    struct Slot {
        uint32_t hash = 0;
        int32_t id = -1;  // -1: free
    };
    ListArena arena_;
    vector<List> lists_;
    vector<Slot> slots_;  // as many as a power of two

    static uint32_t hash_of(List key) { return uint32_t(VectorHash()(key)); }
    size_t at(List key, uint32_t hash) const {  // where it is, or where it goes
        size_t k = hash & (slots_.size() - 1);
        while (slots_[k].id >= 0 && !(slots_[k].hash == hash && lists_[slots_[k].id] == key))
            k = (k + 1) & (slots_.size() - 1);
        return k;
    }
    void grow() {
        vector<Slot> old(slots_.empty() ? 8 : 2 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.id < 0) continue;
            size_t k = slot.hash & (slots_.size() - 1);
            while (slots_[k].id >= 0) k = (k + 1) & (slots_.size() - 1);
            slots_[k] = slot;
        }
    }
};

}  // namespace wfsa
