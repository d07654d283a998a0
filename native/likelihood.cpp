// The likelihood of lists of tiers, for Python: tierrank.plackett_luce calls this.
#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

// A layout of tiers, checked once and used many times: every index that a kernel follows is inside.
class Layout {
  public:
    Layout(Offsets row_offsets, Offsets order, Offsets tier_offsets, Offsets list_offsets)
        : row_offsets(row_offsets), order(order), tier_offsets(tier_offsets),
          list_offsets(list_offsets) {
        require(row_offsets.shape(0) > 0 && row_offsets.shape(0) == list_offsets.shape(0),
                "row_offsets and list_offsets need one number more than there are lists");
        require(tier_offsets.shape(0) > 0, "tier_offsets need one number more than there are tiers");
        rows = row_offsets.data()[row_offsets.shape(0) - 1];
        check_offsets(row_offsets, rows, "row_offsets must rise from 0");
        check_offsets(list_offsets, std::int64_t(tier_offsets.shape(0)) - 1,
                      "list_offsets must rise from 0 to the number of upper tiers");
        check_offsets(tier_offsets, std::int64_t(order.shape(0)),
                      "tier_offsets must rise from 0 to the length of order");
        for (std::int64_t i = 0; i < lists(); ++i) {
            const std::int64_t lo = row_offsets.data()[i], hi = row_offsets.data()[i + 1];
            const std::int64_t from = tier_offsets.data()[list_offsets.data()[i]];
            const std::int64_t to = tier_offsets.data()[list_offsets.data()[i + 1]];
            bool inside = true;
            for (std::int64_t k = from; k < to; ++k)
                inside &= order.data()[k] >= lo && order.data()[k] < hi;
            require(inside, "order names a row that is not of its list");
        }
    }
    std::int64_t lists() const { return std::int64_t(list_offsets.shape(0)) - 1; }
    std::int64_t tiers() const { return std::int64_t(tier_offsets.shape(0)) - 1; }

    Offsets row_offsets, order, tier_offsets, list_offsets;
    std::int64_t rows;
};

template <class T>
void log_prob(const Layout &layout, const In<T> &scores, const In<double> &bottom,
              const In<double> &tier_weights, int threads, Out<double> log_prob, Out<T> gradient,
              Out<double> bottom_gradient) {
    const bool with_gradient = gradient.shape(0) > 0;
    const std::size_t lists = std::size_t(layout.lists());
    require(std::int64_t(scores.shape(0)) == layout.rows, "one score a row");
    require(bottom.shape(0) == 0 || bottom.shape(0) == lists, "one bottom a list, or none");
    require(tier_weights.shape(0) == 0 || std::int64_t(tier_weights.shape(0)) == layout.tiers(),
            "one weight an upper tier, or none");
    require(log_prob.shape(0) == lists, "one log-probability a list");
    require(!with_gradient || (gradient.shape(0) == scores.shape(0) && bottom_gradient.shape(0) == lists),
            "gradients as long as scores and lists");
    const Lists<T> problem{
        layout.lists(),
        layout.row_offsets.data(),
        layout.order.data(),
        layout.tier_offsets.data(),
        layout.list_offsets.data(),
        scores.data(),
        bottom.shape(0) ? bottom.data() : nullptr,
        tier_weights.shape(0) ? tier_weights.data() : nullptr,
        log_prob.data(),
        with_gradient ? gradient.data() : nullptr,
        bottom_gradient.data(),
    };
    nb::gil_scoped_release release;
    kernels().of<T>().log_prob(problem, threads);
}

} // namespace

void bind_likelihood(nb::module_ &m) {
    nb::class_<Layout>(m, "Layout").def(nb::init<Offsets, Offsets, Offsets, Offsets>());
    m.def("log_prob", &log_prob<float>);
    m.def("log_prob", &log_prob<double>);
}

} // namespace tierrank
