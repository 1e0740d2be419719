// Arrays whose items must differ (uniqueItems over values of which there are too many for a grammar).
//
// "No two items are equal" is no context-free property, so the grammar describes the array without it, and the items are
// compared as they are written.  JSON's structure does not depend on the schema: whatever the parser's stacks are, a
// text has the same arrays and the same items.  So one scanner beside the parser knows them:
//
//   frame     an array or object that is open; an array's frame has its items so far, as values in normal form
//   repeats   would the item that ends here equal an earlier one of its array?
//
// The parser asks when it reduces to a nonterminal of Grammar.distinct, which is what an item's end is to a stack that
// cares, and drops the stack.  Stacks that do not care (another branch of anyOf) live on.  A mask is made as if nothing
// had to differ; then the tokens that could end an item that repeats, or leave nothing but such ends, are tried.
//
// Equality is that of JSON Schema: numbers by value, objects without order, strings by characters.
// Frames and items are immutable and shared, so a scanner is a few words and copying it is a checkpoint.
#pragma once
#include <cstring>
#include <map>
#include <string>

#include "parser/gss.hpp"

namespace wfsa {

// The normal form of the JSON value in `text`, which is complete: equal values have equal ones.
class NormalForm {
  public:
    static std::string of(const char* p, size_t n) {
        NormalForm f{p, p + n};
        return f.value();
    }

  private:
    const char *p_, *end_;
    NormalForm(const char* p, const char* end) : p_(p), end_(end) {}

