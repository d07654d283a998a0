// Which sets of instructions there are, which of them this machine runs, and which one is used.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "built.hpp" // by CMake: which sets there are
#include "kernels.hpp"

namespace tierrank {

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

const Kernels &choose() {
    const std::vector<const Kernels *> sets = sets_that_run();
    if (sets.empty())
        throw std::runtime_error("tierrank was not built for this machine's instructions");
    const char *asked = std::getenv("TIERRANK_INSTRUCTIONS");
    if (!asked || !*asked) return *sets.back();
    std::string known;
    for (const Kernels *set : sets) {
        if (std::string(asked) == set->name) return *set;
        known += (known.empty() ? "" : ", ") + std::string(set->name);
    }
    throw std::invalid_argument("TIERRANK_INSTRUCTIONS is " + std::string(asked) +
                                ", but this machine runs: " + known);
}

} // namespace

std::vector<const Kernels *> sets_that_run() {
    std::vector<const Kernels *> found;
#define TIERRANK_ADD(set)                                                                          \
    if (runs_here(set::kernels.name)) found.push_back(&set::kernels);
    TIERRANK_SETS(TIERRANK_ADD)
    return found;
}

const Kernels &kernels() {
    static const Kernels &chosen = choose();
    return chosen;
}

} // namespace tierrank
