// Throws mutated texts at the scanners: fuzz_text letor|xc|both [executions] [seed]
//
// Built with -DTIERRANK_FUZZ=ON, and of use with -DTIERRANK_SANITIZE=ON: a read or write outside of its
// array stops it. Every text lies in memory of its exact size, and so do the arrays to fill, made for
// as many rows and entries as the text can have, as Python makes them. What a pass promises is checked.
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
namespace xc = tierrank::xc;

using namespace std::string_view_literals;

constexpr std::string_view LETOR[] = {
    ""sv,
    "\n"sv,
    "2 qid:10 1:0.89 2:0.05 # GX001\n0 qid:10 1:0.1 2:NULL\n1 qid:11 1:-1e-3 3:inf\n"sv,
    "\xEF\xBB\xBF"
    "1.5 qid:a 0:1 7:2.25\r\n\r\n# only\n-0 qid:b 3:1e400\n"sv,
    "1 1:nan 2:5e-324 3:9007199254740993\n2 2:1 1:3\n"sv,
    "0 qid:-9223372036854775808 1:1\n0 qid:9223372036854775808 2147483647:.1\n"sv,
    "3 qid:1 1:12345678901234567890123.5e-10 2:+Infinity#c\n"sv,
};
constexpr std::string_view XC[] = {
    ""sv,
    "\n\n"sv,
    "1,3 0:0.5 4:1e-3\n 1:2\n"sv,
    "0,1 0:1\n\n2 3:16777217 4:1e-46\n"sv,
    "1 0:3.4028235677973366e38\n0:1 2:2\n"sv,
    "3,1 5:0.1 2:.5\n2147483647,2147483648 1:00000000000000000000000000001\n"sv,
};
constexpr std::string_view PIECES[] = {
    "qid:"sv, "null"sv,  "NaN"sv,  "inf"sv,   "infinity"sv,
    "1e"sv,   "e-"sv,    "-"sv,    "+"sv,     "."sv,
    ":"sv,    ","sv,     "#"sv,    "\n"sv,    "\r\n"sv,
    " "sv,    "\t"sv,    "0"sv,    "9"sv,     "99999999999999999999"sv,
    "\0"sv,   "\xFF"sv,  "q"sv,    "qi"sv,    "1e999999999999999999999"sv,
    "i"sv,    "in"sv,    "n"sv,    "nul"sv,   "4.9406564584124654e-324"sv,
    "1:"sv,   "2:0.5"sv, "1,2"sv,  "\x0B"sv,  "1.7976931348623157e308"sv,
};

using Random = std::mt19937_64;
std::size_t below(Random &random, std::size_t n) { return std::size_t(random() % n); }

template <std::size_t n>
Text mutated(Random &random, const std::string_view (&corpus)[n]) {
    Text text(corpus[below(random, n)]);
    for (std::size_t changes = below(random, 8); changes-- > 0;) {
        const std::size_t at = below(random, text.size() + 1);
        switch (below(random, 6)) {
        case 0: text.insert(at, PIECES[below(random, std::size(PIECES))]); break;
        case 1: text.insert(at, 1, char(random())); break;
        case 2: text.erase(at, 1 + below(random, 5)); break;
        case 3: text.insert(at, corpus[below(random, n)]); break;
        case 4: text.insert(at, text.substr(below(random, text.size() + 1), 1 + below(random, 30))); break;
        default:
            if (at < text.size()) text[at] = char(text[at] ^ (1 << below(random, 8)));
        }
    }
    return text;
}

[[noreturn]] void fail(const char *what, const Text &text) {
    std::printf("%s:\n", what);
    for (const char c : text) std::printf("\\x%02X", Byte(c));
    std::printf("\n");
    std::exit(1);
}

// Memory of the exact size, so that a step beyond it is seen.
template <class T> struct Exactly {
    explicit Exactly(std::int64_t size) : held(new T[std::size_t(size)]) {}
    operator T *() const { return held.get(); }
    std::unique_ptr<T[]> held;
};

// A scanner must refuse a text without a newline at its end, and else take it.
template <class Scan> void offer(const Text &text, bool &refused, Scan scan) {
    const Exactly<Byte> bytes(std::int64_t(text.size()));
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    const bool open = !text.empty() && text.back() != '\n';
    try {
        scan(bytes, std::int64_t(text.size()));
        refused = false;
    } catch (const std::invalid_argument &) {
        refused = true;
    } catch (const std::length_error &) {
        fail("no room", text);
    }
    if (refused != open) fail(open ? "taken without a newline" : "refused", text);
}

void check_rows(const Text &text, std::int64_t rows, std::int64_t end, const std::int64_t *ends) {
    bool rising = ends[0] == 0 && ends[rows] == end;
    for (std::int64_t i = 0; i < rows; ++i) rising = rising && ends[i] <= ends[i + 1];
    if (!rising) fail("row ends do not rise", text);
}

