// Arrays whose items must differ (uniqueItems over values of which there are too many for a grammar).
//
// "No two items are equal" is no context-free property, so the grammar describes the array without it, and the items are
// compared as they are written.  JSON's structure does not depend on the schema: whatever the parser's stacks are, a
// text has the same arrays and the same items.  So one scanner beside the parser knows them:
//
//   frame     an array or object that is open; an array's frame has its items so far, by number and by their bytes
//   repeats   would the item that ends here equal an earlier one of its array?
//   near      the earlier items that begin with what is written of the current one, of any open array
//
// The parser asks when it reduces to a nonterminal of Grammar.distinct, which is what an item's end is to a stack that
// cares, and drops the stack.  Stacks that do not care (another branch of anyOf) live on.  A mask is made as if nothing
// had to differ; then the tokens that could end an item that repeats, or leave nothing but such ends, are tried.
//
// Equality is that of JSON Schema: numbers by value, objects without order, strings by characters.  Every value has a
// number, equal ones the same (value_numbers.hpp), so comparing two costs nothing.
// Frames and items are immutable and shared, so a scanner is a few words and copying it is a checkpoint.
//
// Cost: a byte costs the same wherever it stands, whatever the depth, the items before and their length, up to the
// logarithm of the values.  `near` has few entries: an array that is near has an earlier item at least as long as what
// is written of the current one, which contains the earlier and the current item of the next array that is near, so
// what is written doubles from one to the next, and n bytes have at most log2(n) of them.
#pragma once
#include "json/value_numbers.hpp"

namespace wfsa {

struct Frame {
    const Frame* outer;
    const KeyTree* items = nullptr;     // an array's, by number
    const PrefixTree* texts = nullptr;  // ... by their bytes
    ValueParts parts;                   // of its own value
    int32_t begin;                      // of the current item or member in the text
    int32_t depth;
    bool array, in_array;               // is it one; is it in one (then it needs a number)
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
    SharedText text;             // without white space between values
    bool in_string = false, escaped = false;
    bool ended = false;          // a value has just ended, by its own last byte
    bool in_scalar = false;      // in a number or literal

    void push(uint8_t byte, Arena& arena) {
        const char c = char(byte);
        if (!in_string && is_blank(c)) return end_scalar(arena);
        if (!in_string && (c == ',' || c == ']' || c == '}') && top) {
            end_scalar(arena);
            if (c == ',') next_part(arena);
            else close(arena);
        }
        if (near) follow(byte, arena);
        text.push(byte, arena);
        if (in_string) return in_text(c, arena);
        switch (c) {
            case '"':
                in_string = true;
                ended = false;
                if (in_arrays()) values_.begin_scalar(c, arena);
                return;
            case '[': case '{':
                open(c == '[', arena);
                ended = in_scalar = false;
                return;
            case ',':
                if (top && top->texts) near = put(arena, Near{near, top->texts, text.size(), top->depth});
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
                if (in_arrays()) {
                    if (in_scalar) values_.push_scalar(c, arena);
                    else values_.begin_scalar(c, arena);
                }
                in_scalar = true;
                ended = false;
                return;
        }
    }
    bool in_array() const { return top && top->array; }
    bool in_arrays() const { return top && (top->array || top->in_array); }
    bool may_end_item() const { return in_array() && !in_string && (ended || in_scalar); }
    // Does the item that would end here equal an earlier one of its array?
    bool repeats() const {
        if (!may_end_item() || !top->items) return false;
        const uint32_t number = in_scalar ? values_.find_scalar() : ended_;
        return number != ValueNumbers::kNone && KeyTree::find(top->items, number);
    }
    // Could what follows be bound to repeat an item?  Only if what is written of an item begins an earlier one; or, if
    // the values that items can have may run out, if an item has just ended and another one may have to come.
    bool is_close(bool may_run_out) const { return near || (may_run_out && may_end_item()); }
    // Is the string being written, an item, none of the earlier ones, whatever it goes on with?
    bool is_new() const { return in_string && in_array() && values_.is_new_scalar(); }

  private:
    ValueNumbers values_;
    const KeyTree* parted_ = nullptr;  // by depth: how many bytes the current item of that array shared with an earlier one
    uint32_t ended_ = 0;               // the value that ended last

    static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
    template <class T> static T* put(Arena& arena, const T& value) { return new (arena.bytes(sizeof(T))) T(value); }
    void end_scalar(Arena& arena) {
        if (!in_scalar) return;
        if (in_arrays()) ended_ = values_.end_scalar(arena);
        in_scalar = false;
        ended = true;
    }
    void in_text(char c, Arena& arena) {
        if (c == '"' && !escaped) {
            in_string = false;
            ended = true;
            if (in_arrays()) ended_ = values_.end_scalar(arena);
            return;
        }
        if (in_arrays()) values_.push_scalar(c, arena);
        escaped = c == '\\' && !escaped;
    }
    void open(bool array, Arena& arena) {
        Frame f{};
        f.outer = top;
        f.begin = text.size();
        f.depth = top ? top->depth + 1 : 0;
        f.array = array;
        f.in_array = in_arrays();
        top = put(arena, f);
    }
    // A comma.
    void next_part(Arena& arena) {
        Frame f = *top;
        if (f.array) {
            const int32_t shared = leave_item();
            if (ended) {
                f.items = KeyTree::add(f.items, ended_, 0, arena);
                f.texts = PrefixTree::add(f.texts, f.begin, text.size(), shared, text, arena);
            }
        }
        add_part(f, arena);
        f.begin = text.size() + 1;
        top = put(arena, f);
    }
    // The item or member that has ended.
    void add_part(Frame& f, Arena& arena) {
        if (!f.in_array || !ended) return;
        if (f.array) values_.add_item(f.parts, ended_, arena);
        else values_.add_member(f.parts, ended_, arena);
    }
    void end_name(Arena& arena) {
        if (!top->in_array || !ended) return;
        Frame f = *top;
        f.parts.name = ended_;
        top = put(arena, f);
    }
    // A bracket that closes.
    void close(Arena& arena) {
        Frame f = *top;
        if (f.array) leave_item();
        add_part(f, arena);
        ended_ = f.array ? f.parts.list : f.parts.object();
        top = f.outer;
    }
    // The current item has ended: how many of its bytes are how an earlier one begins?
    int32_t leave_item() {
        if (near && near->depth == top->depth) {
            const int32_t all = text.size() - near->begin;
            near = near->outer;
            return all;
        }
        const KeyTree* parted = top->texts ? KeyTree::find(parted_, uint64_t(top->depth)) : nullptr;
        return parted ? int32_t(parted->value) : 0;
    }
    // One byte along the items that are near.
    void follow(uint8_t c, Arena& arena) {
        const Near* from = near;
        for (const Near** to = &near; (*to = nullptr, from); from = from->outer) {
            const int32_t k = text.size() - from->begin;
            if (const PrefixTree* items = from->items->step(k, c, text)) {
                Near* kept = put(arena, Near{nullptr, items, from->begin, from->depth});
                *to = kept;
                to = &kept->outer;
            } else {
                parted_ = KeyTree::add(parted_, uint64_t(from->depth), uint32_t(k), arena);
            }
        }
    }
};

}  // namespace wfsa
