// Inner products at the entries of a sparse pattern, for Python: LEML and SLEEC call this.
#include "arrays.hpp"
#include "kernels.hpp"

namespace tierrank {
namespace {

void inner_products(const Offsets &starts, const In<std::int64_t> &columns, const Matrix<const double> &Z,
                    Out<double> out, int threads) {
    const std::int64_t rows = std::int64_t(Z.shape(0));
    require(std::int64_t(starts.shape(0)) == rows + 1, "starts with one number more than rows");
    check_offsets(starts, std::int64_t(columns.shape(0)), "starts must rise from 0 to the entries");
    check_indices(columns, rows, "a column is outside of the matrix");
    require(out.shape(0) == columns.shape(0), "one product an entry");
    const Products<double> problem{rows,     std::int64_t(Z.shape(1)), starts.data(), columns.data(),
                                   Z.data(), out.data()};
    nb::gil_scoped_release release;
    kernels().of<double>().inner_products(problem, threads);
}

} // namespace

void bind_products(nb::module_ &m) {
    m.def("inner_products", &inner_products, "starts"_a.noconvert(), "columns"_a.noconvert(),
          "Z"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

} // namespace tierrank
