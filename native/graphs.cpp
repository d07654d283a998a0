// Passes over graphs that go one node after the other, for Python: tierrank.tiers and
// tierrank.aggregation call these.
#include <algorithm>

#include "arrays.hpp"

namespace tierrank {
namespace {

// Kahn's algorithm: take nodes that wait for no other, and free those below them.
//
// Fills `order` and `layer`, counts `waiting` down, and gives the first graph that has a cycle, or −1.
std::int64_t kahn(const Offsets &node_offsets, const Offsets &edge_offsets,
                  const In<std::int64_t> &below, Out<std::int64_t> waiting, Out<std::int64_t> order,
                  Out<std::int64_t> layer) {
    const std::int64_t nodes = std::int64_t(order.shape(0)), graphs = std::int64_t(node_offsets.shape(0)) - 1;
    require(std::int64_t(waiting.shape(0)) == nodes && std::int64_t(layer.shape(0)) == nodes,
            "waiting, order and layer with one number a node");
    check_offsets(node_offsets, nodes, "node_offsets must rise from 0 to the number of nodes");
    require(std::int64_t(edge_offsets.shape(0)) == nodes + 1, "edge_offsets with one number more than nodes");
    check_offsets(edge_offsets, std::int64_t(below.shape(0)),
                  "edge_offsets must rise from 0 to the number of edges");
    const std::int64_t *first_node = node_offsets.data(), *first_edge = edge_offsets.data();
    std::int64_t *wait = waiting.data(), *taken = order.data(), *depth = layer.data();
    nb::gil_scoped_release release;
    for (std::int64_t graph = 0; graph < graphs; ++graph) {
        const std::int64_t start = first_node[graph], end = first_node[graph + 1];
        std::int64_t found = start;
        for (std::int64_t node = start; node < end; ++node) {
            depth[node] = 0;
            if (wait[node] == 0) taken[found++] = node;
        }
        for (std::int64_t done = start; done < found; ++done) {
            const std::int64_t node = taken[done];
            for (std::int64_t edge = first_edge[node]; edge < first_edge[node + 1]; ++edge) {
                const std::int64_t other = below.data()[edge];
                require(other >= start && other < end, "an edge leads out of its graph");
                depth[other] = std::max(depth[other], depth[node] + 1);
                // no node comes to 0 twice, so there is room for all that do
                if (wait[other] > 0 && --wait[other] == 0) taken[found++] = other;
            }
        }
        if (found < end) return graph;
    }
    return -1;
}

// Sort lists with a rest into a chain of nested ones, and those that have an edge to it.
//
// Each list's items T stand above everything else. Go through the lists, the shortest first, and keep
// the last link C of a chain. If T holds all of C, T is the next link. If not, give T edges to the items
// of C that it does not name. These stand above everything outside C, so from there a path leads to all
// that T does not name, and no edge is needed for it. As C is not longer than T, edges are no more than
// entries.
//
// Fills `joined` (the link with which an item entered the chain, or −1), `link` (that a list is, or −1)
// and the edges, and gives the number of edges and of links.
nb::tuple nest_lists(const In<std::int64_t> &by_size, const Offsets &list_starts,
                     const In<std::int32_t> &items, Out<std::int32_t> joined, Out<std::int32_t> link,
                     Out<std::int32_t> edge_list, Out<std::int32_t> edge_item) {
    const std::int64_t lists = std::int64_t(link.shape(0)), n_items = std::int64_t(joined.shape(0));
    require(std::int64_t(list_starts.shape(0)) == lists + 1, "list_starts with one number more than lists");
    check_offsets(list_starts, std::int64_t(items.shape(0)), "list_starts must rise from 0 to the entries");
    check_indices(by_size, lists, "by_size names a list that is not there");
    require(edge_list.shape(0) == edge_item.shape(0), "as many ends of edges as starts");
    const std::int64_t room = std::int64_t(edge_list.shape(0));
    bool inside = true;
    for (std::size_t i = 0; i < items.shape(0); ++i)
        inside &= items.data()[i] >= 0 && items.data()[i] < n_items;
    require(inside, "a list names an item that is not there");

    std::int64_t edges = 0;
    std::int32_t links = 0;
    {
        nb::gil_scoped_release release;
        const std::int32_t *item = items.data();
        const std::int64_t *starts = list_starts.data();
        std::int32_t *entered = joined.data();
        std::fill_n(entered, n_items, -1);
        std::fill_n(link.data(), lists, -1);
        std::vector<std::int64_t> seen_by(std::size_t(n_items), -1);
        std::int64_t size = 0, last = -1;
        for (std::size_t i = 0; i < by_size.shape(0); ++i) {
            const std::int64_t one = by_size.data()[i], start = starts[one], end = starts[one + 1];
            std::int64_t common = 0;
            for (std::int64_t k = start; k < end; ++k) {
                seen_by[std::size_t(item[k])] = one;
                common += entered[item[k]] >= 0;
            }
            if (common == size) { // so it is for the first list
                if (end - start > size) ++links;
                for (std::int64_t k = start; k < end; ++k)
                    if (entered[item[k]] < 0) entered[item[k]] = links - 1;
                link.data()[one] = links - 1;
                last = one, size = end - start;
            } else {
                for (std::int64_t k = starts[last]; k < starts[last + 1]; ++k) {
                    if (seen_by[std::size_t(item[k])] == one) continue;
                    require(edges < room, "more edges than entries: by_size must begin with the shortest");
                    edge_list.data()[edges] = std::int32_t(one);
                    edge_item.data()[edges] = item[k];
                    ++edges;
                }
            }
        }
    }
    return nb::make_tuple(edges, links);
}

} // namespace

void bind_graphs(nb::module_ &m) {
    m.def("kahn", &kahn, "node_offsets"_a.noconvert(), "edge_offsets"_a.noconvert(),
          "below"_a.noconvert(), "waiting"_a.noconvert(), "order"_a.noconvert(),
          "layer"_a.noconvert());
    m.def("nest_lists", &nest_lists, "by_size"_a.noconvert(), "list_starts"_a.noconvert(),
          "items"_a.noconvert(), "joined"_a.noconvert(), "link"_a.noconvert(),
          "edge_list"_a.noconvert(), "edge_item"_a.noconvert());
}

} // namespace tierrank
