// tierrank._native: arrays in, arrays filled. Shapes are checked here, once; the GIL is released.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "built.hpp" // by CMake: which sets of instructions there are
#include "kernels.hpp"

namespace tierrank {

// Sets of instructions ----------------------------------------------------------------------------

#define TIERRANK_DECLARE(set)                                                                      \
    namespace set {                                                                                \
    extern const Kernels kernels;                                                                  \
    }
TIERRANK_SETS(TIERRANK_DECLARE)

namespace {

bool runs_here([[maybe_unused]] const std::string &name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (name == "x86_64_v4")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (name == "x86_64_v3") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (name == "x86_64_v2") return __builtin_cpu_supports("sse4.2");
#endif
    return true;
}

// from the plainest to the widest
std::vector<const Kernels *> sets() {
#define TIERRANK_ADDRESS(set) &set::kernels,
    return {TIERRANK_SETS(TIERRANK_ADDRESS)};
}

const Kernels *choose() {
    const char *asked = std::getenv("TIERRANK_INSTRUCTIONS");
    const Kernels *best = nullptr;
    std::string known;
    for (const Kernels *set : sets()) {
        const bool runs = runs_here(set->name);
        if (runs) known += (known.empty() ? "" : ", ") + std::string(set->name);
        if (asked && *asked) {
            if (runs && std::string(asked) == set->name) return set;
        } else if (runs) {
            best = set;
        }
    }
    if (asked && *asked)
        throw std::invalid_argument("TIERRANK_INSTRUCTIONS is " + std::string(asked) +
                                    ", but this machine runs: " + known);
    if (!best) throw std::runtime_error("tierrank was not built for this machine's instructions");
    return best;
}

const Kernels *chosen = nullptr;

} // namespace

const Kernels &kernels() { return *chosen; }

NB_MODULE(_native, m) {
    m.doc() = "The compiled core; what it computes is documented where it is used.";
    chosen = choose();
    m.def("instructions", [] { return std::string(kernels().name); });
    m.def("all_instructions", [] {
        std::vector<std::string> names;
        for (const Kernels *set : sets())
            if (runs_here(set->name)) names.emplace_back(set->name);
        return names;
    });
    m.attr("compiler") = TIERRANK_COMPILER;

    bind_likelihood(m);
    bind_objectives(m);
    bind_letor(m);
    bind_xc(m);
    bind_graphs(m);
    bind_drawing(m);
    bind_products(m);
    bind_forest(m);
    bind_pairs(m);
    bind_strict_lists(m);
    bind_stage_bends(m);
    bind_tied_lists(m);
}

} // namespace tierrank
