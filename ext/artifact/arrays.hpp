// Named int32 arrays, and reading them without trust: every value is checked against what it indexes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "errors.hpp"

namespace wfsa {

using std::vector;

struct Arrays {
    std::map<std::string, vector<int32_t>> of;

    const vector<int32_t>& get(const std::string& name) const {
        auto got = of.find(name);
        if (got == of.end()) throw Damaged("array '" + name + "' is missing");
        return got->second;
    }
    // n lists, the i-th of which is rows(i), as a CSR pair "name_indptr", "name".
    template <class Rows> void put_rows(const std::string& name, size_t n, const Rows& rows) {
        vector<int32_t>&indptr = of[name + "_indptr"], &flat = of[name];
        indptr.assign(1, 0);
        for (size_t i = 0; i < n; ++i) {
            const auto& row = rows(i);
            flat.insert(flat.end(), row.begin(), row.end());
            indptr.push_back(int32_t(flat.size()));
        }
    }
    void put_rows(const std::string& name, const vector<vector<int32_t>>& rows) {
        put_rows(name, rows.size(), [&](size_t i) -> const vector<int32_t>& { return rows[i]; });
    }
};

class Unpacker {
  public:
    explicit Unpacker(const Arrays& a) : a_(a) {}
    static void check(bool ok, const char* before, const std::string& name, const char* after) {
        if (!ok) throw Damaged(before + name + after);
    }
    const vector<int32_t>& get(const std::string& name) const { return a_.get(name); }
    const vector<int32_t>& values(const std::string& name, int64_t lo, int64_t hi) const {  // lo <= x < hi
        const vector<int32_t>& v = a_.get(name);
        for (int32_t x : v) check(x >= lo && x < hi, "a value of '", name, "' is out of range");
        return v;
    }
    const vector<int32_t>& values(const std::string& name, int64_t lo, int64_t hi, size_t n) const {
        const vector<int32_t>& v = values(name, lo, hi);
        check_size(v.size() == n, name, v.size(), " values, not ", n);
        return v;
    }
    const vector<int32_t>& indptr(const std::string& name, size_t total) const {
        const vector<int32_t>& v = a_.get(name);
        check(!v.empty() && v.front() == 0 && size_t(v.back()) == total && std::is_sorted(v.begin(), v.end()),
              "row pointers '", name, "' do not fit");
        return v;
    }
    vector<vector<int32_t>> rows(const std::string& name, int64_t lo, int64_t hi) const {
        const vector<int32_t>& flat = values(name, lo, hi);
        const vector<int32_t>& at = indptr(name + "_indptr", flat.size());
        vector<vector<int32_t>> out;
        for (size_t i = 0; i + 1 < at.size(); ++i) out.emplace_back(flat.begin() + at[i], flat.begin() + at[i + 1]);
        return out;
    }
    vector<vector<int32_t>> rows(const std::string& name, int64_t lo, int64_t hi, size_t n) const {
        vector<vector<int32_t>> out = rows(name, lo, hi);
        check_size(out.size() == n, name, out.size(), " rows, not ", n);
        return out;
    }

  private:
    const Arrays& a_;
    static void check_size(bool ok, const std::string& name, size_t got, const char* not_so_many, size_t wanted) {
        if (ok) return;
        throw Damaged("array '" + name + "' has " + std::to_string(got) + not_so_many + std::to_string(wanted));
    }
};

}  // namespace wfsa
