// The normal form of a JSON scalar, byte by byte as it is written: equal scalars have equal ones, whatever their spelling,
// and no other ones do.
//
//   string   "   and its characters in UTF-8
//   number   + or -   digits from the first to the last that is not 0   e   exponent of the last digit;  zero is 0
//            a run of zeros between digits is 0, how many, and a point
//   word     as it is written
//
// Bytes are put as soon as they are certain: a zero is not before a digit behind it, a sign not before a digit that is
// not 0.  So all spellings of a value have gone the same way as far as they have gone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "json/string_units.hpp"

namespace wfsa {

// By value: 10, 1e1 and 10.0 are one number.
class NumberUnits {
  public:
    template <class F> void push(char c, const F& put) {
        if (c == 'e' || c == 'E') {
            in_exponent_ = true;
        } else if (in_exponent_) {
            if (c == '-') down_ = true;
            else if (c != '+') written_ = std::min<int64_t>(written_ * 10 + (c - '0'), int64_t(1) << 50);
        } else if (c == '-') {
            minus_ = true;
        } else if (c == '.') {
            point_ = true;
        } else {
            place_ -= point_;
            if (c == '0') {
                ++zeros_;
                return;
            }
            if (!any_) put(minus_ ? '-' : '+');
            else if (zeros_) put_all("0" + std::to_string(zeros_) + '.', put);
            zeros_ = 0;
            any_ = true;
            put(c);
        }
    }
    template <class F> void end(const F& put) const {
        if (!any_) return put('0');
        put_all('e' + std::to_string(place_ + zeros_ + (down_ ? -written_ : written_)), put);
    }
    // Is it in its fraction, where one zero more changes the value only if another digit follows?
    bool in_fraction() const { return point_ && !in_exponent_; }
    // Append what decides how the normal form goes on; `at_any_place`: wherever the next digit stands.
    void put_key(std::vector<int64_t>& out, bool at_any_place) const {
        out.push_back(int64_t(minus_) | point_ << 1 | in_exponent_ << 2 | down_ << 3 | any_ << 4 | at_any_place << 5);
        const bool stays = !any_ && in_exponent_;  // zero, whatever the exponent
        const bool counts = !stays && !at_any_place;
        out.insert(out.end(), {counts ? place_ : 0, counts && any_ ? zeros_ : 0, counts ? written_ : 0});
    }

  private:
    int64_t written_ = 0;            // the exponent as it is written, without its sign
    int32_t place_ = 0, zeros_ = 0;  // minus the digits behind the point; zeros behind the last other digit
    bool minus_ = false, point_ = false, in_exponent_ = false, down_ = false, any_ = false;

    template <class F> static void put_all(const std::string& bytes, const F& put) {
        for (const char c : bytes) put(c);
    }
};

// Of the scalar that is being written.  put(byte) takes the bytes of its normal form.
class NormalScalar {
  public:
    NormalScalar() : kind_(kWord), string_() {}
    template <class F> NormalScalar(char first, const F& put) : NormalScalar() {
        if (first == '"') {
            kind_ = kString;
            put(first);
            return;
        }
        if (first == '-' || (first >= '0' && first <= '9')) {
            kind_ = kNumber;
            new (&number_) NumberUnits();
        }
        push(first, put);
    }
    template <class F> void push(char c, const F& put) {
        if (kind_ == kString) string_.push(c, put);
        else if (kind_ == kNumber) number_.push(c, put);
        else put(c);
    }
    // No more is to come.
    template <class F> void end(const F& put) const {
        if (kind_ == kNumber) return number_.end(put);
        if (kind_ == kWord) return;
        StringUnits last = string_;
        last.end(put);
    }

    bool is_plain_string() const { return kind_ == kString && string_.is_plain(); }
    const NumberUnits* number() const { return kind_ == kNumber ? &number_ : nullptr; }
    void put_key(std::vector<int64_t>& out, bool at_any_place) const {
        out.push_back(kind_);
        if (kind_ == kNumber) number_.put_key(out, at_any_place);
        if (kind_ == kString) string_.put_key(out);
    }

  private:
    enum Kind : uint8_t { kString, kNumber, kWord };
    Kind kind_;
    union {
        StringUnits string_;
        NumberUnits number_;
    };
};

}  // namespace wfsa
