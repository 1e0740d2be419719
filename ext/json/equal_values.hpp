// Are two JSON texts the same value?  As JSON Schema has it: numbers by value, objects without order, strings by their
// characters; of a name that an object has twice the last one counts.
//
// Every value gets a number, equal ones the same: a scalar by its normal form, an array by the numbers of its items, an
// object by the sorted pairs of its members.  So nested values are never written out again, and what a model nested to
// any depth costs neither the processor's stack nor more than its length (times the logarithm of an object's size).
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/string_units.hpp"

namespace wfsa {

class EqualValues {
  public:
    // Both texts are complete values.
    static bool test(const char* a, size_t n_a, const char* b, size_t n_b) {
        if (n_a == n_b && std::memcmp(a, b, n_a) == 0) return true;
        EqualValues numbers;
        return numbers.of(a, a + n_a) == numbers.of(b, b + n_b);
    }

  private:
    struct Open {
        bool array;
        size_t from;  // of its items, or its names and values in turn, in values_
    };
    std::unordered_map<std::string, int32_t> numbers_;  // by normal form
    std::vector<int32_t> values_;
    std::vector<Open> open_;
    std::string key_;

    void add() { values_.push_back(numbers_.emplace(key_, int32_t(numbers_.size())).first->second); }

    int32_t of(const char* p, const char* end) {
        values_.clear();
        open_.clear();
        while (p < end) {
            const char c = *p;
            if (c == '"') {
                p = string(p + 1, end);
            } else if (c == '[' || c == '{') {
                open_.push_back({c == '[', values_.size()});
                ++p;
            } else if (c == ']' || c == '}') {
                if (!open_.empty()) close();
                ++p;
            } else if (is_between(c)) {
                ++p;
            } else {
                const char* from = p;
                while (p < end && !is_between(*p) && *p != ']' && *p != '}') ++p;
                if (*from == '-' || (*from >= '0' && *from <= '9')) number(from, p);
                else key_.assign(from, p);
                add();
            }
        }
        return values_.empty() ? -1 : values_.back();
    }
    static bool is_between(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',' || c == ':'; }

    void close() {
        const Open at = open_.back();
        open_.pop_back();
        std::vector<std::pair<int32_t, int32_t>> members;
        if (at.array) {
            key_ = "[";
            put(values_.data() + at.from, values_.size() - at.from);
        } else {
            key_ = "{";
            for (size_t i = at.from; i + 1 < values_.size(); i += 2) members.push_back({values_[i], values_[i + 1]});
            std::stable_sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
            for (size_t i = 0; i < members.size(); ++i)
                if (i + 1 == members.size() || members[i].first != members[i + 1].first) {
                    put(&members[i].first, 1);
                    put(&members[i].second, 1);
                }
        }
        values_.resize(at.from);
        add();
    }
    void put(const int32_t* p, size_t n) { key_.append(reinterpret_cast<const char*>(p), n * sizeof(int32_t)); }

    const char* string(const char* p, const char* end) {
        key_ = "\"";
        StringUnits units;
        const auto put = [&](char c) { key_ += c; };
        for (bool escaped = false; p < end && (*p != '"' || escaped); ++p) {
            escaped = *p == '\\' && !escaped;
            units.push(*p, put);
        }
        units.end(put);
        add();
        return p < end ? p + 1 : p;
    }
    // Sign, digits without zeros on either side, exponent of the last digit.
    void number(const char* p, const char* end) {
        const bool minus = *p == '-';
        key_ = minus ? "-" : "";
        if (minus) ++p;
        int64_t exponent = 0;
        std::string digits;
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
        if (digits.empty()) key_ = "0";
        else key_ += digits + "e" + std::to_string(exponent);
    }
};

}  // namespace wfsa
