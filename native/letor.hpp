// One pass over the bytes of a LETOR file: `label qid:q index:value … # comment`.
#pragma once

#include <cmath>

#include "decimals.hpp"

namespace tierrank::letor {

using text::Byte;

inline constexpr std::int64_t LARGEST_INDEX = 2147483647; // 2^31 − 1

enum class Fault { fine, bad_label, bad_qid, bad_index, large_index, twice, bad_value };

// Arrays to fill.
struct Arrays {
    std::int64_t rows, entries; // that there is room for
    double *labels;             // [rows]
    std::int64_t *qids;         // [rows] where they are whole numbers of 64 bits
    std::int64_t *spans;        // [rows, 3] where the row starts, and its qid starts and ends
    std::int64_t *comments;     // [rows, 2] where the comment starts and ends; or null
    std::int64_t *row_ends;     // [rows + 1] ranges of entries
    std::int32_t *indices;      // [entries]
    double *values;             // [entries]
};

// What a pass finds out. Places count from the start of the text; −1 is nowhere.
struct Pass {
    Fault fault = Fault::fine; // the first: the pass ends there
    std::int64_t fault_at = -1;
    std::int64_t rows = 0, entries = 0, rows_with_qid = 0;
    std::int64_t first_without_qid = -1;
    bool other_qids = false; // some qid is no whole number of 64 bits
    bool unsorted = false;   // in some row, indices do not ascend
    std::int64_t first_zero = -1, largest = -1, largest_at = -1;
    std::vector<text::Left> left; // numbers for Python's `float`; the entry of a label is −1 − row
};

// The newline at the end of the text stops the comparison.
inline bool starts_qid(const Byte *at) {
    return at[0] == 'q' && at[1] == 'i' && at[2] == 'd' && at[3] == ':';
}

// An integer of 64 bits that fills the range, if that is what stands there.
inline bool whole_number(const Byte *at, const Byte *end, std::int64_t &out) {
    const bool negative = *at == '-';
    if (negative) ++at;
    if (at == end || end - at > 19) return false;
    std::uint64_t value = 0;
    for (; at < end; ++at) {
        if (!text::is_digit(*at)) return false;
        value = value * 10 + (*at - '0');
    }
    if (value >= (std::uint64_t(1) << 63) + negative) return false;
    out = std::int64_t(negative ? 0 - value : value);
    return true;
}

// Fill the arrays from a text, and stop at the first fault.
inline Pass scan(const Byte *const start, std::int64_t size, double missing, const Arrays &to) {
    using text::Kind;
    text::check_end(start, size);
    const text::Powers &powers = text::powers_of_five();
    Pass found;
    std::int64_t row = 0, entry = 0;
    const Byte *at = start, *const end = start + size;
    const auto stop = [&](Fault fault, const Byte *token) {
        found.fault = fault;
        found.fault_at = token - start;
        return found;
    };
    to.row_ends[0] = 0;
    if (size > 3 && at[0] == 0xEF && at[1] == 0xBB && at[2] == 0xBF)
        at += 3; // the mark some editors begin UTF-8 with
    while (at < end) {
        at = text::skip_blanks(at);
        if (*at != '\n' && *at != '#') {
            text::check_room(row, to.rows);
            std::int64_t *const span = to.spans + 3 * row;
            const Byte *token = at;
            span[0] = token - start;
            const text::Number label = text::number(token, powers);
            at = label.end;
            if (label.kind == Kind::no_number || label.kind == Kind::missing ||
                (label.kind == Kind::number && std::isinf(label.value)))
                return stop(Fault::bad_label, token);
            if (label.kind == Kind::for_python)
                found.left.push_back({-1 - row, token - start, at - start});
            to.labels[row] = label.value;

            at = text::skip_blanks(at);
            span[1] = span[2] = at - start;
            if (starts_qid(at)) {
                token = at;
                const Byte *const qid = at += 4;
                while (!text::ends_token(*at) && *at != ':') ++at;
                if (*at == ':' || at == qid) return stop(Fault::bad_qid, token);
                span[1] = qid - start;
                span[2] = at - start;
                to.qids[row] = 0;
                if (!whole_number(qid, at, to.qids[row])) found.other_qids = true;
                ++found.rows_with_qid;
                at = text::skip_blanks(at);
            } else if (found.first_without_qid < 0) {
                found.first_without_qid = token - start;
            }

            std::int64_t previous = -1;
            while (*at != '\n' && *at != '#') {
                token = at;
                std::int64_t index = 0;
                for (; text::is_digit(*at); ++at) {
                    index = index * 10 + (*at - '0');
                    if (index > LARGEST_INDEX) return stop(Fault::large_index, token);
                }
                if (at == token || *at != ':') return stop(Fault::bad_index, token);
                const Byte *const written = at + 1;
                text::Number value = text::number(written, powers);
                at = value.end;
                if (value.kind == Kind::no_number) return stop(Fault::bad_value, token);
                if (value.kind == Kind::missing) value.value = missing;
                if (value.kind == Kind::for_python)
                    found.left.push_back({entry, written - start, at - start});
                if (index <= previous) {
                    if (index == previous) return stop(Fault::twice, token);
                    found.unsorted = true;
                }
                if (index > found.largest) {
                    found.largest = index;
                    found.largest_at = token - start;
                }
                if (index == 0 && found.first_zero < 0) found.first_zero = token - start;
                previous = index;
                text::check_room(entry, to.entries);
                to.indices[entry] = std::int32_t(index);
                to.values[entry] = value.value;
                ++entry;
                at = text::skip_blanks(at);
            }
            const Byte *const comment = at;
            while (*at != '\n') ++at;
            if (to.comments) {
                to.comments[2 * row] = (at > comment ? comment + 1 : at) - start;
                to.comments[2 * row + 1] = at - start;
            }
            to.row_ends[++row] = entry;
        }
        while (*at != '\n') ++at;
        ++at;
    }
    found.rows = row;
    found.entries = entry;
    return found;
}

} // namespace tierrank::letor
