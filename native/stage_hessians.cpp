// Diagonals of Hessians of losses made of log-sum-exps in stages, for tierrank.ranking.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "threads.hpp"

namespace tierrank {
namespace {

enum class Draws { breslow, efron, one }; // how often, and from what, a tier's items are drawn

// ∂²/∂w² of Σ_m Σ_l log A_ml over a list's tiers first … last, for the sums A that items are drawn
// from. Rows are sorted by tier, best first.
//
// With R_m all of tier m and below, A_ml is Σ_{R_m} e^w: once for each of the tier's n items
// (breslow: PL-LB), or once (one: PMOP-FD); or less (l/n) Σ_{S_m} e^w for l < n (efron). An item with
// the share s of A adds s (1 − s). Relative to lse(R_m), that is e^w Σ 1/A − e^2w Σ 1/A², and the two
// sums are carried down, as the lse shrinks.
void diagonal_of_list(const double *rows, const std::int64_t *tier_offsets, std::int64_t first,
                   std::int64_t last, Draws draws, std::vector<double> &lse, double *out) {
    lse.resize(last - first + 1);
    double running = -std::numeric_limits<double>::infinity();
    for (std::int64_t m = last; m >= first; --m) {
        const double *from = rows + tier_offsets[m], *to = rows + tier_offsets[m + 1];
        double largest = running, total = 0.0;
        for (const double *row = from; row < to; ++row) largest = std::max(largest, *row);
        total = std::exp(running - largest);
        for (const double *row = from; row < to; ++row) total += std::exp(*row - largest);
        lse[m - first] = running = largest + std::log(total);
    }
    double owed = 0.0, owed_square = 0.0;
    for (std::int64_t m = first; m <= last; ++m) {
        const std::int64_t start = tier_offsets[m], stop = tier_offsets[m + 1], size = stop - start;
        const double here = lse[m - first];
        double own = 0.0, own_square = 0.0, low = 0.0, low_square = 0.0, tier_share = 0.0;
        for (std::int64_t row = start; row < stop; ++row) {
            out[row] = std::exp(rows[row] - here); // its share, for now
            tier_share += out[row];
        }
        if (m < last)
            for (std::int64_t drawn = 0; drawn < (draws == Draws::one ? 1 : size); ++drawn) {
                const double gone = draws == Draws::efron ? double(drawn) / double(size) : 0.0;
                const double inverse = 1.0 / (1.0 - gone * tier_share);
                const double kept = (1.0 - gone) * inverse;
                own += kept;
                own_square += kept * kept;
                low += inverse;
                low_square += inverse * inverse;
            }
        for (std::int64_t row = start; row < stop; ++row) {
            const double share = out[row];
            out[row] = share * (owed + own) - share * share * (owed_square + own_square);
        }
        if (m < last) {
            const double shrink = std::exp(lse[m + 1 - first] - here);
            owed = (owed + low) * shrink;
            owed_square = (owed_square + low_square) * shrink * shrink;
        }
    }
}

void stage_hessians(const std::string &kind, const In<double> &rows, const Offsets &tier_offsets,
                 const Offsets &list_offsets, int threads, Out<double> out) {
    require(kind == "breslow" || kind == "efron" || kind == "one draw",
            "draws are breslow, efron or one draw");
    const Draws draws = kind == "breslow" ? Draws::breslow
                        : kind == "efron" ? Draws::efron
                                          : Draws::one;
    require(tier_offsets.shape(0) > 0 && list_offsets.shape(0) > 0, "offsets begin with 0");
    check_offsets(tier_offsets, std::int64_t(rows.shape(0)), "tier_offsets must rise from 0 to the rows");
    check_offsets(list_offsets, std::int64_t(tier_offsets.shape(0)) - 1,
                  "list_offsets must rise from 0 to the tiers");
    require(out.shape(0) == rows.shape(0), "one result a row");
    const std::int64_t *tiers = tier_offsets.data(), *lists = list_offsets.data();
    const std::int64_t count = std::int64_t(list_offsets.shape(0)) - 1;
    nb::gil_scoped_release release;

    // a range of lists is worth handing over from some thousand rows; a list is one thread's
    constexpr std::int64_t ENOUGH = 4096;
    std::vector<std::int64_t> ends{0};
    for (std::int64_t i = 1; i <= count; ++i)
        if (i == count || tiers[lists[i]] - tiers[lists[ends.back()]] >= ENOUGH) ends.push_back(i);
    parallel(std::int64_t(ends.size()) - 1, threads, [&](std::int64_t k) {
        std::vector<double> lse;
        for (std::int64_t i = ends[k]; i < ends[k + 1]; ++i)
            if (lists[i] < lists[i + 1])
                diagonal_of_list(rows.data(), tiers, lists[i], lists[i + 1] - 1, draws, lse, out.data());
    });
}

} // namespace

void bind_stage_hessians(nb::module_ &m) {
    m.def("stage_hessians", &stage_hessians, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
}

} // namespace tierrank
