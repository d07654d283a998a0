// Items drawn one by one from mixtures of topics, for Python: tierrank.data.synthetic calls this.
#include <string_view>

#include "arrays.hpp"

namespace tierrank {
namespace {

// What numpy's bit generators hand out in a capsule (numpy/random/bitgen.h, since numpy 1.17): a
// uniform number of [0, 1) is the same as from Generator.random.
struct BitGenerator {
    void *state;
    std::uint64_t (*next_uint64)(void *);
    std::uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    std::uint64_t (*next_raw)(void *);

    double uniform() const { return next_double(state); }
};

// Fill rows with different items, and with how often each was drawn.
//
// A draw takes one of the row's topics, then one of that topic's members. Drawing with replacement and
// passing over what is there already is drawing without replacement: each new item comes with a
// probability proportional to its worth among those that are left.
void draw_rows(const nb::capsule &bit_generator, const Offsets &offsets,
               const Matrix<const std::int64_t> &topics, const Matrix<const double> &running_weights,
               const Offsets &topic_offsets, const In<std::int32_t> &members,
               const In<double> &running_worths, Out<std::int64_t> last_place,
               Out<std::int32_t> items, Out<float> times) {
    require(bit_generator.name() && std::string_view(bit_generator.name()) == "BitGenerator",
            "not the capsule of a bit generator of numpy");
    const std::int64_t rows = std::int64_t(topics.shape(0)), slots = std::int64_t(topics.shape(1));
    require(slots > 0 && running_weights.shape(0) == topics.shape(0) &&
                running_weights.shape(1) == topics.shape(1),
            "topics and running_weights [rows, slots], with a slot or more");
    require(std::int64_t(offsets.shape(0)) == rows + 1, "offsets with one number more than rows");
    require(topic_offsets.shape(0) > 0, "topic_offsets with one number more than topics");
    check_offsets(topic_offsets, std::int64_t(members.shape(0)),
                  "topic_offsets must rise from 0 to the number of members");
    require(running_worths.shape(0) == members.shape(0) + 1, "running_worths with one number more than members");
    require(items.shape(0) == times.shape(0), "as many times as items");
    const std::int64_t n_topics = std::int64_t(topic_offsets.shape(0)) - 1;
    const std::int64_t n_items = std::int64_t(last_place.shape(0)), room = std::int64_t(items.shape(0));
    const auto &random = *static_cast<const BitGenerator *>(bit_generator.data());
    const double *worth = running_worths.data();
    std::int64_t *placed = last_place.data();

    nb::gil_scoped_release release;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t begin = offsets.data()[row], end = offsets.data()[row + 1];
        const std::int64_t *const topic_of = topics.data() + row * slots;
        const double *const weight = running_weights.data() + row * slots;
        require(begin >= 0 && end <= room, "a row fills places that are not there");
        for (std::int64_t at = begin; at < end;) {
            const double which = random.uniform();
            std::int64_t slot = 0;
            while (slot < slots - 1 && weight[slot] <= which) ++slot;
            const std::int64_t topic = topic_of[slot];
            require(topic >= 0 && topic < n_topics, "a row has a topic that is not there");
            std::int64_t low = topic_offsets.data()[topic], high = topic_offsets.data()[topic + 1] - 1;
            require(low <= high, "a topic has no members");
            const double bottom = worth[low], top = worth[high + 1];
            const double target = bottom + random.uniform() * (top - bottom);
            while (low < high) { // for the member whose part of the running sum has the target
                const std::int64_t middle = (low + high) >> 1;
                if (worth[middle + 1] <= target)
                    low = middle + 1;
                else
                    high = middle;
            }
            const std::int32_t item = members.data()[low];
            require(item >= 0 && item < n_items, "a topic has a member that is not there");
            const std::int64_t place = placed[item];
            if (place < begin) { // not in this row yet: places only grow
                placed[item] = at;
                items.data()[at] = item;
                times.data()[at] = 1;
                ++at;
            } else {
                require(place < at, "last_place is beyond the rows that are filled");
                times.data()[place] += 1;
            }
        }
    }
}

} // namespace

void bind_drawing(nb::module_ &m) {
    m.def("draw_rows", &draw_rows, "bit_generator"_a, "offsets"_a.noconvert(),
          "topics"_a.noconvert(), "running_weights"_a.noconvert(), "topic_offsets"_a.noconvert(),
          "members"_a.noconvert(), "running_worths"_a.noconvert(), "last_place"_a.noconvert(),
          "items"_a.noconvert(), "times"_a.noconvert());
}

} // namespace tierrank
