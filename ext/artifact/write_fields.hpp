// Writes the fields of tables (containers/fields.hpp) as named int32 arrays.
//
//   numbers                     "head", one behind the other
//   lists of numbers            an array; flags likewise
//   lists of lists, interners   a CSR pair "name_indptr", "name"
//   lists of structs            a column for each field of the struct, "name.field"; a field that is a list is a CSR pair
//   words of 64 bits            two numbers each, low half first
//
// A table within another one has its name and a dot before the names of its fields.
#pragma once
#include <array>
#include <memory>

#include "artifact/arrays.hpp"
#include "containers/fields.hpp"
#include "containers/interner.hpp"

namespace wfsa {

inline void put_words(vector<int32_t>& to, const uint64_t* words, size_t n) {
    for (size_t i = 0; i < n; ++i) to.insert(to.end(), {int32_t(words[i]), int32_t(words[i] >> 32)});
}

// Rows of structs, column by column.
class ColumnWriter : public Fields<ColumnWriter> {
  public:
    template <class Row> ColumnWriter(Arrays& out, const std::string& name, const Row& row) : out_(out), name_(name + ".") {
        Row::fields(row, *this);
        declared_ = true;
    }
    template <class Row> void add(const Row& row) {
        at_ = 0;
        Row::fields(row, *this);
    }
    template <class T, class... Limits> void kept(const char* name, const T& x, const Limits&...) {
        if (!declared_) return declare(name, x);
        put(columns_[at_++], x);
    }
    template <class... Flag> void flags(const char* name, const Flag&... flag) {
        int32_t bits = 0, n = 0;
        ((bits |= int32_t(flag) << n++), ...);
        kept(name, bits);
    }

  private:
    struct Column {
        vector<int32_t>*flat, *indptr;
        std::shared_ptr<ColumnWriter> structs;  // of a list of structs
        int32_t n = 0;                          // of these, so far
    };
    Arrays& out_;
    const std::string name_;
    vector<Column> columns_;
    size_t at_ = 0;
    bool declared_ = false;

    template <class T> void declare(const char* name, const T&) { columns_.push_back({&out_.of[name_ + name], nullptr, nullptr}); }
    template <class T> void declare(const char* name, const Span<T>&) { declare_list<T>(name); }
    template <class T> void declare(const char* name, const vector<T>&) { declare_list<T>(name); }
    template <class T> void declare_list(const char* name) {
        Column column{nullptr, &out_.of[name_ + name + "_indptr"], nullptr};
        column.indptr->push_back(0);
        if constexpr (std::is_integral<T>::value) column.flat = &out_.of[name_ + name];
        else column.structs = std::make_shared<ColumnWriter>(out_, name_ + name, T());
        columns_.push_back(std::move(column));
    }
    template <class T> static void put(Column& to, const T& x) {
        if constexpr (std::is_same<T, uint64_t>::value) put_words(*to.flat, &x, 1);
        else to.flat->push_back(int32_t(x));
    }
    template <size_t N> static void put(Column& to, const std::array<uint64_t, N>& x) { put_words(*to.flat, x.data(), N); }
    template <class T> static void put(Column& to, const Span<T>& x) { put_list<T>(to, x.data, x.size()); }
    template <class T> static void put(Column& to, const vector<T>& x) { put_list<T>(to, x.data(), x.size()); }
    template <class T> static void put_list(Column& to, const T* x, size_t n) {
        if constexpr (std::is_same<T, uint64_t>::value) put_words(*to.flat, x, n);
        else if constexpr (std::is_integral<T>::value) to.flat->insert(to.flat->end(), x, x + n);
        else for (size_t i = 0; i < n; ++i) to.structs->add(x[i]);
        to.n += int32_t(n);
        to.indptr->push_back(to.n);
    }
};

template <class Visitor> class FieldWriterOf : public Fields<Visitor> {
  public:
    explicit FieldWriterOf(Arrays& out) : out_(out) {}

    template <class T, class... Limits> void kept(const char* name, const T& x, const Limits&...) { put(prefix_ + name, x); }
    template <class T, class... More> void table(const char* name, const T& x, const More&... more) {
        const std::string outer = prefix_;
        prefix_ += std::string(name) + ".";
        T::fields(x, this->self(), more...);
        prefix_ = outer;
    }
    template <class Row, class Make, class Put> void rows(const char* name, const Row& row, const Make& make, const Put&) {
        ColumnWriter columns(out_, prefix_ + name, row);
        for (const Row& x : make()) columns.add(x);
    }

  private:
    Arrays& out_;
    std::string prefix_;

    template <class T> void put(const std::string& name, const T& x) {
        if constexpr (std::is_array<T>::value) out_.of[name].assign(std::begin(x), std::end(x));
        else out_.of["head"].push_back(int32_t(x));
    }
    template <class T> void put(const std::string& name, const vector<T>& x) {
        if constexpr (std::is_integral<T>::value) {
            out_.of[name].assign(x.begin(), x.end());
        } else {
            ColumnWriter columns(out_, name, T());
            for (const T& row : x) columns.add(row);
        }
    }
    void put(const std::string& name, const vector<vector<int32_t>>& x) { out_.put_rows(name, x); }
    void put(const std::string& name, const Interner& x) {
        out_.put_rows(name, size_t(x.size()), [&](size_t i) { return x[int32_t(i)]; });
    }
};

}  // namespace wfsa
