// Arrays whose items must differ (uniqueItems over values of which there are too many for a grammar).
//
// "No two items are equal" is no context-free property, so the grammar describes the array without it, and the items are
// compared as they are written.  JSON's structure does not depend on the schema: whatever the parser's stacks are, a
// text has the same arrays and the same items.  So one scanner beside the parser knows them:
//
//   frame        an array or object that is open; an array's frame has its items so far
//   repeats      would the item that ends here equal an earlier one of its array?
//   may_repeat   may the current item of an open array still become an earlier one, as far as is seen at once?
//
// The parser asks when it reduces to a nonterminal of Grammar.distinct, which is what an item's end is to a stack that
// cares, and drops the stack.  Stacks that do not care (another branch of anyOf) live on.  A mask is made as if nothing
// had to differ; then the tokens that could end an item that repeats, or leave nothing but such ends, are tried.
//
// Equality is that of JSON Schema: numbers by value, objects without order, strings by characters.  Every value has a
// number, equal ones the same (value_numbers.hpp), so comparing two costs nothing, and what is written of an item is seen
// in its normal form: spellings do not count.
//
// may_repeat is never false where an item may still repeat.  Where it is true, every part of the item so far has been
// seen somewhere in the text (a scalar that begins so, an array that begins so, a member), though maybe in no one item of
// that array; who needs to know looks at what can follow (companions/distinct_mask.hpp).
//
// Frames and items are immutable and shared, so a scanner is a few words and copying it is a checkpoint.
// Cost: a byte costs the same wherever it stands, whatever the depth, the items before and their length, up to the
// logarithm of the values.
#pragma once
#include "json/value_numbers.hpp"
#include "json/white_space.hpp"

namespace wfsa {

struct Frame {
    const Frame* outer;
    const KeyTree* items = nullptr;  // an array's, by number
    ValueParts parts;                // of its own value
    bool array, in_array;            // is it one; is it in one (then it needs a number)
    bool within;                     // may an item that it is a part of repeat, as far as is seen outside of it?

    bool may_repeat() const { return (array && items) || (within && parts.seen); }
};

class JsonScan {
  public:
    const Frame* top = nullptr;
    bool in_string = false, escaped = false;
    bool ended = false;      // a value has just ended, by its own last byte
    bool in_scalar = false;  // in a number or literal

    void push(uint8_t byte, Arena& arena) {
        const char c = char(byte);
        if (in_string) return in_text(c, arena);
        if (is_blank(c)) return end_scalar(arena);
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
                end_scalar(arena);
                if (top) next_part(arena);
                ended = false;
                return;
            case ']': case '}':
                end_scalar(arena);
                if (top) close(arena);
                ended = true;
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
    void settle(Arena& arena) { values_.settle(arena); }
    bool in_array() const { return top && top->array; }
    bool in_arrays() const { return top && (top->array || top->in_array); }
    bool may_end_item() const { return in_array() && !in_string && (ended || in_scalar); }
    // Does the item that would end here equal an earlier one of its array?
    bool repeats() const {
        if (!may_end_item() || !top->items) return false;
        const uint32_t number = in_scalar ? values_.find_scalar() : ended_;
        return number != ValueNumbers::kNone && KeyTree::find(top->items, number);
    }
    // May an item that is being written, of any open array, become equal to an earlier one?
    bool may_repeat() const {
        if (!top || ((in_string || in_scalar) && in_arrays() && !values_.begins_like_another())) return false;
        if (ended && top->array) return top->within && top->parts.seen && values_.has_list(top->parts, ended_);
        return top->may_repeat();
    }
    // Can no item repeat behind one more byte?  False if that is not seen at once.
    bool leaves(uint8_t c) const { return in_string && c != '"' && c != '\\' && in_arrays() && values_.leaves(c); }

    // Could what follows be bound to repeat an item?  `may_run_out`: can an array have had all values of a position?
    // If not, an item that has not begun is not bound to repeat, unless it is part of one.
    bool is_close(bool may_run_out) const {
        if (!may_run_out && in_array() && !in_string && !in_scalar && !ended) return top->within && top->parts.seen;
        return may_repeat() || repeats();
    }
    // The same; and where values can run out, the end of an item rules nothing out, nor does white space behind it.
    bool may_be_bound(bool may_run_out) const { return (may_run_out && may_end_item()) || is_close(may_run_out); }

    // The number being written, an item or a part of one, if one is.
    const NumberUnits* number() const { return in_scalar && in_arrays() ? values_.number() : nullptr; }
    // Append what decides what may repeat: where it is equal, so is all that can follow.  What values an open array
    // has, and which values have numbers, is told by where they lie.
    void put_key(std::vector<int64_t>& out, bool at_any_place) const {
        out.push_back(int64_t(in_string) | escaped << 1 | ended << 2 | in_scalar << 3);
        out.push_back(ended ? ended_ : 0);
        out.push_back(reinterpret_cast<intptr_t>(top));
        if (top) {
            out.back() = reinterpret_cast<intptr_t>(top->outer);
            out.push_back(reinterpret_cast<intptr_t>(top->items));
            out.insert(out.end(), {top->parts.list, top->parts.name, top->parts.object(), top->parts.seen, top->array});
        }
        values_.put_key(out);
        if ((in_string || in_scalar) && in_arrays()) values_.put_scalar_key(out, at_any_place);
    }

  private:
    ValueNumbers values_;
    uint32_t ended_ = 0;  // the value that ended last

    static const Frame* put(Arena& arena, const Frame& frame) { return new (arena.bytes(sizeof(Frame))) Frame(frame); }
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
        f.array = array;
        f.in_array = in_arrays();
        f.within = top && top->may_repeat();
        top = put(arena, f);
    }
    // A comma.
    void next_part(Arena& arena) {
        Frame f = *top;
        if (f.array && ended) f.items = KeyTree::add(f.items, ended_, 0, arena);
        add_part(f, arena);
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
        values_.add_name(f.parts, ended_);
        top = put(arena, f);
    }
    // A bracket that closes.
    void close(Arena& arena) {
        Frame f = *top;
        add_part(f, arena);
        ended_ = f.array ? f.parts.list : f.parts.object();
        top = f.outer;
    }
};

}  // namespace wfsa