    void space() { while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_; }
    bool next(char c) {
        space();
        if (p_ == end_ || *p_ != c) return false;
        ++p_;
        return true;
    }
    // Without recursion: what is written here was written by a model, to any depth.  Values go to the end of one
    // string; where an object ends its members are put in order.
    struct Member { size_t name, value, end; };  // where they are in `out`
    struct Open {
        bool array;
        size_t begin, members;  // of its own text in `out`; of its first member in `members`
    };
    std::string value() {
        std::string out;
        vector<Open> open;
        vector<Member> members;  // of all open objects
        for (;;) {
            if (next(']') || next('}')) {
                if (open.empty()) return out;
                if (!open.back().array) order(out, open.back(), members);
                open.pop_back();
            } else if (next('[') || next('{')) {
                open.push_back({p_[-1] == '[', out.size(), members.size()});
                out += p_[-1];
                continue;
            } else if (p_ == end_) {
                return out;
            } else if (next(',')) {
                continue;
            } else if (*p_ == '"') {
                const size_t begin = out.size();
                string(out);
                if (!open.empty() && !open.back().array && next(':')) {
                    members.push_back({begin, out.size(), 0});
                    continue;
                }
            } else {
                scalar(out);
            }
            if (open.empty()) return out;
            if (open.back().array) out += ',';
            else if (members.size() > open.back().members) members.back().end = out.size();
        }
    }
    // An object's members by name; of equal names the last one counts.
    static void order(std::string& out, const Open& object, vector<Member>& members) {
        const auto from = members.begin() + int64_t(object.members);
        const auto name = [&](const Member& m) { return std::string_view(out).substr(m.name, m.value - m.name); };
        const auto rises = [&](const Member& a, const Member& b) { return name(a) < name(b); };
        const auto wrong = [&](const Member& a, const Member& b) { return name(a) >= name(b); };
        if (std::adjacent_find(from, members.end(), wrong) != members.end()) {
            std::stable_sort(from, members.end(), rises);
            std::string ordered;
            for (auto m = from; m != members.end(); ++m)
                if (m + 1 == members.end() || name(*m) != name(m[1])) ordered.append(out, m->name, m->end - m->name);
            out.replace(object.begin + 1, std::string::npos, ordered);
        }
        members.erase(from, members.end());
        out += '}';
    }
    void scalar(std::string& out) {
        const char* from = p_;
        while (p_ < end_ && !std::strchr(" \n\t\r,]}:", *p_)) ++p_;
        if (p_ == from) ++p_;  // a colon where none belongs
        if (*from == '-' || (*from >= '0' && *from <= '9')) out += number(from, p_);
        else out.append(from, p_);
    }
    static void utf8(uint32_t c, std::string& out) {
        if (c < 0x80) out += char(c);
        else if (c < 0x800) { out += char(0xc0 | c >> 6); out += char(0x80 | (c & 63)); }
        else if (c < 0x10000) { out += char(0xe0 | c >> 12); out += char(0x80 | (c >> 6 & 63)); out += char(0x80 | (c & 63)); }
        else { out += char(0xf0 | c >> 18); out += char(0x80 | (c >> 12 & 63)); out += char(0x80 | (c >> 6 & 63)); out += char(0x80 | (c & 63)); }
    }
    uint32_t hex() {
        uint32_t out = 0;
        for (int i = 0; i < 4 && p_ < end_; ++i, ++p_) out = out * 16 + uint32_t(*p_ <= '9' ? *p_ - '0' : (*p_ | 32) - 'a' + 10);
        return out;
    }
    void string(std::string& to) {  // length first, so that no content looks like the end
        std::string out;
        for (++p_; p_ < end_ && *p_ != '"';) {
            if (*p_ != '\\') { out += *p_++; continue; }
            if (++p_ == end_) break;
            const char c = *p_++;
            if (c == 'u') {
                uint32_t x = hex();
                if (x >= 0xd800 && x < 0xdc00 && end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u') {
                    p_ += 2;
                    x = 0x10000 + ((x - 0xd800) << 10) + (hex() - 0xdc00);
                }
                utf8(x, out);
            } else {
                const char *from = "bfnrt", *to = "\b\f\n\r\t", *at = std::strchr(from, c);
                out += at ? to[at - from] : c;
            }
        }
        if (p_ < end_) ++p_;
        to += "\"" + std::to_string(out.size()) + ":" + out;
    }
    static std::string number(const char* p, const char* end) {  // sign, digits, exponent; no zeros on either side
        std::string digits;
        const bool minus = *p == '-';
        if (minus) ++p;
        int64_t exponent = 0;
        bool point = false;
        for (; p < end && *p != 'e' && *p != 'E'; ++p) {
            if (*p == '.') { point = true; continue; }
            digits += *p;
            exponent -= point;
        }
        if (p < end) {
            const bool down = ++p < end && *p == '-';
            if (p < end && (*p == '-' || *p == '+')) ++p;
            int64_t e = 0;
            for (; p < end; ++p) e = std::min<int64_t>(e * 10 + (*p - '0'), int64_t(1) << 50);
            exponent += down ? -e : e;
        }
        while (!digits.empty() && digits.back() == '0') { digits.pop_back(); ++exponent; }
        digits.erase(0, digits.find_first_not_of('0'));
        if (digits.empty()) return "0";
        return (minus ? "-" : "") + digits + "e" + std::to_string(exponent);
    }
};

struct Item {
    const Item* before;
    int32_t begin, end;  // in the text, without white space before it
    uint64_t hash;       // of the normal form
};

struct Frame {
    const Frame* outer;
    const Item* items;  // of an array
    int32_t begin;      // where the current item begins (with white space), -1: an object
};

class JsonScan {
  public:
    const Frame* top = nullptr;
    int32_t n = 0;              // bytes read
    bool in_string = false, escaped = false;
    bool ended = false;         // a value has just ended, by its own last byte
    bool in_scalar = false;     // in a number or literal

