// A toy table, once as it was (OLDER) and once with one more field of every kind: tests/engine/test_fields.py.
// Prints what each visitor does to it. The field is named in `fields` and nowhere else.
#include <cstdio>

#include "artifact/read_fields.hpp"
#include "containers/heap_bytes.hpp"

using namespace wfsa;

struct FieldWriter : FieldWriterOf<FieldWriter> { using FieldWriterOf<FieldWriter>::FieldWriterOf; };
struct FieldReader : FieldReaderOf<FieldReader> { using FieldReaderOf<FieldReader>::FieldReaderOf; };

struct Pair {
    int32_t left = 0;
    vector<int32_t> rights;
    bool is_odd = false, is_big = false;
    template <class Self, class V> static void fields(Self& p, V& v) {
        v.kept("left", p.left, Within{0, 9});
        v.kept("rights", p.rights, v.within);
        v.flags("flags", p.is_odd, p.is_big);
    }
    void check() const { if (is_odd != bool(left % 2)) throw Damaged("a pair is odd or even at once"); }
};

struct Toy {
    int32_t n = 3;
    vector<int32_t> numbers{4, 5, 6};
    vector<Pair> pairs;
    Interner lists;
    vector<int32_t> sums;     // made again
    vector<int32_t> scratch;  // of expansion
#ifndef OLDER
    vector<uint8_t> colours{1, 0, 1};  // the new fields
    vector<vector<int32_t>> rows{{1}, {}, {2, 3}};
    vector<int64_t> more_scratch{7, 8};
#endif
    int32_t kinds = 2;  // said by the grammar

    template <class Self, class V> static void fields(Self& t, V& v) {
        v.part("toy");
        v.kept("n", t.n, Within{0, 100});
        v.kept("numbers", t.numbers, Within{0, 10}, size_t(t.n));
        v.kept("pairs", t.pairs, Within{0, t.n});
        v.kept("lists", t.lists, Within{0, t.n});
        v.made(t.sums);
        v.expansion(t.scratch);
#ifndef OLDER
        v.given("colours", t.colours, Within{0, 2}, size_t(t.n));
        v.kept("rows", t.rows, Within{0, 10}, size_t(t.n));
        v.expansion(t.more_scratch);
#endif
        v.given("kinds", t.kinds, Within{1, 3});
    }
    void restored() { for (int32_t x : numbers) sums.push_back(x + 1); }
};

struct House {
    Toy toy;
    template <class Self, class V> static void fields(Self& h, V& v) { v.table("toy", h.toy); }
};

static void show(const char* what, const Arrays& arrays) {
    for (const auto& [name, values] : arrays.of) {
        std::printf("%s %s:", what, name.c_str());
        for (int32_t x : values) std::printf(" %d", x);
        std::printf("\n");
    }
}

int main() {
    House house;
        house.toy.pairs = {{1, {0, 1, 2}, true, false}, {2, {2}, false, true}};
    house.toy.lists.intern(vector<int32_t>{0, 1, 2});
    house.toy.scratch = {1, 2, 3};
    house.toy.sums = {5, 6, 7};

    Arrays written;
    FieldWriter writer(written);
    House::fields(house, writer);
    show("written", written);

    House again;
    again.toy = Toy{0, {}, {}, {}, {}, {}};
    try {
        FieldReader reader(written);
        House::fields(again, reader);
        Arrays twice;
        FieldWriter rewriter(twice);
        House::fields(again, rewriter);
        std::printf("read again: %s, sums %d\n", twice.of == written.of ? "equal" : "different", again.toy.sums[2]);
    } catch (const Damaged& e) {
        std::printf("refused: %s\n", e.what());
    }
    for (auto& [name, values] : written.of)  // every number, one after the other, is out of range somewhere
        for (int32_t& x : values) {
            const int32_t before = x;
            x = 1 << 20;
            House other;
            other.toy = Toy{0, {}, {}, {}, {}, {}};
            try {
                FieldReader reader(written);
                House::fields(other, reader);
                std::printf("accepted: %s\n", name.c_str());
            } catch (const Damaged&) {
            }
            x = before;
        }

    Meter meter;
    House::fields(house, meter);
    std::printf("bytes: toy %lld, expansion %lld\n", (long long)meter.bytes["toy"], (long long)meter.bytes["expansion"]);
    House fresh;
    house.toy.kinds = 1;
#ifndef OLDER
    house.toy.colours = {0, 0, 0};
    fresh.toy.numbers = {};
#endif
    Copier::copy(house, fresh);
    std::printf("copied: kinds %d", fresh.toy.kinds);
#ifndef OLDER
    std::printf(", colours %d, numbers %zu", fresh.toy.colours[0], fresh.toy.numbers.size());
#endif
    Retired retired;
    Closer closer(retired);
    House::fields(house, closer);
    std::printf("\nclosed: scratch %zu", house.toy.scratch.size());
#ifndef OLDER
    std::printf(", more scratch %zu", house.toy.more_scratch.size());
#endif
    std::printf(", numbers %zu\n", house.toy.numbers.size());
}
