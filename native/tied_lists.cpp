// Lists with small ties under worths that all of them share, for tierrank.aggregation: second
// derivatives that are kept.
//
// tied_lists.hpp computes for each tier, with worth T below it, its value, its slopes ∂/∂d and, where
// wanted, its matrix M of second derivatives. With σ the shares of what is below, v̄ = σ·v, u = v − v̄,
// pull = Σ slopes,
//
//     gradient      above: slope_a                  below: −σ_b pull
//     (H v)         above: (M u)_a                  below: −σ_b (1ᵀM u + pull (v_b − v̄))
//
// so that a product with H costs n² operations a tier, and no integral. An item below several tiers
// sums the second column over them, carried down a list as two numbers. All this is of the
// log-likelihood; the caller turns the sign.
#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

using Doubles = In<double>;

// The lists, checked once. A list's last tier has no term, and no matrix.
class TiedLists {
  public:
    TiedLists(Offsets items, Offsets tier_offsets, Offsets list_offsets, Doubles counts,
              std::int64_t n_items)
        : items_(items), tier_offsets_(tier_offsets), list_offsets_(list_offsets), counts_(counts),
          n_items_(n_items), lists_(std::int64_t(counts.shape(0))),
          tiers_(std::int64_t(tier_offsets.shape(0)) - 1) {
        require(tiers_ >= 0, "tier_offsets need one number more than there are tiers");
        require(std::int64_t(list_offsets.shape(0)) == lists_ + 1,
                "list_offsets need one number more than there are counts");
        check_offsets(tier_offsets, std::int64_t(items.shape(0)),
                      "tier_offsets must rise from 0 to the number of entries");
        check_offsets(list_offsets, tiers_, "list_offsets must rise from 0 to the number of tiers");
        check_indices(items, n_items, "an item must be one of those that have a worth");
        last_.assign(tiers_, 0);
        for (std::int64_t i = 0; i < lists_; ++i) {
            require(list_offsets.data()[i] < list_offsets.data()[i + 1], "a list must have a tier");
            last_[list_offsets.data()[i + 1] - 1] = 1;
        }
        matrix_offsets_.assign(1, 0);
        for (std::int64_t j = 0; j < tiers_; ++j) {
            const std::int64_t size = tier_offsets.data()[j + 1] - tier_offsets.data()[j];
            require(size > 0, "a tier must have an item");
            require(size < (std::int64_t(1) << 31), "a tier must have fewer than 2^31 items");
            const std::int64_t more = last_[j] ? 0 : size * size;
            require(matrix_offsets_.back() <= INT64_MAX - more, "the tiers are too large for matrices");
            matrix_offsets_.push_back(matrix_offsets_.back() + more);
        }
    }

    std::int64_t matrix_size() const { return matrix_offsets_.back(); }

    // worth below each tier, values and slopes; and matrices, unless `matrices` is empty
    void terms(const Doubles &worth, const Doubles &log_worth, int threads, Out<double> below,
               Out<double> value, Out<double> slopes, Out<double> matrices) const {
        check_items(worth, log_worth);
        check_tiers(below, value);
        check_entries(slopes);
        const bool wanted = matrices.shape(0) > 0;
        if (wanted) check_matrices(matrices);
        const std::int64_t *items = items_.data(), *tiers = tier_offsets_.data();
        nb::gil_scoped_release release;
        for (std::int64_t i = 0; i < lists_; ++i) {
            double total = 0.0;
            for (std::int64_t j = end(i) - 1; j >= begin(i); --j) {
                below.data()[j] = total;
                for (std::int64_t p = tiers[j]; p < tiers[j + 1]; ++p) total += worth.data()[items[p]];
            }
        }
        kernels().tied_terms({tiers_, items, tiers, last_.data(), worth.data(), log_worth.data(),
                              below.data(), matrix_offsets_.data(), value.data(), slopes.data(),
                              wanted ? matrices.data() : nullptr},
                             threads);
    }

    // ∂ log P/∂w of every entry of every list, as if it had been seen once
    void entry_gradients(const Doubles &worth, const Doubles &below, const Doubles &slopes,
                         Out<double> out) const {
        check_items(worth);
        check_tiers(below);
        check_entries(slopes, out);
        const Walk w{*this, worth, below, slopes};
        nb::gil_scoped_release release;
        for (std::int64_t i = 0; i < lists_; ++i) {
            double owed = 0.0; // Σ pull / T of the tiers above
            for (std::int64_t j = begin(i); j < end(i); ++j) {
                double pull = 0.0;
                for (std::int64_t p = w.tiers[j]; p < w.tiers[j + 1]; ++p) {
                    out.data()[p] = w.slopes[p] - w.worth[w.items[p]] * owed;
                    pull += w.slopes[p];
                }
                if (!last_[j]) owed += pull / w.below[j];
            }
        }
    }

