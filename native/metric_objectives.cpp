// Objectives for a metric, for Python: tierrank.losses.metric calls this.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

using Maybe = std::optional<Out<double>>;

PairWeighting weighting_of(const std::string &name) {
    if (name == "ranknet") return PairWeighting::ranknet;
    if (name == "lambdarank") return PairWeighting::lambdarank;
    if (name == "ndcg-loss1") return PairWeighting::ndcg_loss1;
    if (name == "ndcg-loss2") return PairWeighting::ndcg_loss2;
    if (name == "ndcg-loss2++") return PairWeighting::ndcg_loss2pp;
    throw std::invalid_argument("pairs are not weighted by " + name);
}

SwapMetric metric_of(const std::string &name) {
    if (name == "ndcg") return SwapMetric::ndcg;
    if (name == "map") return SwapMetric::map;
    if (name == "mrr") return SwapMetric::mrr;
    if (name == "precision") return SwapMetric::precision;
    throw std::invalid_argument("swaps do not change " + name);
}

double *one_a_row(const Maybe &given, std::size_t rows) {
    require(!given || given->shape(0) == rows, "one number a row, or none");
    return given ? given->data() : nullptr;
}

MetricLists lists_of(const Offsets &offsets, const In<double> &scores, const In<double> &gains,
                     const Out<double> &value, const Maybe &gradient) {
    const std::size_t rows = scores.shape(0);
    check_offsets(offsets, std::int64_t(rows), "offsets must rise from 0 to the number of rows");
    require(gains.shape(0) == rows, "one gain a row");
    require(value.shape(0) + 1 == offsets.shape(0), "one value a list");
    bool finite = true; // else they could not be sorted
    for (std::size_t i = 0; i < rows; ++i) finite &= std::isfinite(scores.data()[i]);
    require(finite, "scores must be finite");
    return {std::int64_t(value.shape(0)), offsets.data(), scores.data(), gains.data(), value.data(),
            one_a_row(gradient, rows)};
}

void lambda_loss(const std::string &weighting, const std::string &metric, std::int64_t k, double sigma, double mu,
                 const Offsets &offsets, const Offsets &tiers, const In<double> &scores, const In<double> &gains,
                 int threads, const Out<double> &value, const Maybe &gradient, const Maybe &hessian) {
    const LambdaLists lists{lists_of(offsets, scores, gains, value, gradient),
                            tiers.data(), weighting_of(weighting), metric_of(metric), k, sigma, mu,
                            one_a_row(hessian, scores.shape(0))};
    require(tiers.shape(0) == scores.shape(0), "one tier a row");
    require(k >= 1, "k counts from 1");
    nb::gil_scoped_release release;
    kernels().lambda_loss(lists, threads);
}

void approx_ndcg(double temperature, const Offsets &offsets, const In<double> &scores, const In<double> &gains,
                 int threads, const Out<double> &value, const Maybe &gradient) {
    const MetricLists lists = lists_of(offsets, scores, gains, value, gradient);
    nb::gil_scoped_release release;
    kernels().approx_ndcg(lists, temperature, threads);
}

void expected_dcg(std::int64_t k, double fineness, const Offsets &offsets, const In<double> &scores,
                  const In<double> &gains, int threads, const Out<double> &value, const Maybe &gradient) {
    const MetricLists lists = lists_of(offsets, scores, gains, value, gradient);
    require(k >= 1, "k counts from 1");
    require(fineness >= 0.1 && fineness <= 2.0, "the step is a tenth to twice the usual one");
    nb::gil_scoped_release release;
    kernels().expected_dcg(lists, k, fineness, threads);
}

} // namespace

// Arrays are taken as they are, never converted: what fills a copy would be lost.
void bind_metric_objectives(nb::module_ &m) {
    m.def("lambda_loss", &lambda_loss, "weighting"_a, "metric"_a, "k"_a, "sigma"_a, "mu"_a,
          "offsets"_a.noconvert(), "tiers"_a.noconvert(), "scores"_a.noconvert(), "gains"_a.noconvert(), "threads"_a,
          "value"_a.noconvert(), "gradient"_a.noconvert().none() = nb::none(),
          "hessian"_a.noconvert().none() = nb::none());
    m.def("approx_ndcg", &approx_ndcg, "temperature"_a, "offsets"_a.noconvert(), "scores"_a.noconvert(),
          "gains"_a.noconvert(), "threads"_a, "value"_a.noconvert(), "gradient"_a.noconvert().none() = nb::none());
    m.def("expected_dcg", &expected_dcg, "k"_a, "fineness"_a, "offsets"_a.noconvert(), "scores"_a.noconvert(),
          "gains"_a.noconvert(), "threads"_a, "value"_a.noconvert(), "gradient"_a.noconvert().none() = nb::none());
}

} // namespace tierrank
