// One pass over the rows of an XC file: `label,label,… index:value index:value …`.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "decimals.hpp"

namespace tierrank::xc {

using text::Byte;

inline constexpr std::int64_t MOST_COLUMNS = 2147483647; // 2^31 − 1

enum class Fault {
    fine,
    bad_label,
    large_label,
    label_twice,
    bad_index,
    large_index,
    zero_index,
    twice,
    bad_value,
};

// What the rows of a file keep to.
struct Rules {
    bool with_labels; // a row begins with its labels: what stands at the very start of the line,
                      // unless that is `index:value`
    int base;         // the first index: 0 or 1
    std::int64_t features, labels; // what indices and labels must stay below
};

// Arrays to fill.
struct Arrays {
    std::int64_t rows, entries, label_entries; // that there is room for
    std::int64_t *label_ends;                  // [rows + 1] not filled without labels
    std::int32_t *labels;                      // [label entries]
    std::int64_t *row_ends;                    // [rows + 1] ranges of entries
    std::int32_t *indices;                     // [entries] from 0
    float *values;                             // [entries]
};

// What a pass finds out. Places count from the start of the text.
struct Pass {
    Fault fault = Fault::fine; // the first: the pass ends there
    std::int64_t fault_at = -1;
    std::int64_t rows = 0, labels = 0, entries = 0;
    std::int64_t filled_rows = 0; // without those at the end that have nothing
    std::int64_t largest_label = -1, largest_column = -1;
    bool unsorted_labels = false, unsorted = false; // some row's do not ascend
    std::vector<text::Left> left;                   // numbers whose float is left to Python
};

// What rows, entries and labels are at most.
struct Tally {
    std::int64_t newlines = 0, colons = 0, commas = 0;
};

inline Tally tally(const Byte *at, const Byte *end) {
    Tally all;
    while (at < end) { // in counters of one byte, which are vectorised best, as far as these reach
        const Byte *const stop = end - at > 255 ? at + 255 : end;
        std::uint8_t newlines = 0, colons = 0, commas = 0;
        for (; at < stop; ++at) {
            newlines += *at == '\n';
            colons += *at == ':';
            commas += *at == ',';
        }
        all.newlines += newlines;
        all.colons += colons;
        all.commas += commas;
    }
    return all;
}

// Whether the float next to a double may not be the one next to what was written: the double is
// halfway between two of them; and, to be short, where their spacing is another one.
inline bool rounds_twice(double value) {
    constexpr std::uint64_t no_place = (1u << 29) - 1, halfway = 1u << 28; // the bits a float loses
    if ((std::bit_cast<std::uint64_t>(value) & no_place) == halfway) return true;
    const double size = std::abs(value);
    using Float = std::numeric_limits<float>;
    return size > double(Float::max()) || (size < double(Float::min()) && size > 0.0);
}

// Digits as a number, no larger than what is just too large; moves to where they end.
inline std::int64_t column_number(const Byte *&at) {
    std::int64_t value = 0;
    for (; text::is_digit(*at); ++at)
        if (value <= MOST_COLUMNS) value = value * 10 + (*at - '0');
    return std::min(value, MOST_COLUMNS + 1);
}

// Fill the arrays from the lines of a text that start at a place, and stop at the first fault. Every
// line is a row, a blank one too.
inline Pass scan(const Byte *const start, std::int64_t size, std::int64_t from, const Rules &rules,
                 const Arrays &to) {
    using text::Kind;
    text::check_end(start, size);
    if (from < 0 || from > size) throw std::invalid_argument("the rows start outside of the text");
    if (rules.features > MOST_COLUMNS || rules.labels > MOST_COLUMNS)
        throw std::invalid_argument("more columns than 32 bits can number");
    const text::Powers &powers = text::powers_of_five();
    Pass found;
    std::int64_t row = 0, entry = 0, label_entry = 0;
    const Byte *at = start + from, *const end = start + size;
    const auto stop = [&](Fault fault, const Byte *token) {
        found.fault = fault;
        found.fault_at = token - start;
        return found;
    };
    const auto ends_labels = [](Byte byte) { return text::is_blank(byte) || byte == '\n'; };
    to.row_ends[0] = 0;
    if (rules.with_labels) to.label_ends[0] = 0;
    while (at < end) {
        text::check_room(row, to.rows);
        const std::int64_t before = entry + label_entry;
        if (rules.with_labels) {
            const Byte *const line = at;
            std::int64_t previous = -1;
            while (!ends_labels(*at)) {
                const Byte *const token = at;
                const std::int64_t label = column_number(at);
                if (*at == ':' && token == line) { // no labels, and the first feature
                    at = line;
                    break;
                }
                if (at == token || !(*at == ',' || ends_labels(*at)))
                    return stop(Fault::bad_label, token);
                if (label >= rules.labels) return stop(Fault::large_label, token);
                if (label <= previous) {
                    if (label == previous) return stop(Fault::label_twice, token);
                    found.unsorted_labels = true;
                }
                previous = label;
                found.largest_label = std::max(found.largest_label, label);
                text::check_room(label_entry, to.label_entries);
                to.labels[label_entry++] = std::int32_t(label);
                if (*at == ',') {
                    ++at;
                    if (ends_labels(*at)) return stop(Fault::bad_label, at);
                }
            }
            to.label_ends[row + 1] = label_entry;
        }
        std::int64_t previous = -1;
        at = text::skip_blanks(at);
        while (*at != '\n') {
            const Byte *const token = at;
            const std::int64_t column = column_number(at) - rules.base;
            if (at == token || *at != ':') return stop(Fault::bad_index, token);
            if (column < 0) return stop(Fault::zero_index, token);
            if (column >= rules.features) return stop(Fault::large_index, token);
            const Byte *const written = at + 1;
            const text::Number value = text::number(written, powers);
            at = value.end;
            const bool for_python = value.kind == Kind::for_python;
            if (!for_python && !(value.kind == Kind::number && std::isfinite(value.value)))
                return stop(Fault::bad_value, token);
            const bool left = for_python || rounds_twice(value.value);
            if (left) found.left.push_back({entry, written - start, at - start});
            if (column <= previous) {
                if (column == previous) return stop(Fault::twice, token);
                found.unsorted = true;
            }
            previous = column;
            found.largest_column = std::max(found.largest_column, column);
            text::check_room(entry, to.entries);
            to.indices[entry] = std::int32_t(column);
            to.values[entry] = left ? 0.0f : float(value.value);
            ++entry;
            at = text::skip_blanks(at);
        }
        ++at;
        to.row_ends[++row] = entry;
        if (entry + label_entry > before) found.filled_rows = row;
    }
    found.rows = row;
    found.entries = entry;
    found.labels = label_entry;
    return found;
}

} // namespace tierrank::xc
