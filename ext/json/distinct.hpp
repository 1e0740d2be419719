// Arrays whose items must differ (uniqueItems over values of which there are too many for a grammar).
//
// "No two items are equal" is no context-free property, so the grammar describes the array without it, and the items are
// compared as they are written.  JSON's structure does not depend on the schema: whatever the parser's stacks are, a
// text has the same arrays and the same items.  So one scanner beside the parser knows them:
//
//   frame     an array or object that is open; an array's frame has its items so far, by hash and by their bytes
//   repeats   would the item that ends here equal an earlier one of its array?
//   near      the earlier items that begin with what is written of the current one, of any open array
//
// The parser asks when it reduces to a nonterminal of Grammar.distinct, which is what an item's end is to a stack that
// cares, and drops the stack.  Stacks that do not care (another branch of anyOf) live on.  A mask is made as if nothing
// had to differ; then the tokens that could end an item that repeats, or leave nothing but such ends, are tried.
//
// Equality is that of JSON Schema: numbers by value, objects without order, strings by characters.
// Frames and items are immutable and shared, so a scanner is a few words and copying it is a checkpoint.
//
// Cost: a byte costs the same wherever it stands, whatever the depth, the items before and their length, up to the
// logarithm of the items.  `near` has few entries: an array that is near has an earlier item at least as long as what
// is written of the current one, which contains the earlier and the current item of the next array that is near, so
// what is written doubles from one to the next, and n bytes have at most log2(n) of them.
#pragma once
#include "json/equal_values.hpp"
#include "json/hash_tree.hpp"
#include "json/prefix_tree.hpp"
#include "json/value_hash.hpp"

namespace wfsa {

struct Frame {
    const Frame* outer;
    const HashTree* values = nullptr;   // an array's items by hash; an object's names, with the hashes of their values
    const PrefixTree* texts = nullptr;  // an array's items by their bytes
    uint64_t hash;                      // of the items or members so far
    uint64_t name = 0;                  // of the current member, by hash
    int32_t begin;                      // of the current item or member in the text
    int32_t name_end = -1;              // -1: its name is not complete
    int32_t depth;
    bool array, in_array;               // is it one; is it in one (then it needs a hash)
    bool escapes = false;               // has an item a backslash?
};

// An array's earlier items that begin with what is written of the current one.
struct Near {
    const Near* outer;
    const PrefixTree* items;
    int32_t begin;  // of the current item
    int32_t depth;  // of the array
};

class JsonScan {
  public:
    const Frame* top = nullptr;
    const Near* near = nullptr;  // the innermost array first
    int32_t n = 0;               // bytes of the text; white space between values is none of it
    bool in_string = false, escaped = false;
    bool ended = false;          // a value has just ended, by its own last byte
    bool in_scalar = false;      // in a number or literal

    // The byte that was put behind `text`; white space between values is taken off again.
    void push(std::string& text, Arena& arena) {
        const char c = text.back();
        if (!in_string && is_blank(c)) {
            text.pop_back();
            end_scalar();
            return;
        }
        if (!in_string && (c == ',' || c == ']' || c == '}') && top) {
            end_scalar();
            if (c == ',') next_part(text, arena);
            else close(text);
        }
        if (near) follow(uint8_t(c), text, arena);
        ++n;
        if (in_string) return in_text(c);
        switch (c) {
            case '"':
                in_string = true;
                ended = false;
                scalar_ = ScalarHash(c);
                return;
            case '[': case '{':
                open(c == '[', arena);
                ended = in_scalar = false;
                return;
            case ',':
                if (top && top->texts) near = put(arena, Near{near, top->texts, n, top->depth});
                ended = in_scalar = false;
                return;
            case ']': case '}':
                ended = true;
                in_scalar = false;
                return;
            case ':':
                if (top && !top->array) end_name(arena);
                ended = in_scalar = false;
                return;
            default:
                if (in_scalar) scalar_.push(c);
                else scalar_ = ScalarHash(c);
                in_scalar = true;
                ended = false;
                return;
        }
    }
    bool in_array() const { return top && top->array; }
    bool in_arrays() const { return top && (top->array || top->in_array); }
    bool may_end_item() const { return in_array() && !in_string && (ended || in_scalar); }
    // Does the item that would end here equal an earlier one of its array?
    bool repeats(const std::string& text) const {
        if (!may_end_item() || !top->values) return false;
        for (const HashTree::Entry* e = HashTree::find(top->values, hash()); e; e = e->same)
            if (equal(text, top->begin, n, *e)) return true;
        return false;
    }
    // Could what follows be bound to repeat an item?  Only if what is written of an item begins an earlier one; or, if
    // the values that items can have may run out, if an item has just ended and another one may have to come.
    bool is_close(bool may_run_out) const { return near || (may_run_out && may_end_item()); }
    // Is the string being written, an item, none of the earlier ones, whatever it goes on with?
    bool is_new() const { return in_string && in_array() && !near && !top->escapes && backslash_ < top->begin; }

