// Strict lists under worths that all of them share, for tierrank.aggregation: no integral, and no
// exponential an entry.
//
// Place p of a list of k takes one item over those below it. With e = exp(w), the running sum
// T_p = Σ_{q ≥ p} e_q from the bottom, c the list's count, and sums over places p ≤ q but the last,
//
//     loss     = c Σ (log T_p − w_p)
//     ∂/∂w_q   = e_q A_q − c [q < k],                  A_q = c Σ 1/T_p
//     (H v)_q  = e_q (v_q A_q − B_q),                  B_q = c Σ (Σ_{r ≥ p} e_r v_r) / T_p²
//     H_qq     = e_q A_q − e_q² D_q,                   D_q = c Σ 1/T_p²
//     H_qr     = −e_q e_r D_q for r below q.
//
// 1/T is kept from the value for the products with H, which then cost a few operations an entry.
#include <algorithm>
#include <cmath>
#include <vector>

#include "arrays.hpp"

namespace tierrank {
namespace {

// The lists, checked once: conjugate gradients ask for hundreds of products.
class StrictLists {
  public:
    StrictLists(Offsets items, Offsets offsets, In<double> counts, std::int64_t n_items)
        : items_(items), offsets_(offsets), counts_(counts), n_items_(n_items) {
        require(offsets.shape(0) == counts.shape(0) + 1,
                "offsets need one number more than there are counts");
        check_offsets(offsets, std::int64_t(items.shape(0)),
                      "offsets must rise from 0 to the number of entries");
        check_indices(items, n_items, "an item must be one of those that have a worth");
        for (std::size_t i = 0; i < counts.shape(0); ++i) {
            const std::int64_t length = offsets.data()[i + 1] - offsets.data()[i];
            require(length > 0, "a list must have an entry");
            longest_ = std::max(longest_, length);
        }
    }

    // Σ c log T over all places but the last of each list; fills `inverse`, adds to `gradient`
    double value_and_gradient(const In<double> &worths, Out<double> inverses, Out<double> gradient) const {
        check_items(worths, gradient);
        check_entries(inverses);
        const double *worth = worths.data();
        double *inverse = inverses.data(), *out = gradient.data();
        nb::gil_scoped_release release;
        double value = 0.0;
        for_lists([&](std::int64_t start, std::int64_t end, double count, const std::int64_t *items) {
            double total = worth[items[end - 1]], logs = 0.0, owed = 0.0;
            inverse[end - 1] = 0.0; // the last place is no choice
            for (std::int64_t p = end - 2; p >= start; --p) {
                total += worth[items[p]];
                inverse[p] = 1.0 / total;
                logs += std::log(total);
            }
            value += count * logs;
            for (std::int64_t p = start; p < end; ++p) {
                owed += inverse[p];
                out[items[p]] += count * worth[items[p]] * owed;
            }
        });
        return value;
    }

    // adds H · vector
    void product(const In<double> &worths, const In<double> &inverses, const In<double> &vectors,
                 Out<double> to) const {
        check_items(worths, vectors, to);
        check_entries(inverses);
        const double *worth = worths.data(), *inverse = inverses.data(), *vector = vectors.data();
        double *out = to.data();
        nb::gil_scoped_release release;
        std::vector<double> below(longest_);
        for_lists([&](std::int64_t start, std::int64_t end, double count, const std::int64_t *items) {
            double running = 0.0, owed = 0.0, push = 0.0;
            for (std::int64_t p = end - 1; p >= start; --p) {
                running += worth[items[p]] * vector[items[p]];
                below[p - start] = running;
            }
            for (std::int64_t p = start; p < end; ++p) {
                const std::int64_t item = items[p];
                owed += inverse[p];
                push += below[p - start] * inverse[p] * inverse[p];
                out[item] += count * worth[item] * (vector[item] * owed - push);
            }
        });
    }

