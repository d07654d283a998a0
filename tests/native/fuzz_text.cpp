// What the scanners of LETOR and XC files and the parser of decimals promise for any bytes at all.
//
//     fuzz_letor | fuzz_xc | fuzz_decimals  [folder …] [-runs=100000] [-seed=1] …
//
// One source, three programs: TIERRANK_FUZZ is try_letor, try_xc or try_decimal. Clang's libFuzzer, if
// there is one, finds texts by what they reach in the code; else the driver at the end of this file tries
// the texts of the folders and random changes of them. Both take the same words.
//
// Built with sanitizers, a read or write outside of its array stops the program: every text lies in
// memory of its exact size, and so do the arrays to fill, made for as many rows and entries as the text
// can have, as Python makes them.
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "letor.hpp"
#include "xc.hpp"

namespace {

using tierrank::text::Byte;
using Text = std::string;
namespace letor = tierrank::letor;
namespace text = tierrank::text;
namespace xc = tierrank::xc;

[[noreturn]] void fail(const char *what, const Text &text) {
    std::fprintf(stderr, "%s:\n", what);
    for (const char c : text) std::fprintf(stderr, "\\x%02X", Byte(c));
    std::fprintf(stderr, "\n");
    std::abort();
}

struct Counts { // of texts, or of decimals; told at the end
    long fine = 0, faults = 0, refused = 0, left = 0;
    ~Counts() {
        std::fprintf(stderr, "%ld read, %ld with a fault, %ld refused; %ld numbers left to Python\n",
                     fine, faults, refused, left);
    }
} counts;

// Scanners ----------------------------------------------------------------------------------------

// Memory of the exact size, so that a step beyond it is seen.
template <class T> struct Exactly {
    explicit Exactly(std::int64_t size) : held(new T[std::size_t(size)]) {}
    operator T *() const { return held.get(); }
    std::unique_ptr<T[]> held;
};

// A scanner must refuse a text without a newline at its end, and else take it.
template <class Scan> bool taken(const Text &text, Scan scan) {
    const Exactly<Byte> bytes(std::int64_t(text.size()));
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    const bool open = !text.empty() && text.back() != '\n';
    bool refused = false;
    try {
        scan(bytes, std::int64_t(text.size()));
    } catch (const std::invalid_argument &) {
        refused = true;
        ++counts.refused;
    } catch (const std::length_error &) {
        fail("no room", text);
    }
    if (refused != open) fail(open ? "taken without a newline" : "refused", text);
    return !refused;
}

void check_rows(const Text &text, std::int64_t rows, std::int64_t end, const std::int64_t *ends) {
    bool rising = ends[0] == 0 && ends[rows] == end;
    for (std::int64_t i = 0; i < rows; ++i) rising = rising && ends[i] <= ends[i + 1];
    if (!rising) fail("row ends do not rise", text);
}

void check_left(const Text &text, const std::vector<text::Left> &left, std::int64_t rows,
                std::int64_t entries) {
    for (const auto &one : left) {
        const bool here = one.entry >= -rows && one.entry < entries;
        const bool inside = one.start >= 0 && one.start < one.end && one.end < std::int64_t(text.size());
        if (!here || !inside) fail("a number left to Python is nowhere", text);
    }
    counts.left += long(left.size());
}

void check_fault(const Text &text, std::int64_t at) {
    if (at < 0 || at >= std::int64_t(text.size())) fail("a fault nowhere", text);
    ++counts.faults;
}

xc::Tally tally_of(const Text &text, std::int64_t from) {
    const auto *bytes = reinterpret_cast<const Byte *>(text.data());
    return xc::tally(bytes + from, bytes + text.size());
}

void scan_letor(const Text &text) {
    const xc::Tally most = tally_of(text, 0);
    const Exactly<double> labels(most.newlines), values(most.colons);
    const Exactly<std::int64_t> qids(most.newlines), spans(3 * most.newlines);
    const Exactly<std::int64_t> comments(2 * most.newlines), row_ends(most.newlines + 1);
    const Exactly<std::int32_t> indices(most.colons);
    const letor::Arrays arrays{most.newlines, most.colons, labels, qids,    spans,
                               comments,      row_ends,    indices, values};
    letor::Pass found;
    if (!taken(text, [&](const Byte *start, std::int64_t size) {
            found = letor::scan(start, size, -1.0, arrays);
        }))
        return;
    if (found.fault != letor::Fault::fine) return check_fault(text, found.fault_at);
    ++counts.fine;
    check_rows(text, found.rows, found.entries, row_ends);
    check_left(text, found.left, found.rows, found.entries);
    for (std::int64_t i = 0; i < found.entries; ++i)
        if (indices[i] < 0 || indices[i] > found.largest) fail("an index beyond the largest", text);
    for (std::int64_t i = 0; i < 3 * found.rows; ++i)
        if (spans[i] < 0 || spans[i] >= std::int64_t(text.size())) fail("a row or qid nowhere", text);
    for (std::int64_t i = 0; i < 2 * found.rows; ++i)
        if (comments[i] < 0 || comments[i] >= std::int64_t(text.size())) fail("a comment nowhere", text);
}

void scan_xc(const Text &text, std::int64_t from, const xc::Rules &rules) {
    const xc::Tally most = tally_of(text, from);
    const std::int64_t room = rules.with_labels ? most.commas + most.newlines : 0;
    const Exactly<std::int64_t> label_ends(most.newlines + 1), row_ends(most.newlines + 1);
    const Exactly<std::int32_t> labels(room), indices(most.colons);
    const Exactly<float> values(most.colons);
    const xc::Arrays arrays{most.newlines, most.colons, room,    label_ends,
                            labels,        row_ends,    indices, values};
    xc::Pass found;
    if (!taken(text, [&](const Byte *start, std::int64_t size) {
            found = xc::scan(start, size, from, rules, arrays);
        }))
        return;
    if (found.fault != xc::Fault::fine) return check_fault(text, found.fault_at);
    ++counts.fine;
    check_rows(text, found.rows, found.entries, row_ends);
    if (rules.with_labels) check_rows(text, found.rows, found.labels, label_ends);
    check_left(text, found.left, 0, found.entries);
    for (std::int64_t i = 0; i < found.entries; ++i)
        if (indices[i] < 0 || indices[i] >= rules.features || !std::isfinite(values[i]))
            fail("an index beyond its columns, or a value that is not finite", text);
    for (std::int64_t i = 0; i < found.labels; ++i)
        if (labels[i] < 0 || labels[i] >= rules.labels) fail("a label beyond the last", text);
}

// as it is, and closed by a newline
[[maybe_unused]] void try_letor(Text text) {
    scan_letor(text);
    if (!text.empty() && text.back() != '\n') scan_letor(text += '\n');
}

[[maybe_unused]] void try_xc(Text text) {
    if (!text.empty() && text.back() != '\n') {
        scan_xc(text, 0, {true, 0, 6, 6});
        text += '\n';
    }
    // rows begin at the start of the text, or after its first line
    const auto after_line = std::int64_t(text.find('\n') + 1);
    for (const std::int64_t from : {std::int64_t(0), after_line})
        for (const bool with_labels : {false, true})
            for (const int base : {0, 1})
                for (const std::int64_t columns : {std::int64_t(6), xc::MOST_COLUMNS})
                    scan_xc(text, from, {with_labels, base, columns, columns});
}

// Decimals ----------------------------------------------------------------------------------------

// A number is the very double that strtod reads; what is left to Python is one, and what is no number is
// none. (strtod also takes hexadecimals and nan(…).)
[[maybe_unused]] void try_decimal(Text text) {
    text += '\n';
    std::size_t size = 0;
    while (!text::ends_token(Byte(text[size]))) ++size;
    const Text token = text.substr(0, size);
    const Exactly<Byte> bytes(std::int64_t(size) + 1);
    std::memcpy(bytes, text.data(), size + 1);
    const text::Number found = text::number(bytes, text::powers_of_five());
    if (found.kind != text::Kind::no_number && found.end != bytes + size) fail("read beyond its token", text);

    char *end = nullptr;
    const double expected = std::strtod(token.c_str(), &end);
    const bool strtod_reads_it = !token.empty() && end == token.c_str() + size;
    switch (found.kind) {
    case text::Kind::number:
        ++counts.fine;
        if (!strtod_reads_it || std::bit_cast<std::uint64_t>(expected) != std::bit_cast<std::uint64_t>(found.value))
            fail("not the number that is written", text);
        break;
    case text::Kind::for_python:
        ++counts.left;
        if (!strtod_reads_it) fail("left to Python, and no number", text);
        break;
    case text::Kind::missing:
        ++counts.fine;
        if (token.size() > 5 || (strtod_reads_it && !std::isnan(expected))) fail("not missing", text);
        break;
    case text::Kind::no_number:
        ++counts.faults;
        if (strtod_reads_it && token.find_first_of("xX(") == Text::npos) fail("a number was not read", text);
    }
}

using Random = std::mt19937_64;

// Decimals that are hard to round: digits by chance, doubles, and what lies halfway between two of them.
[[maybe_unused]] Text random_decimal(Random &random) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    char written[128];
    switch (below(3)) {
    case 0: {
        Text digits(1 + below(25), '0');
        for (char &digit : digits) digit = char('0' + below(10));
        digits.insert(below(digits.size() + 1), ".");
        return (below(2) ? "-" : "") + digits + "e" + std::to_string(int(below(660)) - 330);
    }
    case 1: {
        const double any = std::bit_cast<double>(random());
        std::snprintf(written, sizeof written, "%.*g", int(10 + below(10)), any);
        return written;
    }
    default: {
        const std::uint64_t whole = (std::uint64_t(1) << 53) + (below(std::uint64_t(1) << 53) | 1);
        const int power = int(below(90)) - 60; // ± an odd number of 54 bits is no double
        std::snprintf(written, sizeof written, "%.*Lg", int(17 + below(60)), std::ldexp((long double)whole, power));
        return written;
    }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    TIERRANK_FUZZ(Text(reinterpret_cast<const char *>(data), size));
    return 0;
}

#if TIERRANK_LIBFUZZER

#if TIERRANK_RANDOM_DECIMALS
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t most);

