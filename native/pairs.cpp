// Sums over pairs, for Python: tierrank.losses and tierrank.extreme call this.
#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

PairKind kind_of(const std::string &name) {
    if (name == "rao_kupper_wins") return PairKind::rao_kupper_win;
    if (name == "rao_kupper_ties") return PairKind::rao_kupper_tie;
    if (name == "davidson_wins") return PairKind::davidson_win;
    if (name == "davidson_ties") return PairKind::davidson_tie;
    if (name == "hinges") return PairKind::hinge;
    if (name == "rao_kupper_win_hessians") return PairKind::rao_kupper_win_second;
    if (name == "rao_kupper_tie_hessians") return PairKind::rao_kupper_tie_second;
    if (name == "davidson_hessians") return PairKind::davidson_second;
    throw std::invalid_argument("there are no pairs called " + name);
}

template <class T>
void pair_sums(const std::string &kind, const In<T> &scores, const Offsets &start,
               const Offsets &stop, double parameter, int threads, Out<double> loss,
               Out<double> gradient, Out<double> by_parameter) {
    const std::size_t items = scores.shape(0);
    require(start.shape(0) == items && stop.shape(0) == items, "one range of others an item");
    require(loss.shape(0) == items && gradient.shape(0) == items && by_parameter.shape(0) == items,
            "one loss, one slope and one slope in the parameter an item");
    const std::int64_t *from = start.data(), *to = stop.data();
    bool after = true;
    for (std::int64_t i = 0; i < std::int64_t(items); ++i) {
        after &= i < from[i] && from[i] <= to[i] && to[i] <= std::int64_t(items);
        after &= i == 0 || (from[i - 1] <= from[i] && to[i - 1] <= to[i]);
    }
    require(kind != "hinges", "hinges are for blocks");
    require(after, "ranges must be of items after their own, and must not fall");
    const Pairs<T> pairs{kind_of(kind), std::int64_t(items), scores.data(), from, to, parameter,
                         loss.data(), by_parameter.data(), gradient.data()};
    nb::gil_scoped_release release;
    kernels().of<T>().pair_sums(pairs, threads);
}

template <class T>
void block_pair_sums(const std::string &kind, const In<T> &named, const Offsets &borders,
                     const Matrix<const T> &scores, const In<T> &counts, double parameter, int threads,
                     Out<double> loss, Out<double> slope, Matrix<T> label_slope) {
    const std::size_t lists = scores.shape(0), labels = scores.shape(1);
    require(kind == "rao_kupper_wins" || kind == "hinges", "a block has logistic pairs or hinges");
    require(borders.shape(0) == lists + 1, "borders need one number more than there are lists");
    check_offsets(borders, std::int64_t(named.shape(0)),
                  "borders must rise from 0 to the number of entries");
    require(counts.shape(0) == labels, "one count a label");
    require(loss.shape(0) == lists && slope.shape(0) == named.shape(0),
            "one loss a list, and one slope an entry");
    const bool by_label = label_slope.shape(0) > 0;
    require(!by_label || (label_slope.shape(0) == lists && label_slope.shape(1) == labels),
            "one slope a score, or none");
    const BlockPairs<T> pairs{kind_of(kind),  std::int64_t(lists), std::int64_t(labels),
                              named.data(),   borders.data(),      scores.data(),
                              counts.data(),  parameter,           loss.data(),
                              slope.data(),   by_label ? label_slope.data() : nullptr};
    nb::gil_scoped_release release;
    kernels().of<T>().block_pair_sums(pairs, threads);
}

template <class T> void bind(nb::module_ &m) {
    // a converted copy of what is to be filled would be filled, and lost: so nothing is converted
    m.def("pair_sums", &pair_sums<T>, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
    m.def("block_pair_sums", &block_pair_sums<T>, nb::arg(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

} // namespace

void bind_pairs(nb::module_ &m) {
    bind<float>(m);
    bind<double>(m);
}

} // namespace tierrank
