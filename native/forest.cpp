// Walks from the roots of trees to their leaves, for Python: tierrank.ranking calls this.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "arrays.hpp"
#include "threads.hpp"

namespace tierrank {
namespace {

constexpr std::int64_t ROWS_AT_ONCE = 64; // while these pass through a tree, it stays in the cache
constexpr std::int64_t ROWS_A_TASK = 16 * ROWS_AT_ONCE;
constexpr int ABREAST = 8; // rows that walk together: while one waits for memory, others go on

// what LightGBM takes for zero, where zeros are missing: a float, compared as a double
constexpr double NEARLY_ZERO = double(1e-35f);

enum Missing : std::uint8_t { NOTHING, ZERO, NAN_ }; // what is missing at a node

// Which codes of categories go left at a node: those from `begin` to before `end`, rising.
struct Span {
    std::int32_t begin, end;
};

// All that a step looks at, side by side.
struct Node {
    union {
        double number; // the largest value that goes left; at a leaf, what it adds to the score
        Span codes; // or, where categories are split, those that go left
    };
    std::int32_t left; // the left child, and the right one is the next; 0 at a leaf
    std::int32_t feature;
    Missing missing;
    bool default_left;
    bool categorical;
};

// Where a value goes at a node. A NaN counts as 0 where NaN is not what is missing.
inline bool goes_left(double x, const Node &node) {
    if (std::isnan(x)) {
        if (node.missing != NOTHING) return node.default_left;
        x = 0.0;
    }
    if (node.missing == ZERO && std::abs(x) <= NEARLY_ZERO) return node.default_left;
    return x <= node.number;
}

// The same where categories are split: a code below 0, or that no node knows, is none of those
// that go left. (Codes are whole; of others the whole part counts.)
inline bool code_goes_left(double x, const Node &node, const std::int32_t *codes) {
    if (std::isnan(x)) return node.default_left;
    if (!(x >= 0 && x <= 2147483647.0)) return false;
    const std::int32_t code = std::int32_t(x), *first = codes + node.codes.begin;
    // the last of them that is not larger, found by halves without a branch that could be guessed wrong
    for (std::int32_t count = node.codes.end - node.codes.begin; count > 1;) {
        const std::int32_t half = count / 2;
        first += first[half] <= code ? half : 0;
        count -= half;
    }
    return *first == code;
}

using Codes = std::optional<In<std::int32_t>>; // if no node splits categories, there is no need of them

// Trees as tierrank.ranking.forest describes them, checked: children come after their
// parent, so that every walk ends, and features are columns.
struct Forest {
    std::vector<Node> nodes;
    std::vector<std::int32_t> roots;
    const std::int32_t *codes = nullptr; // of categories that go left, node after node; or there are none
    std::vector<std::int32_t> slot; // [features] where a feature that some node looks at is put, or −1
    std::int64_t slots = 0;

    Forest(std::int64_t n_features, const Offsets &tree_offsets, const In<std::int32_t> &feature,
           const In<double> &threshold, const In<std::int32_t> &left,
           const In<std::uint8_t> &missing, const In<bool> &default_left, const In<double> &value,
           const Codes &category_counts, const Codes &categories) {
        const std::size_t n = feature.shape(0);
        require(n < std::size_t(1) << 31 && threshold.shape(0) == n && left.shape(0) == n && missing.shape(0) == n &&
                    default_left.shape(0) == n && value.shape(0) == n,
                "arrays with one entry a node");
        check_offsets(tree_offsets, std::int64_t(n), "tree_offsets must rise from 0 to the nodes");
        nodes.resize(n);
        slot.assign(std::size_t(n_features), -1);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t child = left.data()[i], column = feature.data()[i];
            require(child == 0 || (child > std::int64_t(i) && child + 1 < std::int64_t(n)),
                    "a node has children that are not below it");
            require(column >= 0 && column < n_features, "a node looks at a column that is not there");
            require(missing.data()[i] <= NAN_, "an unknown kind of missing");
            nodes[i] = {{child ? threshold.data()[i] : value.data()[i]}, std::int32_t(child), std::int32_t(column),
                        Missing(missing.data()[i]), default_left.data()[i], false};
            if (child && slot[std::size_t(column)] < 0) slot[std::size_t(column)] = std::int32_t(slots++);
        }
        for (std::size_t t = 0; t + 1 < tree_offsets.shape(0); ++t) {
            require(tree_offsets.data()[t] < std::int64_t(n), "a tree without a root");
            roots.push_back(std::int32_t(tree_offsets.data()[t]));
        }
        require(category_counts.has_value() == categories.has_value(), "categories with their counts, or neither");
        if (categories) split_categories(*category_counts, *categories);
    }
    void split_categories(const In<std::int32_t> &counts, const In<std::int32_t> &categories) {
        require(counts.shape(0) == nodes.size(), "arrays with one entry a node");
        require(categories.shape(0) < std::size_t(1) << 31, "too many categories");
        const std::int64_t all = std::int64_t(categories.shape(0));
        std::int64_t begin = 0;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const std::int64_t count = counts.data()[i], end = begin + count;
            require(count >= 0 && end <= all && (count == 0 || nodes[i].left), "counts that go with the categories");
            for (std::int64_t k = begin + 1; k < end; ++k)
                require(categories.data()[k - 1] < categories.data()[k], "the categories of a node must rise");
            if (count) {
                nodes[i].codes = {std::int32_t(begin), std::int32_t(end)};
                nodes[i].categorical = true;
                codes = categories.data();
            }
            begin = end;
        }
        require(begin == all, "counts that go with the categories");
    }
    void look_into_slots() {
        for (Node &node : nodes) node.feature = std::max(slot[std::size_t(node.feature)], 0);
    }
};