    // adds count · H · vector
    void product(const Doubles &worth, const Doubles &below, const Doubles &slopes,
                 const Doubles &matrices, const Doubles &vectors, Out<double> to) const {
        check_items(worth, vectors, to);
        check_tiers(below);
        check_entries(slopes);
        check_matrices(matrices);
        const Walk w{*this, worth, below, slopes};
        const double *vector = vectors.data();
        double *out = to.data();
        nb::gil_scoped_release release;
        std::vector<double> means, moves; // v̄ of each tier, and u of a tier's items
        for (std::int64_t i = 0; i < lists_; ++i) {
            means.assign(end(i) - begin(i), 0.0);
            double running = 0.0;
            for (std::int64_t j = end(i) - 1; j >= begin(i); --j) {
                if (!last_[j]) means[j - begin(i)] = running / w.below[j];
                for (std::int64_t p = w.tiers[j]; p < w.tiers[j + 1]; ++p)
                    running += w.worth[w.items[p]] * vector[w.items[p]];
            }
            double owed = 0.0, push = 0.0; // Σ pull / T, and Σ (1ᵀM u − pull v̄) / T, of the tiers above
            for (std::int64_t j = begin(i); j < end(i); ++j) {
                const std::int64_t start = w.tiers[j], size = w.tiers[j + 1] - start;
                const double mean = means[j - begin(i)];
                const double *row = matrices.data() + matrix_offsets_[j];
                double pull = 0.0, along = 0.0;
                if (!last_[j]) {
                    moves.resize(size);
                    for (std::int64_t q = 0; q < size; ++q) moves[q] = vector[w.items[start + q]] - mean;
                }
                for (std::int64_t p = start; p < start + size; ++p) {
                    const std::int64_t item = w.items[p];
                    double moved = -w.worth[item] * (push + owed * vector[item]);
                    if (!last_[j]) {
                        double own = 0.0;
                        for (std::int64_t q = 0; q < size; ++q) own += row[q] * moves[q];
                        row += size;
                        moved += own;
                        along += own;
                        pull += w.slopes[p];
                    }
                    out[item] += counts_.data()[i] * moved;
                }
                if (!last_[j]) {
                    owed += pull / w.below[j];
                    push += (along - pull * mean) / w.below[j];
                }
            }
        }
    }

    // adds count · the diagonal of H: −σ_b pull + σ_b² (1ᵀM 1 + pull) for what is below
    void diagonal(const Doubles &worth, const Doubles &below, const Doubles &slopes,
                  const Doubles &matrices, Out<double> to) const {
        check_items(worth, to);
        check_tiers(below);
        check_entries(slopes);
        check_matrices(matrices);
        const Walk w{*this, worth, below, slopes};
        nb::gil_scoped_release release;
        for (std::int64_t i = 0; i < lists_; ++i) {
            double owed = 0.0, square = 0.0;
            for (std::int64_t j = begin(i); j < end(i); ++j) {
                const std::int64_t start = w.tiers[j], size = w.tiers[j + 1] - start;
                const double *row = matrices.data() + matrix_offsets_[j];
                double pull = 0.0, whole = 0.0;
                for (std::int64_t p = start; p < start + size; ++p) {
                    const double e = w.worth[w.items[p]];
                    double found = e * (e * square - owed);
                    if (!last_[j]) {
                        found += row[p - start];
                        for (std::int64_t q = 0; q < size; ++q) whole += row[q];
                        row += size;
                        pull += w.slopes[p];
                    }
                    to.data()[w.items[p]] += counts_.data()[i] * found;
                }
                if (!last_[j]) {
                    owed += pull / w.below[j];
                    square += (whole + pull) / (w.below[j] * w.below[j]);
                }
            }
        }
    }

