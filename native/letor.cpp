// The pass over a LETOR file, for Python: tierrank.data.letor calls this.
#include "letor.hpp"

#include "arrays.hpp"

namespace tierrank {
namespace {

letor::Pass scan_letor(const nb::bytes &text, double missing, Out<double> labels,
                       Out<std::int64_t> qids, Matrix<std::int64_t> spans,
                       Matrix<std::int64_t> comments, Out<std::int64_t> row_ends,
                       Out<std::int32_t> indices, Out<double> values) {
    const std::size_t rows = labels.shape(0);
    require(qids.shape(0) == rows && spans.shape(0) == rows && spans.shape(1) == 3 &&
                row_ends.shape(0) == rows + 1,
            "qids [rows], spans [rows, 3] and row_ends [rows + 1] with as many rows as labels");
    require(comments.shape(1) == 2 && (comments.shape(0) == 0 || comments.shape(0) == rows),
            "comments [rows, 2], or none");
    require(indices.shape(0) == values.shape(0), "as many indices as values");
    const letor::Arrays arrays{
        std::int64_t(rows),
        std::int64_t(values.shape(0)),
        labels.data(),
        qids.data(),
        spans.data(),
        comments.shape(0) ? comments.data() : nullptr,
        row_ends.data(),
        indices.data(),
        values.data(),
    };
    const auto *start = reinterpret_cast<const text::Byte *>(text.c_str());
    const auto size = std::int64_t(text.size());
    nb::gil_scoped_release release;
    return letor::scan(start, size, missing, arrays);
}

// Put the entries of every row into a matrix of zeros; keeps the sign of −0.
void spread(const Offsets &row_ends, const In<std::int32_t> &indices, std::int32_t base,
            const In<double> &values, Matrix<double> matrix) {
    check_offsets(row_ends, std::int64_t(indices.shape(0)), "row_ends must rise from 0 to the entries");
    require(values.shape(0) == indices.shape(0), "as many values as indices");
    require(matrix.shape(0) == row_ends.shape(0) - 1, "as many rows as row_ends say");
    const std::int64_t rows = std::int64_t(matrix.shape(0)), columns = std::int64_t(matrix.shape(1));
    nb::gil_scoped_release release;
    for (std::int64_t row = 0; row < rows; ++row) {
        double *const to = matrix.data() + row * columns;
        for (std::int64_t i = row_ends.data()[row]; i < row_ends.data()[row + 1]; ++i) {
            const std::int64_t column = std::int64_t(indices.data()[i]) - base;
            require(column >= 0 && column < columns, "an index is outside of the matrix");
            to[column] = values.data()[i];
        }
    }
}

} // namespace

void bind_letor(nb::module_ &m) {
    using letor::Fault, letor::Pass;
    nb::enum_<Fault>(m, "LetorFault")
        .value("FINE", Fault::fine)
        .value("BAD_LABEL", Fault::bad_label)
        .value("BAD_QID", Fault::bad_qid)
        .value("BAD_INDEX", Fault::bad_index)
        .value("LARGE_INDEX", Fault::large_index)
        .value("TWICE", Fault::twice)
        .value("BAD_VALUE", Fault::bad_value);
    nb::class_<Pass>(m, "LetorPass")
        .def_ro("fault", &Pass::fault)
        .def_ro("fault_at", &Pass::fault_at)
        .def_ro("rows", &Pass::rows)
        .def_ro("entries", &Pass::entries)
        .def_ro("rows_with_qid", &Pass::rows_with_qid)
        .def_ro("first_without_qid", &Pass::first_without_qid)
        .def_ro("other_qids", &Pass::other_qids)
        .def_ro("unsorted", &Pass::unsorted)
        .def_ro("first_zero", &Pass::first_zero)
        .def_ro("largest", &Pass::largest)
        .def_ro("largest_at", &Pass::largest_at)
        .def_prop_ro("left", [](const Pass &pass) { return as_tuples(pass.left); });
    m.attr("LARGEST_LETOR_INDEX") = letor::LARGEST_INDEX;
    m.def("scan_letor", &scan_letor, "text"_a, "missing"_a, "labels"_a.noconvert(),
          "qids"_a.noconvert(), "spans"_a.noconvert(), "comments"_a.noconvert(),
          "row_ends"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert());
    m.def("spread", &spread, "row_ends"_a.noconvert(), "indices"_a.noconvert(), "base"_a,
          "values"_a.noconvert(), "matrix"_a.noconvert());
}

} // namespace tierrank
