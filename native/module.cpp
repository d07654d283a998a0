// tierrank._native: arrays in, arrays filled. Shapes are checked here, once; the GIL is released.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arrays.hpp"
#include "built.hpp" // by CMake
#include "kernels.hpp"

namespace tierrank {

NB_MODULE(_native, m) {
    m.doc() = "The compiled core; what it computes is documented where it is used.";
    kernels(); // a choice that cannot be met is told when the module loads
#ifdef NDEBUG
    // What others still hold when Python ends (modules that pytest keeps, say) is no leak of ours;
    // builds for debugging go on to tell.
    nb::set_leak_warnings(false);
#endif
    m.def("instructions", [] { return std::string(kernels().name); });
    m.def("all_instructions", [] {
        std::vector<std::string> names;
        for (const Kernels *set : sets_that_run()) names.emplace_back(set->name);
        return names;
    });
    m.attr("compiler") = TIERRANK_COMPILER;
    m.attr("build") = TIERRANK_BUILD;

    bind_likelihood(m);
    bind_objectives(m);
    bind_metric_objectives(m);
    bind_letor(m);
    bind_xc(m);
    bind_graphs(m);
    bind_drawing(m);
    bind_products(m);
    bind_forest(m);
    bind_pairs(m);
    bind_strict_lists(m);
    bind_stage_hessians(m);
    bind_tied_lists(m);
}

} // namespace tierrank
