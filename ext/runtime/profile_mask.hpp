// A profile into a mask: the tokens that stay inside terminals, with their counts; and a look at every terminal that
// can end.
#pragma once
#include "runtime/access.hpp"
#include "runtime/scratch.hpp"

namespace wfsa {

class ProfileMask {
  public:
    ProfileMask(const Tables& tables, Scratch& scratch) : tables_(tables), s_(scratch) {}

    // The bitmap that a configuration starts from, if it has one: copying it is cheaper than clearing and uniting.
    const uint32_t* base_bitmap(const Config& c) const {
        const LexState& y = tables_.lexer.states[size_t(c.lex)];
        if (y.profile < 0) return nullptr;
        const Profile* p = &profile(y.profile);
        if (p->vetoed || !tables_.is_free(c.lex, c.count)) return nullptr;
        if (p->base >= 0) p = &profile(p->base);
        const vector<uint32_t>* bitmap = main_bitmap(*p->inside);
        return bitmap ? bitmap->data() : nullptr;
    }
    // A profile with what it is a change of.  `copied`: the mask already is its base bitmap, and nothing else.
    // on_end(number, out) for every end of a terminal.
    template <class OnEnd> void add(const Config& c, int32_t number, MaskWriter out, bool copied, const OnEnd& on_end) {
        const Profile* p = &profile(number);
        if (p->vetoed) {
            out.vetoed = p->vetoed->data();
            copied = false;
            p = &profile(p->base);
        }
        if (p->base >= 0) {
            keep_dropped(*p, out, copied);
            add_own(c, profile(p->base), out, copied, on_end);
            give_back_dropped(*p, out);
            copied = false;
        }
        add_own(c, *p, out, copied, on_end);
    }

  private:
    const Tables& tables_;
    Scratch& s_;

    const Profile& profile(int32_t number) const { return tables_.profiler.profiles[size_t(number)]; }
    static const vector<uint32_t>* main_bitmap(const Inside& r) {
        if (!r.bitmap.empty()) return &r.bitmap;
        for (const Inside::Group& g : r.groups) if (!g.bitmap.empty()) return &g.bitmap;
        return nullptr;
    }

    // What other configurations gave to the tokens that a delta's base must not touch.
    void keep_dropped(const Profile& p, MaskWriter out, bool nothing) {
        s_.kept.assign(p.drop.size(), 0);
        if (nothing) return;
        for (size_t i = 0; i < p.drop.size(); ++i)
            s_.kept[i] = out.mask[size_t(p.drop[i]) >> 5] & (1u << (p.drop[i] & 31));
    }
    void give_back_dropped(const Profile& p, MaskWriter out) const {
        for (size_t i = 0; i < p.drop.size(); ++i) {
            uint32_t& w = out.mask[size_t(p.drop[i]) >> 5];
            w = (w & ~(1u << (p.drop[i] & 31))) | s_.kept[i];
        }
    }
    template <class OnEnd>
    void add_own(const Config& c, const Profile& p, MaskWriter out, bool copied, const OnEnd& on_end) {
        const vector<uint32_t>* there = copied ? main_bitmap(*p.inside) : nullptr;
        if (!p.inside->bitmap.empty() && there != &p.inside->bitmap) out.add(p.inside->bitmap);
        for (int32_t id : p.inside->ids) out.set(id);
        for (const Inside::Group& g : p.inside->groups) {
            if (there != nullptr && there == &g.bitmap) continue;
            add_group(g, tables_.lexer.spans[p.spans[size_t(g.local_span)]], c.count, out);
        }
        for (int32_t end : p.terminal_ends) on_end(end, out);
    }
    // The tokens of a group that end with a count in the span, when they start with `count`.
    void add_group(const Inside::Group& g, List span, int32_t count, MaskWriter out) {
        const int64_t n = int64_t(g.indptr.size()) - 1, zero = int64_t(count) + g.least;
        for (size_t i = 0; i < span.size(); i += 2) {
            const int64_t lo = std::max<int64_t>(0, span[i] - zero), hi = std::min<int64_t>(n - 1, span[i + 1] - zero);
            if (lo > hi) continue;
            if (lo == 0 && !g.bitmap.empty()) {
                if (hi == n - 1) { out.add(g.bitmap); continue; }
                if (hi < int64_t(g.up_to.size())) { out.add(g.up_to[size_t(hi)]); continue; }
                s_.bitmap = g.bitmap;
                for (int32_t k = g.indptr[size_t(hi) + 1]; k < g.indptr.back(); ++k)
                    s_.bitmap[size_t(g.tokens[size_t(k)]) >> 5] &= ~(1u << (g.tokens[size_t(k)] & 31));
                out.add(s_.bitmap);
                continue;
            }
            for (int32_t k = g.indptr[size_t(lo)]; k < g.indptr[size_t(hi) + 1]; ++k) out.set(g.tokens[size_t(k)]);
        }
    }
};

}  // namespace wfsa