    // adds the diagonal of H
    void diagonal(const In<double> &worths, const In<double> &inverses, Out<double> to) const {
        check_items(worths, to);
        check_entries(inverses);
        const double *worth = worths.data(), *inverse = inverses.data();
        double *out = to.data();
        nb::gil_scoped_release release;
        for_lists([&](std::int64_t start, std::int64_t end, double count, const std::int64_t *items) {
            double owed = 0.0, squares = 0.0;
            for (std::int64_t p = start; p < end; ++p) {
                owed += inverse[p];
                squares += inverse[p] * inverse[p];
                const double e = worth[items[p]];
                out[items[p]] += count * e * (owed - e * squares);
            }
        });
    }

    // Adds H, but each pair once, and half of the diagonal. The caller adds the transpose: rows are
    // written as they lie in memory.
    void matrix(const In<double> &worths, const In<double> &inverses, Matrix<double> to) const {
        check_items(worths, to);
        require(to.shape(1) == to.shape(0), "the matrix must be square");
        check_entries(inverses);
        const double *worth = worths.data(), *inverse = inverses.data();
        double *out = to.data();
        nb::gil_scoped_release release;
        for_lists([&](std::int64_t start, std::int64_t end, double count, const std::int64_t *items) {
            double owed = 0.0, squares = 0.0;
            for (std::int64_t p = start; p < end; ++p) {
                owed += inverse[p];
                squares += inverse[p] * inverse[p];
                const double e = worth[items[p]], pull = count * e * squares;
                double *into = out + items[p] * n_items_;
                into[items[p]] += 0.5 * count * e * (owed - e * squares);
                for (std::int64_t q = p + 1; q < end; ++q) into[items[q]] -= pull * worth[items[q]];
            }
        });
    }

    // ∂loss/∂w of every entry of every list, as if it had been seen once
    void entry_gradients(const In<double> &worths, const In<double> &inverses, Out<double> to) const {
        check_items(worths);
        check_entries(inverses, to);
        const double *worth = worths.data(), *inverse = inverses.data();
        double *out = to.data();
        nb::gil_scoped_release release;
        for_lists([&](std::int64_t start, std::int64_t end, double, const std::int64_t *items) {
            double owed = 0.0;
            for (std::int64_t p = start; p < end; ++p) {
                owed += inverse[p];
                out[p] = worth[items[p]] * owed - (p < end - 1 ? 1.0 : 0.0);
            }
        });
    }

  private:
    Offsets items_, offsets_;
    In<double> counts_;
    std::int64_t n_items_, longest_ = 0;

    template <class... A> void check_items(const A &...array) const {
        require(((std::int64_t(array.shape(0)) == n_items_) && ...),
                "worths, vectors and results need one number an item");
    }
    template <class... A> void check_entries(const A &...array) const {
        require(((array.shape(0) == items_.shape(0)) && ...),
                "inverses and slopes need one number an entry");
    }

    // work(start, end, count, items), list by list
    template <class F> void for_lists(F work) const {
        const std::int64_t *offsets = offsets_.data(), lists = std::int64_t(counts_.shape(0));
        for (std::int64_t i = 0; i < lists; ++i)
            work(offsets[i], offsets[i + 1], counts_.data()[i], items_.data());
    }
};

} // namespace

void bind_strict_lists(nb::module_ &m) {
    // what is filled is never converted: the copy would be filled
    nb::class_<StrictLists>(m, "StrictLists")
        .def(nb::init<Offsets, Offsets, In<double>, std::int64_t>())
        .def("value_and_gradient", &StrictLists::value_and_gradient, nb::arg(), nb::arg().noconvert(),
             nb::arg().noconvert())
        .def("product", &StrictLists::product, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
        .def("diagonal", &StrictLists::diagonal, nb::arg(), nb::arg(), nb::arg().noconvert())
        .def("matrix", &StrictLists::matrix, nb::arg(), nb::arg(), nb::arg().noconvert())
        .def("entry_gradients", &StrictLists::entry_gradients, nb::arg(), nb::arg(),
             nb::arg().noconvert());
}

} // namespace tierrank