// Half of the decimals are made as above, for few bytes by chance are a decimal that is hard to round.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size, std::size_t most,
                                               unsigned seed) {
    if (seed % 2) return LLVMFuzzerMutate(data, size, most);
    Random random(seed);
    const Text made = random_decimal(random);
    const std::size_t length = std::min(made.size(), most);
    std::memcpy(data, made.data(), length);
    return length;
}
#endif

#else

#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

using namespace std::string_view_literals;

constexpr std::string_view PIECES[] = {
    "qid:"sv, "null"sv,  "NaN"sv,  "inf"sv,   "infinity"sv,
    "1e"sv,   "e-"sv,    "-"sv,    "+"sv,     "."sv,
    ":"sv,    ","sv,     "#"sv,    "\n"sv,    "\r\n"sv,
    " "sv,    "\t"sv,    "0"sv,    "9"sv,     "99999999999999999999"sv,
    "\0"sv,   "\xFF"sv,  "q"sv,    "qi"sv,    "1e999999999999999999999"sv,
    "i"sv,    "in"sv,    "n"sv,    "nul"sv,   "4.9406564584124654e-324"sv,
    "1:"sv,   "2:0.5"sv, "1,2"sv,  "\x0B"sv,  "1.7976931348623157e308"sv,
};

Text mutated(Random &random, const std::vector<Text> &corpus) {
    const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    Text text = corpus[below(corpus.size())];
    for (std::size_t changes = below(8); changes-- > 0;) {
        const std::size_t at = below(text.size() + 1);
        switch (below(7)) {
        case 0: text.insert(at, PIECES[below(std::size(PIECES))]); break;
        case 1: text.insert(at, 1, char(random())); break;
        case 2: text.erase(at, 1 + below(5)); break;
        case 3: text.insert(at, corpus[below(corpus.size())]); break;
        case 4: text.insert(at, text.substr(below(text.size() + 1), 1 + below(30))); break;
        case 5: text.insert(at, random_decimal(random)); break;
        default:
            if (at < text.size()) text[at] = char(text[at] ^ (1 << below(8)));
        }
    }
    return text;
}

} // namespace

int main(int argc, char **argv) {
    std::vector<Text> corpus{""};
    long runs = 100'000;
    std::uint64_t seed = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("-runs=")) runs = std::atol(argv[i] + 6);
        if (word.starts_with("-seed=")) seed = std::strtoull(argv[i] + 6, nullptr, 10);
        if (word.starts_with("-")) continue;
        for (const auto &entry : std::filesystem::directory_iterator(word)) {
            std::ifstream file(entry.path(), std::ios::binary);
            corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        }
    }
    for (const Text &text : corpus) TIERRANK_FUZZ(text);
    Random random(seed);
    for (long i = 0; i < runs; ++i) TIERRANK_FUZZ(mutated(random, corpus));
    std::fprintf(stderr, "%ld changes of %zu texts: ", runs, corpus.size());
}

#endif