// Add to `out` what every tree says of some rows, tree by tree; at(row) gives the row's values by feature.
// Trees without categories have a walk of their own, which does not ask for them.
template <bool categorical, class At>
void walk_trees(const Forest &forest, std::int64_t rows, At at, double *out) {
    const Node *const nodes = forest.nodes.data();
    const auto walk = [&]<int count>(std::int32_t root, std::int64_t first) {
        const Node *node[count];
        decltype(at(0)) x[count];
        for (int k = 0; k < count; ++k) node[k] = nodes + root, x[k] = at(first + k);
        for (bool on = true; on;) {
            on = false;
            for (int k = 0; k < count; ++k) {
                if (node[k]->left == 0) continue;
                const double value = x[k](node[k]->feature);
                const bool left = categorical && node[k]->categorical
                                      ? code_goes_left(value, *node[k], forest.codes)
                                      : goes_left(value, *node[k]);
                node[k] = nodes + node[k]->left + !left;
                on = true;
            }
        }
        for (int k = 0; k < count; ++k) out[first + k] += node[k]->number;
    };
    for (std::int64_t begin = 0; begin < rows; begin += ROWS_AT_ONCE) {
        const std::int64_t end = std::min(begin + ROWS_AT_ONCE, rows);
        for (const std::int32_t root : forest.roots) {
            std::int64_t row = begin;
            for (; row + ABREAST <= end; row += ABREAST) walk.template operator()<ABREAST>(root, row);
            for (; row < end; ++row) walk.template operator()<1>(root, row);
        }
    }
}

template <class At> void add_scores(const Forest &forest, std::int64_t rows, At at, double *out) {
    forest.codes ? walk_trees<true>(forest, rows, at, out) : walk_trees<false>(forest, rows, at, out);
}

// The values of one row, a stride apart.
template <class T> struct Row {
    const T *first;
    std::int64_t stride;
    double operator()(std::int32_t feature) const { return double(first[feature * stride]); }
};

template <class T> using AnyTable = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
void forest_scores(const AnyTable<T> &X, const Offsets &tree_offsets, const In<std::int32_t> &feature,
                   const In<double> &threshold, const In<std::int32_t> &left,
                   const In<std::uint8_t> &missing, const In<bool> &default_left,
                   const In<double> &value, Out<double> out, int threads, const Codes &category_counts,
                   const Codes &categories) {
    const std::int64_t rows = std::int64_t(X.shape(0)), down = X.stride(0), across = X.stride(1);
    require(std::int64_t(out.shape(0)) == rows, "one score a row");
    const Forest forest(std::int64_t(X.shape(1)), tree_offsets, feature, threshold, left, missing,
                        default_left, value, category_counts, categories);
    nb::gil_scoped_release release;
    parallel((rows + ROWS_A_TASK - 1) / ROWS_A_TASK, threads, [&](std::int64_t task) {
        const std::int64_t begin = task * ROWS_A_TASK, count = std::min(ROWS_A_TASK, rows - begin);
        const auto at = [&](std::int64_t row) {
            return Row<T>{X.data() + (begin + row) * down, across};
        };
        add_scores(forest, count, at, out.data() + begin);
    });
}

