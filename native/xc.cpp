// The pass over an XC file, for Python: tierrank.data.xc calls this.
#include "xc.hpp"

#include "arrays.hpp"

namespace tierrank {
namespace {

const text::Byte *bytes_of(const nb::bytes &text) {
    return reinterpret_cast<const text::Byte *>(text.c_str());
}

nb::tuple tally_xc(const nb::bytes &text, std::int64_t from) {
    const auto size = std::int64_t(text.size());
    require(from >= 0 && from <= size, "the rows start outside of the text");
    xc::Tally found;
    {
        nb::gil_scoped_release release;
        found = xc::tally(bytes_of(text) + from, bytes_of(text) + size);
    }
    return nb::make_tuple(found.newlines, found.colons, found.commas);
}

xc::Pass scan_xc(const nb::bytes &text, std::int64_t from, bool with_labels, int base,
                 std::int64_t n_features, std::int64_t n_labels, Out<std::int64_t> label_ends,
                 Out<std::int32_t> labels, Out<std::int64_t> row_ends, Out<std::int32_t> indices,
                 Out<float> values) {
    require(row_ends.shape(0) > 0 && label_ends.shape(0) == row_ends.shape(0),
            "label_ends and row_ends need one number more than there are rows");
    require(indices.shape(0) == values.shape(0), "as many indices as values");
    require(base == 0 || base == 1, "indices start at 0 or 1");
    const xc::Arrays arrays{
        std::int64_t(row_ends.shape(0)) - 1,
        std::int64_t(values.shape(0)),
        std::int64_t(labels.shape(0)),
        label_ends.data(),
        labels.data(),
        row_ends.data(),
        indices.data(),
        values.data(),
    };
    const xc::Rules rules{with_labels, base, n_features, n_labels};
    const text::Byte *start = bytes_of(text);
    const auto size = std::int64_t(text.size());
    nb::gil_scoped_release release;
    return xc::scan(start, size, from, rules, arrays);
}

} // namespace

void bind_xc(nb::module_ &m) {
    using xc::Fault, xc::Pass;
    nb::enum_<Fault>(m, "XCFault")
        .value("FINE", Fault::fine)
        .value("BAD_LABEL", Fault::bad_label)
        .value("LARGE_LABEL", Fault::large_label)
        .value("LABEL_TWICE", Fault::label_twice)
        .value("BAD_INDEX", Fault::bad_index)
        .value("LARGE_INDEX", Fault::large_index)
        .value("ZERO_INDEX", Fault::zero_index)
        .value("TWICE", Fault::twice)
        .value("BAD_VALUE", Fault::bad_value);
    nb::class_<Pass>(m, "XCPass")
        .def_ro("fault", &Pass::fault)
        .def_ro("fault_at", &Pass::fault_at)
        .def_ro("rows", &Pass::rows)
        .def_ro("filled_rows", &Pass::filled_rows)
        .def_ro("labels", &Pass::labels)
        .def_ro("entries", &Pass::entries)
        .def_ro("largest_label", &Pass::largest_label)
        .def_ro("largest_column", &Pass::largest_column)
        .def_ro("unsorted_labels", &Pass::unsorted_labels)
        .def_ro("unsorted", &Pass::unsorted)
        .def_prop_ro("left", [](const Pass &pass) { return as_tuples(pass.left); });
    m.def("tally_xc", &tally_xc, "text"_a, "start"_a);
    m.def("scan_xc", &scan_xc, "text"_a, "start"_a, "with_labels"_a, "base"_a, "n_features"_a,
          "n_labels"_a, "label_ends"_a.noconvert(), "labels"_a.noconvert(),
          "row_ends"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert());
}

} // namespace tierrank
