// What an object no longer needs, moved out of it, so that it is destroyed later, where nobody waits for it.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace wfsa {

class Retired {
  public:
    // The container is empty afterwards.
    template <class T> void take(T& container) {
        auto to = std::make_shared<T>();
        std::swap(*to, container);
        parts_.push_back(std::move(to));
    }

  private:
    std::vector<std::shared_ptr<void>> parts_;
};

// A table lists its fields once, in a static function `fields(self, visitor)`; whatever is done to all of them is a visitor.
//
//   visitor.kept(name, x, limits...)    in the artifact; what its values may be is for the reader (artifact/read_fields.hpp)
//   visitor.made(x, ...)                made again from the others when the table is loaded (`restored` of the table)
//   visitor.expansion(x, ...)           needed by expansion only: let go once nothing is left to expand
//   visitor.given(name, x, ...)         as `kept` or `table`, and said by the grammar: fresh tables begin with a copy
//   visitor.copied(x, ...)              likewise, but not in the artifact
//   visitor.table(name, x, ...)         a table within this one; what follows is passed to its `fields`
//   visitor.rows(name, row, make, put)  in the artifact, what is held in another form: make() gives structs with fields,
//                                       put(row) takes each of them when it is read; `row`: one with nothing in it
//   visitor.flags(name, x, ...)         bits of one number, of a struct
//   visitor.then(x, act)                act(x), once what stands before is read
//   visitor.part(name)                  under which name memory() counts what follows
//
// A visitor ignores what it does not override. Tables are visited const or not; `self` is of either kind.

// What values may be when they are read, and where a list has n rows: one behind the other in so many values.
struct Within {
    int64_t lo = 0, hi = 0;  // lo <= x < hi
};
struct Pointers {
    size_t n;
};

struct AnyVisitor;
template <class T, class = void> struct HasFields : std::false_type {};
template <class T> struct HasFields<T, std::void_t<decltype(&T::template fields<T, AnyVisitor>)>> : std::true_type {};

template <class Visitor> class Fields {
  public:
    static constexpr Within within{};  // for structs in lists, whose reader has one
    void part(const char*) {}
    template <class... Flag> void flags(const char*, Flag&...) {}
    template <class T, class... Limits> void kept(const char*, T&, const Limits&...) {}
    size_t n_rows() const { return 0; }  // likewise
    template <class Row, class Make, class Put> void rows(const char*, const Row&, const Make&, const Put&) {}
    template <class T> void visit_made(T&) {}
    template <class T> void visit_expansion(T&) {}
    template <class... T> void made(T&... x) { (self().visit_made(x), ...); }
    template <class... T> void expansion(T&... x) { (self().visit_expansion(x), ...); }
    template <class T, class Act> void then(T&, const Act&) {}
    template <class... T> void shared(T&...) {}  // runtime/tables.hpp: what the vocabulary holds, in artifact/
    template <class T, class... Limits> void given(const char* name, T& x, const Limits&... limits) {
        if constexpr (HasFields<std::remove_const_t<T>>::value) self().table(name, x, limits...);
        else self().kept(name, x, limits...);
    }
    template <class... T> void copied(T&... x) { (self().visit_made(x), ...); }
    template <class T, class... More> void table(const char*, T& x, const More&... more) {
        std::remove_const_t<T>::fields(x, self(), more...);
    }

  protected:
    Visitor& self() { return static_cast<Visitor&>(*this); }
};

// Takes out what only expansion needs.
class Closer : public Fields<Closer> {
  public:
    explicit Closer(Retired& out) : out_(out) {}
    template <class T> void visit_expansion(T& x) { out_.take(x); }

  private:
    Retired& out_;
};

// Copies what the grammar says from one table to another one of its kind.
class Copier : public Fields<Copier> {
  public:
    template <class T, class... More> static void copy(const T& from, T& to, const More&... more) {
        Copier copier;
        T::fields(from, copier, more...);
        T::fields(to, copier, more...);
    }
    template <class T, class... Limits> void given(const char*, T& x, const Limits&...) { pass(x); }
    template <class... T> void copied(T&... x) { (pass(x), ...); }

  private:
    std::vector<const void*> at_;  // in the order in which both tables are visited
    size_t n_ = 0;

    template <class T> void pass(const T& x) { at_.push_back(&x); }  // of the first, which is const
    template <class T> std::enable_if_t<!std::is_const<T>::value> pass(T& x) { x = *static_cast<const T*>(at_[n_++]); }
    template <class T, size_t N> std::enable_if_t<!std::is_const<T>::value> pass(T (&x)[N]) {
        std::copy_n(*static_cast<const T (*)[N]>(at_[n_++]), N, x);
    }
};

}  // namespace wfsa
