// Sets as ascending vectors without repeats.
#pragma once
#include <algorithm>
#include <vector>

namespace wfsa {

template <class T> void sort_unique(std::vector<T>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}
// ... of those with equal `key(x)`, which decides the order, one stays.
template <class T, class Key> void sort_unique_by(std::vector<T>& v, const Key& key) {
    std::sort(v.begin(), v.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
    v.erase(std::unique(v.begin(), v.end(), [&](const T& a, const T& b) { return key(a) == key(b); }), v.end());
}

}  // namespace wfsa