    // Adds count · H, but each pair once, and half of the diagonal. The caller adds the transpose: rows
    // are written as they lie in memory. For p over q in a list, the tiers above both give
    // e_p e_q square, and p's own tier −(M 1)_p σ_q. A last tier of most of the catalogue is every pair
    // but those with an item above it: far fewer.
    void matrix(const Doubles &worth, const Doubles &below, const Doubles &slopes,
                const Doubles &matrices, Matrix<double> to) const {
        check_items(worth, to);
        require(to.shape(1) == to.shape(0), "the matrix must be square");
        check_tiers(below);
        check_entries(slopes);
        check_matrices(matrices);
        const Walk w{*this, worth, below, slopes};
        double *out = to.data();
        nb::gil_scoped_release release;
        // adds factor · e_q for the items of p … stop − 1 to p's row, half of it for p itself
        const auto add_pairs = [&](std::int64_t p, std::int64_t stop, double factor) {
            double *into = out + w.items[p] * n_items_;
            into[w.items[p]] += 0.5 * factor * w.worth[w.items[p]];
            for (std::int64_t q = p + 1; q < stop; ++q)
                into[w.items[q]] += factor * w.worth[w.items[q]];
        };
        double shared = 0.0;
        for (std::int64_t i = 0; i < lists_; ++i) {
            double owed = 0.0, square = 0.0;
            const double count = counts_.data()[i];
            const std::int64_t first = w.tiers[begin(i)], list_end = w.tiers[end(i)];
            for (std::int64_t j = begin(i); j < end(i); ++j) {
                const std::int64_t start = w.tiers[j], stop = w.tiers[j + 1], size = stop - start;
                const bool most = last_[j] && list_end - first == n_items_ && 2 * size > n_items_;
                const double *row = matrices.data() + matrix_offsets_[j];
                double pull = 0.0, whole = 0.0;
                for (std::int64_t p = start; p < stop; ++p) {
                    const double e = w.worth[w.items[p]];
                    double *into = out + w.items[p] * n_items_;
                    into[w.items[p]] -= 0.5 * count * e * owed;
                    if (!most) add_pairs(p, stop, count * e * square);
                    if (last_[j]) continue;
                    double along = 0.0;
                    for (std::int64_t q = 0; q < size; ++q) {
                        along += row[q];
                        into[w.items[start + q]] += 0.5 * count * row[q];
                    }
                    row += size;
                    pull += w.slopes[p];
                    whole += along;
                    const double factor = count * (e * square - along / w.below[j]);
                    for (std::int64_t q = stop; q < list_end; ++q)
                        into[w.items[q]] += factor * w.worth[w.items[q]];
                }
                if (most) {
                    shared += count * square;
                    for (std::int64_t p = first; p < start; ++p)
                        add_pairs(p, list_end, -count * w.worth[w.items[p]] * square);
                }
                if (!last_[j]) {
                    owed += pull / w.below[j];
                    square += (whole + pull) / (w.below[j] * w.below[j]);
                }
            }
        }
        if (shared != 0.0)
            for (std::int64_t p = 0; p < n_items_; ++p) {
                double *into = out + p * n_items_;
                const double factor = shared * w.worth[p];
                into[p] += 0.5 * factor * w.worth[p];
                for (std::int64_t q = p + 1; q < n_items_; ++q) into[q] += factor * w.worth[q];
            }
    }

  private:
    Offsets items_, tier_offsets_, list_offsets_;
    Doubles counts_;
    std::int64_t n_items_, lists_, tiers_;
    std::vector<char> last_;                   // [tiers] whether it is its list's last
    std::vector<std::int64_t> matrix_offsets_; // [tiers + 1]

    struct Walk { // what every walk down the lists reads
        Walk(const TiedLists &lists, const Doubles &worth, const Doubles &below, const Doubles &slopes)
            : items(lists.items_.data()), tiers(lists.tier_offsets_.data()), worth(worth.data()),
              below(below.data()), slopes(slopes.data()) {}
        const std::int64_t *items, *tiers;
        const double *worth, *below, *slopes;
    };

    std::int64_t begin(std::int64_t i) const { return list_offsets_.data()[i]; }
    std::int64_t end(std::int64_t i) const { return list_offsets_.data()[i + 1]; }

    template <class... A> void check_items(const A &...array) const {
        require(((std::int64_t(array.shape(0)) == n_items_) && ...),
                "worths, vectors and results need one number an item");
    }
    template <class... A> void check_tiers(const A &...array) const {
        require(((std::int64_t(array.shape(0)) == tiers_) && ...),
                "values and worths below need one number a tier");
    }
    template <class... A> void check_entries(const A &...array) const {
        require(((array.shape(0) == items_.shape(0)) && ...), "slopes need one number an entry");
    }
    template <class A> void check_matrices(const A &matrices) const {
        require(std::int64_t(matrices.shape(0)) == matrix_size(), "matrices need matrix_size numbers");
    }
};

} // namespace

void bind_tied_lists(nb::module_ &m) {
    // what is filled is never converted: the copy would be filled
    nb::class_<TiedLists>(m, "TiedLists")
        .def(nb::init<Offsets, Offsets, Offsets, Doubles, std::int64_t>())
        .def_prop_ro("matrix_size", &TiedLists::matrix_size)
        .def("terms", &TiedLists::terms, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert())
        .def("entry_gradients", &TiedLists::entry_gradients, nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert())
        .def("product", &TiedLists::product, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert())
        .def("diagonal", &TiedLists::diagonal, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert())
        .def("matrix", &TiedLists::matrix, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert());
}

} // namespace tierrank
