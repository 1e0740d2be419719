// Hashes of JSON values, byte by byte: equal values have equal ones, whatever their spelling.
//
// A scalar's hash is known at every byte, so an item of a million digits or characters costs as much per byte as a short
// one.  A nested value's is put together from those of its parts (distinct.hpp), an object's as a sum, which has no
// order.  Values with one hash are compared (equal_values.hpp): a hash only says where to look.
#pragma once
#include <algorithm>
#include <cstdint>
#include <new>

#include "json/string_units.hpp"

namespace wfsa {

inline uint64_t mix_hash(uint64_t a, uint64_t b) {
    a = (a ^ (b + 0x9E3779B97F4A7C15ull)) * 0xff51afd7ed558ccdull;
    a = (a ^ a >> 32) * 0xc4ceb9fe1a85ec53ull;
    return a ^ a >> 29;
}

class StringHash {
  public:
    void push(char c) { units_.push(c, Put{hash_}); }
    uint64_t end() const {
        StringHash last = *this;
        last.units_.end(Put{last.hash_});
        return mix_hash(last.hash_, '"');
    }

  private:
    struct Put {
        uint64_t& hash;
        void operator()(char c) const { hash = mix_hash(hash, uint8_t(c)); }
    };
    StringUnits units_;
    uint64_t hash_ = 0;
};

// By value: 10, 1e1 and 10.0 are one number.  Digits up to the last that is not 0 are read as a number to a fixed base,
// modulo 2^64; then come the sign and the exponent of that digit.
class NumberHash {
  public:
    void push(char c) {
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
                shift_ *= kBase;
            } else {
                digits_ = digits_ * shift_ * kBase + uint64_t(c);
                zeros_ = 0;
                shift_ = 1;
                any_ = true;
            }
        }
    }
    uint64_t end() const {
        if (!any_) return mix_hash(0, '0');
        return mix_hash(mix_hash(digits_, uint64_t(place_ + zeros_ + (down_ ? -written_ : written_))), minus_);
    }

  private:
    static constexpr uint64_t kBase = 0xd6e8feb86659fd93ull;
    uint64_t digits_ = 0, shift_ = 1;  // kBase to the zeros_
    int64_t written_ = 0;              // the exponent as it is written, without its sign
    int32_t place_ = 0, zeros_ = 0;    // minus the digits behind the point; zeros behind the last other digit
    bool minus_ = false, point_ = false, in_exponent_ = false, down_ = false, any_ = false;
};

class WordHash {  // true, false, null
  public:
    void push(char c) { hash_ = mix_hash(hash_, uint8_t(c)); }
    uint64_t end() const { return mix_hash(hash_, 'w'); }

  private:
    uint64_t hash_ = 0;
};

// Of the scalar that is being written.
class ScalarHash {
  public:
    ScalarHash() : word_() {}
    explicit ScalarHash(char first) : kind_(first == '"' ? kString : first == '-' || (first >= '0' && first <= '9') ? kNumber : kWord) {
        if (kind_ == kString) new (&string_) StringHash();
        else if (kind_ == kNumber) new (&number_) NumberHash();
        else new (&word_) WordHash();
        if (kind_ != kString) push(first);  // the quote is none of the string
    }
    void push(char c) {
        if (kind_ == kString) string_.push(c);
        else if (kind_ == kNumber) number_.push(c);
        else word_.push(c);
    }
    uint64_t end() const { return kind_ == kString ? string_.end() : kind_ == kNumber ? number_.end() : word_.end(); }

  private:
    enum Kind : uint8_t { kString, kNumber, kWord };
    Kind kind_ = kWord;
    union {
        StringHash string_;
        NumberHash number_;
        WordHash word_;
    };
};

}  // namespace wfsa
