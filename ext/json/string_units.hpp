// The characters of a JSON string, in UTF-8, from what is written between its quotes, byte by byte.
//
// "\u00e9" and "é" are one; a pair of escaped surrogates is one character, a lone one stands for itself.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace wfsa {

class StringUnits {
  public:
    // One byte more of the string; its characters go to `put`, byte by byte, as soon as they are certain.
    template <class F> void push(char c, const F& put) {
        if (n_hex_) {
            code_ = uint16_t(code_ << 4 | hex(c));
            if (--n_hex_ == 0) unit(code_, put);
        } else if (escaped_) {
            escaped_ = false;
            if (c == 'u') {
                n_hex_ = 4;
                return;
            }
            end(put);
            const char *from = "bfnrt", *to = "\b\f\n\r\t", *at = c ? std::strchr(from, c) : nullptr;
            put(at ? to[at - from] : c);
        } else if (c == '\\') {
            escaped_ = true;
        } else {
            end(put);
            put(c);
        }
    }
    // No more is to come.
    template <class F> void end(const F& put) {
        if (high_) utf8(high_, put);
        high_ = 0;
    }
    // Is a byte that escapes nothing the next of its characters?
    bool is_plain() const { return !n_hex_ && !escaped_ && !high_; }
    // Append what decides how the characters go on.
    void put_key(std::vector<int64_t>& out) const {
        out.push_back(int64_t(code_) << 32 | high_ << 16 | n_hex_ << 8 | escaped_);
    }

  private:
    uint16_t code_ = 0, high_ = 0;  // the escape being read; a surrogate that may be the first of a pair
    uint8_t n_hex_ = 0;             // digits of the escape to come
    bool escaped_ = false;          // behind a backslash

    static uint16_t hex(char c) { return uint16_t(c <= '9' ? c - '0' : (c | 32) - 'a' + 10) & 15; }
    template <class F> void unit(uint16_t x, const F& put) {
        if (high_ && x >= 0xdc00 && x < 0xe000) {
            const uint32_t both = 0x10000 + (uint32_t(high_ - 0xd800) << 10) + (x - 0xdc00u);
            high_ = 0;
            return utf8(both, put);
        }
        end(put);
        if (x >= 0xd800 && x < 0xdc00) high_ = x;
        else utf8(x, put);
    }
    template <class F> static void utf8(uint32_t c, const F& put) {
        if (c < 0x80) return put(char(c));
        if (c < 0x800) {
            put(char(0xc0 | c >> 6));
        } else {
            if (c < 0x10000) {
                put(char(0xe0 | c >> 12));
            } else {
                put(char(0xf0 | c >> 18));
                put(char(0x80 | (c >> 12 & 63)));
            }
            put(char(0x80 | (c >> 6 & 63)));
        }
        put(char(0x80 | (c & 63)));
    }
};

}  // namespace wfsa