    // One byte more; `text` has it at text[n].
    void push(const std::string& text, Arena& arena) {
        const char c = text[size_t(n++)];
        if (in_string) {
            if (escaped) escaped = false;
            else if (c == '\\') escaped = true;
            else if (c == '"') { in_string = false; ended = true; }
            return;
        }
        switch (c) {
            case '"': in_string = true; ended = false; return;
            case ' ': case '\n': case '\t': case '\r': ended |= in_scalar; in_scalar = false; return;
            case '[': case '{': open(c == '[', arena); return;
            case ',':
                if (top && top->begin >= 0) next_item(text, n - 1, arena);
                ended = in_scalar = false;
                return;
            case ']': case '}':
                if (top) top = top->outer;
                ended = true;
                in_scalar = false;
                return;
            case ':': ended = in_scalar = false; return;
            default: in_scalar = true; ended = false; return;
        }
    }
    bool in_array() const { return top && top->begin >= 0; }
    bool may_end_item() const { return in_array() && !in_string && (ended || in_scalar); }
    std::string form_of_item(const std::string& text, int32_t end) const {
        return NormalForm::of(text.data() + top->begin, size_t(end - top->begin));
    }
    uint64_t hash_of_item(const std::string& text) const { return std::hash<std::string>()(form_of_item(text, n)); }
    // Does the item that would end here equal an earlier one of its array?
    bool repeats(const std::string& text) const {
        if (!may_end_item() || !top->items) return false;
        const std::string form = form_of_item(text, n);
        const uint64_t hash = std::hash<std::string>()(form);
        for (const Item* i = top->items; i; i = i->before)
            if (i->hash == hash && form == NormalForm::of(text.data() + i->begin, size_t(i->end - i->begin))) return true;
        return false;
    }
    // Could what follows be bound to repeat an item?  Only if what is written of an item begins an earlier one; or, if
    // the values that items can have may run out, if an item has just ended and another one may have to come.
    bool is_close(const std::string& text, bool may_run_out) const {
        bool out = may_run_out && may_end_item();
        if (!out) each_rest(text, [&](const char*, size_t) { return !(out = true); });
        return out;
    }
    // For every earlier item, of any open array, that begins with what is written of the current one: what it has then.
    // Until `visit` returns false.
    template <class F> void each_rest(const std::string& text, const F& visit) const {
        for (const Frame* f = top; f; f = f->outer) {
            if (f->begin < 0 || !f->items) continue;
            const char* p = text.data() + f->begin;
            const size_t length = size_t(n - f->begin), skip = blank(p, length);
            for (const Item* i = f->items; i; i = i->before) {
                const char* q = text.data() + i->begin;
                const size_t size = size_t(i->end - i->begin);
                if (length - skip <= size && std::memcmp(p + skip, q, length - skip) == 0 && !visit(q + (length - skip), size - (length - skip)))
                    return;
            }
        }
    }
    int32_t n_items() const {
        int32_t out = 0;
        for (const Frame* f = top; f; f = f->outer) for (const Item* i = f->items; i; i = i->before) ++out;
        return out;
    }
    // Is there a backslash in an item of the innermost array?
    bool escapes(const std::string& text) const {
        for (const Item* i = top->items; i; i = i->before)
            if (std::memchr(text.data() + i->begin, '\\', size_t(i->end - i->begin))) return true;
        return false;
    }
    bool in_arrays() const {
        for (const Frame* f = top; f; f = f->outer) if (f->begin >= 0) return true;
        return false;
    }

  private:
    static size_t blank(const char* p, size_t n) {
        size_t k = 0;
        while (k < n && (p[k] == ' ' || p[k] == '\n' || p[k] == '\t' || p[k] == '\r')) ++k;
        return k;
    }
    template <class T> static T* fresh(Arena& arena, T value) { return new (arena.bytes(sizeof(T))) T(value); }
    void open(bool array, Arena& arena) {
        top = fresh(arena, Frame{top, nullptr, array ? n : -1});
        ended = in_scalar = false;
    }
    void next_item(const std::string& text, int32_t end, Arena& arena) {
        const std::string form = form_of_item(text, end);
        const Item* item = fresh(arena, Item{top->items, top->begin + int32_t(blank(text.data() + top->begin, size_t(end - top->begin))), end, std::hash<std::string>()(form)});
        top = fresh(arena, Frame{top->outer, item, n});
    }
};

}  // namespace wfsa
