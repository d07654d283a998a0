// Small steps through the bytes of a text.
//
// Every text that a scanner is given ends with a newline (it looks, and refuses another one). Nothing
// here and in decimals.hpp goes past a newline, and so no read ever leaves the text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tierrank::text {

using Byte = std::uint8_t;

inline bool is_digit(Byte byte) { return byte >= '0' && byte <= '9'; }

// blanks and tabs, and the \r of Windows' line ends; not the newline
inline bool is_blank(Byte byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r' && byte != '\n');
}

// blanks, the end of the line, and the # of a comment
inline bool ends_token(Byte byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '#';
}

// the next token, comment or end of line
inline const Byte *skip_blanks(const Byte *at) {
    while (is_blank(*at)) ++at;
    return at;
}

inline void check_end(const Byte *text, std::int64_t size) {
    if (size > 0 && text[size - 1] != '\n')
        throw std::invalid_argument("the text must end with a newline");
}

// Arrays to fill are made for as many rows and entries as a text can have, and that is checked.
inline void check_room(std::int64_t place, std::int64_t room) {
    if (place >= room) throw std::length_error("the text has more than there is room for");
}

// A number that is left to Python: its place in the array, and where it stands in the text.
struct Left {
    std::int64_t entry, start, end;
};

} // namespace tierrank::text
