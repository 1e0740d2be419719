// A text that is followed as far as its next byte is known: forced, or after the white space of the text's layout.
#pragma once
#include <memory>
#include <string>

#include "drafts/cut.hpp"
#include "drafts/layout.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

constexpr size_t kBytesPerToken = 16;  // forced bytes that are read for a token of a draft

struct ForcedText {
    std::unique_ptr<Decoder> probe;  // after `bytes`
    Layout layout;
    std::string bytes;

    ForcedText(std::unique_ptr<Decoder> at, const Layout& l) : probe(std::move(at)), layout(l) {}
    ForcedText fork() const {
        ForcedText out(probe->fork(), layout);
        out.bytes = bytes;
        return out;
    }
    // Appends bytes as long as only one can come, at most `most`.
    void force(size_t most, const TokenCutter& cutter) {
        while (bytes.size() < most) {
            bool tokens = false;
            const ByteBits all = probe->following(tokens);
            if (tokens) return;
            if (const int32_t byte = all.only(); byte >= 0) {
                if (!push(uint8_t(byte))) return;
                continue;
            }
            if (layout.in_string() || !all.intersects(blanks())) return;
            const ByteBits others = all.without(blanks());
            const int32_t byte = others.only();
            // A blank before a number is a token of its own if numbers are pieces.
            if (byte < 0 && !cutter.space_joins_digits() && is_numeric(others)) write_blanks('0');
            if (byte < 0 || !follow(uint8_t(byte))) return;
        }
    }
    // Returns the bytes that can come next, without white space where it is free.
    ByteBits ways() const {
        bool tokens = false;
        const ByteBits all = probe->following(tokens);
        return layout.in_string() ? all : all.without(blanks());
    }
    // Appends a byte, after white space where the layout has it and it is free.
    bool follow(uint8_t byte) {
        write_blanks(byte);
        return push(byte);
    }
    // Whether nothing but the end can come, apart from white space.
    bool ends() const {
        bool tokens = false;
        return probe->accepting() && !probe->following(tokens).without(blanks()).any();
    }

  private:
    static ByteBits blanks() {
        ByteBits out;
        for (const uint8_t c : {' ', '\t', '\n', '\r'}) out.set(c);
        return out;
    }
    static bool is_numeric(const ByteBits& bytes) {
        ByteBits digits = ByteBits::range('0', '9');
        digits.set('-');
        return bytes.any() && bytes.subset_of(digits);
    }
    void write_blanks(uint8_t next) {
        if (layout.in_string()) return;
        for (const char c : layout.expected(next)) if (!push(uint8_t(c))) return;
    }
    bool push(uint8_t byte) {
        if (!probe->commit_bytes(&byte, 1)) return false;
        layout.read(byte);
        bytes.push_back(char(byte));
        return true;
    }
};

}  // namespace wfsa