void check_left(const Text &text, const std::vector<tierrank::text::Left> &left, std::int64_t rows,
                std::int64_t entries) {
    for (const auto &one : left) {
        const bool here = one.entry >= -rows && one.entry < entries;
        const bool inside = one.start >= 0 && one.start < one.end && one.end < std::int64_t(text.size());
        if (!here || !inside) fail("a number left to Python is nowhere", text);
    }
}

struct Counts {
    long fine = 0, faults = 0, refused = 0, left = 0;
};

void try_letor(Random &random, Counts &counts) {
    const Text text = mutated(random, LETOR);
    const xc::Tally most = xc::tally(reinterpret_cast<const Byte *>(text.data()),
                                     reinterpret_cast<const Byte *>(text.data() + text.size()));
    const Exactly<double> labels(most.newlines), values(most.colons);
    const Exactly<std::int64_t> qids(most.newlines), spans(3 * most.newlines);
    const Exactly<std::int64_t> comments(2 * most.newlines), row_ends(most.newlines + 1);
    const Exactly<std::int32_t> indices(most.colons);
    const letor::Arrays arrays{most.newlines, most.colons, labels, qids,    spans,
                               comments,      row_ends,    indices, values};
    letor::Pass found;
    bool refused = false;
    offer(text, refused, [&](const Byte *start, std::int64_t size) {
        found = letor::scan(start, size, -1.0, arrays);
    });
    if (refused) {
        ++counts.refused;
    } else if (found.fault != letor::Fault::fine) {
        ++counts.faults;
        if (found.fault_at < 0 || found.fault_at >= std::int64_t(text.size())) fail("a fault nowhere", text);
    } else {
        ++counts.fine;
        counts.left += long(found.left.size());
        check_rows(text, found.rows, found.entries, row_ends);
        check_left(text, found.left, found.rows, found.entries);
        for (std::int64_t i = 0; i < found.entries; ++i)
            if (indices[i] < 0 || indices[i] > found.largest) fail("an index beyond the largest", text);
    }
}

void try_xc(Random &random, Counts &counts) {
    const Text text = mutated(random, XC);
    const std::int64_t size = std::int64_t(text.size());
    const auto *bytes = reinterpret_cast<const Byte *>(text.data());
    // rows begin at the start of the text, or after its first line
    const std::size_t line = text.find('\n');
    const std::int64_t from = line != Text::npos && random() % 4 == 0 ? std::int64_t(line) + 1 : 0;
    const xc::Tally most = xc::tally(bytes + from, bytes + size);
    const std::int64_t columns[] = {0, 1, 6, 100, xc::MOST_COLUMNS};
    const xc::Rules rules{random() % 4 != 0, int(random() % 2), columns[below(random, 5)],
                          columns[below(random, 5)]};
    const std::int64_t room = rules.with_labels ? most.commas + most.newlines : 0;
    const Exactly<std::int64_t> label_ends(most.newlines + 1), row_ends(most.newlines + 1);
    const Exactly<std::int32_t> labels(room), indices(most.colons);
    const Exactly<float> values(most.colons);
    const xc::Arrays arrays{most.newlines, most.colons, room,    label_ends,
                            labels,        row_ends,    indices, values};
    xc::Pass found;
    bool refused = false;
    offer(text, refused, [&](const Byte *start, std::int64_t n) {
        found = xc::scan(start, n, from, rules, arrays);
    });
    if (refused) {
        ++counts.refused;
    } else if (found.fault != xc::Fault::fine) {
        ++counts.faults;
        if (found.fault_at < 0 || found.fault_at >= size) fail("a fault nowhere", text);
    } else {
        ++counts.fine;
        counts.left += long(found.left.size());
        check_rows(text, found.rows, found.entries, row_ends);
        if (rules.with_labels) check_rows(text, found.rows, found.labels, label_ends);
        check_left(text, found.left, 0, found.entries);
        for (std::int64_t i = 0; i < found.entries; ++i)
            if (indices[i] < 0 || indices[i] >= rules.features) fail("an index beyond its columns", text);
        for (std::int64_t i = 0; i < found.labels; ++i)
            if (labels[i] < 0 || labels[i] >= rules.labels) fail("a label beyond the last", text);
    }
}

template <class Try> void run(const char *name, long executions, unsigned long seed, Try one) {
    Random random(seed);
    Counts counts;
    for (long i = 0; i < executions; ++i) one(random, counts);
    std::printf("%s: %ld texts: %ld read, %ld with a fault, %ld refused; %ld numbers left to Python\n",
                name, executions, counts.fine, counts.faults, counts.refused, counts.left);
}

} // namespace

int main(int argc, char **argv) {
    const Text which = argc > 1 ? argv[1] : "both";
    const long executions = argc > 2 ? std::atol(argv[2]) : 1'000'000;
    const unsigned long seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
    if (which != "letor" && which != "xc" && which != "both") {
        std::printf("fuzz_text letor|xc|both [executions] [seed]\n");
        return 2;
    }
    if (which != "xc") run("letor", executions, seed, try_letor);
    if (which != "letor") run("xc", executions, seed, try_xc);
}
