// What every set of instructions offers: one table of functions, filled by kernels.cpp.
#pragma once

#include <cstdint>

namespace tierrank {

// Lists of upper tiers as tierrank.tiers lays them out: the rows of list i are
// row_offsets[i] … row_offsets[i + 1] − 1; its upper tiers are list_offsets[i] …; the rows of tier j
// are order[tier_offsets[j]] … Rows that no upper tier names are the list's last tier.
template <class T> struct Lists {
    std::int64_t lists;
    const std::int64_t *row_offsets, *order, *tier_offsets, *list_offsets;
    const T *scores;
    const double *bottom;       // [lists] lse of what stands below all rows, −inf for nothing; or null
    const double *tier_weights; // [upper tiers], or null: all 1
    double *log_prob;           // [lists] NaN where a score is not finite
    T *gradient;                // [rows], or null
    double *bottom_gradient;    // [lists], if there is a gradient

    std::int64_t rows(std::int64_t i) const { return row_offsets[i + 1] - row_offsets[i]; }
    std::int64_t upper_rows(std::int64_t i) const {
        return tier_offsets[list_offsets[i + 1]] - tier_offsets[list_offsets[i]];
    }
    std::int64_t tier_size(std::int64_t j) const { return tier_offsets[j + 1] - tier_offsets[j]; }
    double weight(std::int64_t j) const { return tier_weights ? tier_weights[j] : 1.0; }
};

// Inner products Z_i · Z_j for the entries i, j of a sparse pattern: row i has the columns
// columns[starts[i]] … columns[starts[i + 1] − 1].
template <class T> struct Products {
    std::int64_t rows, width;
    const std::int64_t *starts, *columns;
    const T *Z; // [rows, width]
    T *out;     // [entries]
};

template <class T> struct KernelsFor {
    void (*log_prob)(const Lists<T> &, int threads);
    void (*inner_products)(const Products<T> &, int threads);
};

struct Kernels {
    const char *name;
    KernelsFor<float> of_float;
    KernelsFor<double> of_double;

    template <class T> const KernelsFor<T> &of() const {
        if constexpr (sizeof(T) == 4)
            return of_float;
        else
            return of_double;
    }
};

const Kernels &kernels(); // of the set that this process uses

} // namespace tierrank