  private:
    ScalarHash scalar_;
    uint64_t ended_ = 0;      // the hash of the value that ended last
    int32_t backslash_ = -1;  // where the last one stands

    static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
    template <class T> static T* put(Arena& arena, const T& value) { return new (arena.bytes(sizeof(T))) T(value); }
    static bool equal(const std::string& text, int32_t begin, int32_t end, const HashTree::Entry& e) {
        return EqualValues::test(text.data() + begin, size_t(end - begin), text.data() + e.begin, size_t(e.end - e.begin));
    }
    uint64_t hash() const { return in_scalar ? scalar_.end() : ended_; }
    void end_scalar() {
        if (!in_scalar) return;
        ended_ = scalar_.end();
        in_scalar = false;
        ended = true;
    }
    void in_text(char c) {
        if (c == '"' && !escaped) {
            in_string = false;
            ended = true;
            ended_ = scalar_.end();
            return;
        }
        scalar_.push(c);
        escaped = c == '\\' && !escaped;
        if (c == '\\') backslash_ = n - 1;
    }
    void open(bool array, Arena& arena) {
        Frame f{};
        f.outer = top;
        f.hash = array ? '[' : '{';
        f.begin = n;
        f.name_end = -1;
        f.depth = top ? top->depth + 1 : 0;
        f.array = array;
        f.in_array = in_arrays();
        top = put(arena, f);
    }
    // A comma.
    void next_part(const std::string& text, Arena& arena) {
        Frame f = *top;
        if (f.array) {
            leave_item();
            if (ended) {
                f.values = HashTree::add(f.values, {nullptr, f.begin, n, ended_, 0}, arena);
                f.texts = PrefixTree::add(f.texts, f.begin, n, text, arena);
                f.hash = mix_hash(f.hash, ended_);
                f.escapes |= backslash_ >= f.begin;
            }
        } else if (f.in_array && ended && f.name_end >= 0) {
            f.hash = with_member(text);
            f.values = HashTree::add(f.values, {nullptr, f.begin, f.name_end, f.name, ended_}, arena);
        }
        f.begin = n + 1;
        f.name_end = -1;
        top = put(arena, f);
    }
    // The hash of the object's members with the current one, which has ended.  Of equal names the last one counts.
    uint64_t with_member(const std::string& text) const {
        uint64_t out = top->hash + mix_hash(top->name, ended_);
        for (const HashTree::Entry* e = HashTree::find(top->values, top->name); e; e = e->same)
            if (equal(text, top->begin, top->name_end, *e)) return out - mix_hash(top->name, e->value);
        return out;
    }
    void end_name(Arena& arena) {
        if (!top->in_array || !ended) return;
        Frame f = *top;
        f.name = ended_;
        f.name_end = n - 1;
        top = put(arena, f);
    }
    // A bracket that closes.
    void close(const std::string& text) {
        uint64_t out = top->hash;
        if (top->array) {
            leave_item();
            if (ended) out = mix_hash(out, ended_);
        } else if (top->in_array && ended && top->name_end >= 0) {
            out = with_member(text);
        }
        ended_ = mix_hash(out, top->array);
        top = top->outer;
    }
    void leave_item() {
        if (near && near->depth == top->depth) near = near->outer;
    }
    // One byte along the items that are near.
    void follow(uint8_t c, const std::string& text, Arena& arena) {
        const Near* from = near;
        for (const Near** to = &near; (*to = nullptr, from); from = from->outer)
            if (const PrefixTree* items = from->items->step(n - from->begin, c, text)) {
                Near* kept = put(arena, Near{nullptr, items, from->begin, from->depth});
                *to = kept;
                to = &kept->outer;
            }
    }
};

}  // namespace wfsa
