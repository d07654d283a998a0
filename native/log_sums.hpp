// Log-sum-exps of scores that may lie anywhere, and tiers above them.
#pragma once

#include "integral.hpp"

namespace tierrank::TIERRANK_SET {

constexpr double NOTHING = -std::numeric_limits<double>::infinity();
constexpr double CLAMP = 60.0; // beyond ±CLAMP an item is as good as infinitely weak or strong

// lse = most + log_sum, in two parts: their sum would lose what sets apart scores near ±1e4
struct Settled {
    double most = 0.0, log_sum = NOTHING;
    bool nothing() const { return log_sum == NOTHING; }
    double distance(double w) const { return (w - most) - log_sum; }
    double share(double w) const { return std::exp(distance(w)); }
    double share(const Settled &other) const {
        return std::exp((other.most - most) + (other.log_sum - log_sum));
    }
};

// the same while it is being summed: Σ e^w = e^most · sum
struct LogSum {
    double most = NOTHING, sum = 0.0;
    void add(double w) {
        if (w <= most) {
            sum += std::exp(w - most);
        } else {
            sum = 1.0 + (sum > 0.0 ? sum * std::exp(most - w) : 0.0);
            most = w;
        }
    }
    void add(const LogSum &other) {
        if (!(other.sum > 0.0)) return;
        if (!(sum > 0.0)) {
            *this = other;
        } else if (other.most <= most) {
            sum += other.sum * std::exp(other.most - most);
        } else {
            sum = other.sum + sum * std::exp(most - other.most);
            most = other.most;
        }
    }
    Settled settled() const { return sum > 0.0 ? Settled{most, std::log(sum)} : Settled{}; }
};

// A tier over what is below it, with d held in ±CLAMP. Under −CLAMP the factor 1 − e^−z is z itself,
// so log P has lost its linear part, `missed`.
template <class T> struct Held {
    Tier<T> tier;
    double missed;
};
template <class T>
Held<T> hold(const T *scores, const std::int64_t *rows, std::int64_t size, const Settled &below,
             T *worth, T *score) {
    double missed = 0.0;
    for (std::int64_t a = 0; a < size; ++a) {
        const double d = below.distance(double(scores[rows[a]]));
        missed += std::min(d + CLAMP, 0.0);
        score[a] = T(std::clamp(d, -CLAMP, CLAMP));
        worth[a] = T(std::exp(double(score[a])));
    }
    for (std::int64_t a = size; a < padded(size); ++a) worth[a] = score[a] = T(0);
    return {{worth, score, size, 0.0, 1.0, 0.0}, missed};
}

} // namespace tierrank::TIERRANK_SET