// The same for the rows of a CSR matrix, which are spread over the slots, some at a time.
template <class T, class Index>
void sparse_forest_scores(const In<T> &data, const In<Index> &indices, const In<Index> &indptr,
                          std::int64_t n_features, const Offsets &tree_offsets,
                          const In<std::int32_t> &feature, const In<double> &threshold,
                          const In<std::int32_t> &left, const In<std::uint8_t> &missing,
                          const In<bool> &default_left, const In<double> &value, Out<double> out,
                          int threads, const Codes &category_counts, const Codes &categories) {
    const std::int64_t rows = std::int64_t(out.shape(0));
    require(n_features >= 0, "there are no fewer than 0 features");
    require(std::int64_t(indptr.shape(0)) == rows + 1, "indptr with one number more than rows");
    require(data.shape(0) == indices.shape(0), "as many data as indices");
    bool rising = indptr.data()[0] >= 0 && std::int64_t(indptr.data()[rows]) <= std::int64_t(data.shape(0));
    for (std::int64_t i = 0; i < rows; ++i) rising &= indptr.data()[i] <= indptr.data()[i + 1];
    require(rising, "indptr must rise inside of data");
    Forest forest(n_features, tree_offsets, feature, threshold, left, missing, default_left, value,
                  category_counts, categories);
    forest.look_into_slots();
    const std::int64_t slots = std::max(forest.slots, std::int64_t(1));
    nb::gil_scoped_release release;
    parallel((rows + ROWS_A_TASK - 1) / ROWS_A_TASK, threads, [&](std::int64_t task) {
        std::vector<double> block(std::size_t(ROWS_AT_ONCE * slots), 0.0);
        const auto at = [&](std::int64_t row) { return Row<double>{block.data() + row * slots, 1}; };
        const std::int64_t end = std::min(rows, (task + 1) * ROWS_A_TASK);
        for (std::int64_t begin = task * ROWS_A_TASK; begin < end; begin += ROWS_AT_ONCE) {
            const std::int64_t count = std::min(ROWS_AT_ONCE, end - begin);
            const auto put = [&](bool zero) {
                for (std::int64_t row = 0; row < count; ++row)
                    for (Index i = indptr.data()[begin + row]; i < indptr.data()[begin + row + 1]; ++i) {
                        const std::int64_t column = indices.data()[i];
                        require(column >= 0 && column < n_features, "an index is outside of the matrix");
                        const std::int32_t to = forest.slot[std::size_t(column)];
                        if (to >= 0) block[std::size_t(row * slots + to)] = zero ? 0.0 : double(data.data()[i]);
                    }
            };
            put(false);
            add_scores(forest, count, at, out.data() + begin);
            put(true); // cheaper than filling it with zeros
        }
    });
}

} // namespace

void bind_forest(nb::module_ &m) {
    const auto dense = [&](auto function) {
        m.def("forest_scores", function, "X"_a.noconvert(), "tree_offsets"_a.noconvert(),
              "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(),
              "missing"_a.noconvert(), "default_left"_a.noconvert(), "value"_a.noconvert(),
              "out"_a.noconvert(), "threads"_a, "category_counts"_a.noconvert() = nb::none(),
              "categories"_a.noconvert() = nb::none());
    };
    dense(&forest_scores<float>);
    dense(&forest_scores<double>);
    const auto sparse = [&](auto function) {
        m.def("sparse_forest_scores", function, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), "n_features"_a, "tree_offsets"_a.noconvert(),
              "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(),
              "missing"_a.noconvert(), "default_left"_a.noconvert(), "value"_a.noconvert(),
              "out"_a.noconvert(), "threads"_a, "category_counts"_a.noconvert() = nb::none(),
              "categories"_a.noconvert() = nb::none());
    };
    sparse(&sparse_forest_scores<float, std::int32_t>);
    sparse(&sparse_forest_scores<float, std::int64_t>);
    sparse(&sparse_forest_scores<double, std::int32_t>);
    sparse(&sparse_forest_scores<double, std::int64_t>);
}

} // namespace tierrank
