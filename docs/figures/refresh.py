"""Figures of README, docs and paper: files that commands write, and pages that include them.

    python docs/figures/refresh.py                      # pages take their blocks from the files
    python docs/figures/refresh.py likelihood reading   # first these commands run and write theirs
    python docs/figures/refresh.py usual                # or all of 15 minutes at most, or: all
    python docs/figures/refresh.py --list               # what there is
    python docs/figures/refresh.py clicks --printed log --commit 1a2b3c4   # it ran elsewhere

`commands.toml` says which command writes NAME.md, and titles of tables that it prints without; the
head of the file says when and where it ran. A page has

    <!-- figures: NAME#TITLE -->   the part of NAME.md under that title, put there by this program
    <!-- end -->

without a title for all of it; NAME#2 is its second table, NAME#head a sentence on where it is
from, and NAME#EXCERPT rows and columns as `commands.toml` has them. Every figure outside of blocks
must be a number of the files that the page names, rounded as it likes, or explained in a comment:

    <!-- figures from: NAME NAME -->    more files to look in
    <!-- derived: 0.28 = 10.3 / 37.2 -->    computed from numbers of these files
    <!-- constants: 0.95 1.96 -->    not measured: levels, limits, settings, what a paper printed
"""

from __future__ import annotations

import argparse
import ast
import math
import operator
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
USUAL = 15  # minutes
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost")
BUILT = {"_build", "figures", "gallery", "generated", "examples"}

BLOCK = re.compile(r"(<!-- figures: ([\w-]+)(?:#(.+?))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TITLE = re.compile(r"(?:#{2,4} (.+)|\*\*(.+)\*\*)\s*$")


def commands() -> dict[str, dict[str, Any]]:
    """Of every file of figures: its command, how long that takes, excerpts."""
    return tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))


def pages() -> list[Path]:
    found = sorted((ROOT / "docs").rglob("*.md"))
    found = [path for path in found if not BUILT & {*path.relative_to(ROOT).parts}]
    return [ROOT / "README.md", ROOT / "paper" / "paper.md", *found]


# Files ---------------------------------------------------------------------------------------


class File(NamedTuple):
    """What a command printed, and when and where."""

    head: dict[str, str]
    text: str

    def sections(self) -> dict[str, str]:
        """What stands under each title."""
        found: dict[str, list[str]] = {}
        title = ""
        for line in self.text.splitlines():
            if (said := TITLE.match(line)) and not line.startswith("|"):
                title = said[1] or said[2]
            else:
                found.setdefault(title, []).append(line)
        return {title: "\n".join(lines).strip() for title, lines in found.items()}

    def tables(self) -> list[list[str]]:
        found = re.findall(r"(?:^\|.*\n?)+", self.text, flags=re.MULTILINE)
        return [table.splitlines() for table in found]

    def source(self) -> str:
        """One sentence for readers."""
        where = f"{self.head['date']}, commit {self.head['commit']}, {self.head['machine']}"
        kept = ", as this page had it" * self.head["source"].startswith("recorded")
        return f"By `{self.head['command']}`{kept}; {where}; {self.head['versions']}."


def read(name: str) -> File:
    path = HERE / f"{name}.md"
    if not path.exists():
        raise ValueError(f"there are no figures {name!r}: {path.relative_to(ROOT)} is missing")
    _, head, text = path.read_text(encoding="utf-8").split("---\n", 2)
    return File(dict(re.findall(r"^(\w+): (.*)$", head, flags=re.MULTILINE)), text.strip())


def write(
    name: str, entry: Mapping[str, Any], printed: str, commit: str = "", day: str = ""
) -> None:
    """Keep what a command printed, under a head that has the machine in place of its table."""
    printed = re.sub(r"## Machine\n\n(?:\|.*\n)+\s*", "", printed)
    if "|" not in printed:  # no table of Markdown: as it stands
        printed = f"```\n{printed.strip()}\n```"
    printed = with_titles(printed, entry.get("titles", ()))
    head = {
        "command": entry["command"],
        "source": "written by the command",
        "date": day or date.today().isoformat(),
        "commit": commit or _commit(),
        "machine": _machine(),
        "versions": _versions(),
    }
    said = "\n".join(f"{key}: {value}" for key, value in head.items())
    (HERE / f"{name}.md").write_text(f"---\n{said}\n---\n\n{printed.strip()}\n", encoding="utf-8")


def with_titles(printed: str, titles: Sequence[str]) -> str:
    """Tables of a program that gives them none, under these titles."""
    rest = iter(titles)
    return re.sub(
        r"(?:^\|.*\n?)+",
        lambda table: f"## {title}\n\n{table[0]}" if (title := next(rest, "")) else table[0],
        printed,
        flags=re.MULTILINE,
    )


def run(command: str) -> str:
    """What a command prints, with the programs of this Python's environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout

    changed = git("status", "--porcelain", "src", "native", "benchmarks", "experiments")
    return git("rev-parse", "--short", "HEAD").strip() + " and changes" * bool(changed.strip())


def _machine() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    except (OSError, ValueError, AttributeError):  # not on Linux
        found, memory = None, ""
    return f"{os.cpu_count()} cores: {found[1] if found else platform.processor()}{memory}"


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name).partition('+')[0]}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


# Blocks --------------------------------------------------------------------------------------


def block(name: str, title: str | None) -> str:
    """What a page has between its two comments."""
    file = read(name)
    excerpts = commands()[name].get("excerpts", {})
    if title is None:
        return file.text
    if title == "head":
        return file.source()
    if title in excerpts:
        return excerpt(file, **excerpts[title])
    if title in (sections := file.sections()):
        return sections[title]
    if title.isdigit() and int(title) <= len(tables := file.tables()):
        return "\n".join(tables[int(title) - 1])
    known = ", ".join(filter(None, [*sections, *excerpts]))
    raise ValueError(f"the figures {name!r} have nothing titled {title!r}; they have: {known}")


def excerpt(file: File, of: str, columns: Mapping[str, str], rows: Mapping[str, str]) -> str:
    """Some rows and columns of a table, under names of the page's own."""
    table = file.tables()[int(of) - 1] if of.isdigit() else file.sections()[of].splitlines()
    head, _, *body = (
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in table
        if line.startswith("|")
    )
    chosen = [head.index(column) for column in columns]
    cells = {row[0].strip("*"): row for row in body}
    if lost := rows.keys() - cells.keys():
        raise ValueError(f"no row is called {lost.pop()!r} under {of!r}")
    lines = [list(columns.values()), ["---", *["---:"] * (len(chosen) - 1)]]
    lines += [[shown, *(cells[row][i] for i in chosen[1:])] for row, shown in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_blocks(text: str) -> str:
    """The text of a page with its blocks as the files have them."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{block(m[2], m[3])}\n\n{m[5]}", text)


# Figures outside of blocks -------------------------------------------------------------------

NUMBER = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:e[−+-]?\d+)?"
UNIT = (
    r"(?:%|(?:ns|µs|ms|s|min|h|[kMG]B|(?:nano|micro|milli)?seconds?|minutes?|hours?|times|points?"
    r"|nats|per\ cent)\b)"
)
# A decimal, a power of ten, one part of several, or a whole number of some unit.
FIGURE = re.compile(
    rf"(?<![\w.,^])(?:1/)?(?P<number>{NUMBER})(?![\w\d]|[.,]\d)"
    rf"(?P<unit>\ ?{UNIT}|(?=\ (?:to|and|or|…)\ [\d.,]+\ ?{UNIT}))?"
)
NOT_FIGURES = re.compile(
    r"<!--.*?-->"
    r"|^(?:```|~~~).*?^(?:```|~~~)"  # code, which other tests run
    r"|^ {4,}[^\n]*$"
    r"|``.*?``|`[^`]*`"
    r"|\]\([^)]*\)"  # where links lead
    r"|\d+\.\d+\.\d+"  # versions
    r"|(?:Python|torch|numpy|numba|LightGBM|XGBoost|CatBoost|PlackettLuce|choix|LETOR|version|TRL"
    r"|scikit-learn|sentence-transformers|transformers|datasets|Apache)[\s-]v?\d[\d.]*"
    r"|(?:[Ss]ections?|[Tt]ables?|[Ff]igures?|[Ee]quations?|[Cc]hapter|[Aa]ppendix)\s\d[\d.]*",
    re.DOTALL | re.MULTILINE,
)


class Figure(NamedTuple):
    """A number of a text, by how it is written, and how far it may be off by rounding."""

    text: str
    value: float
    rounding: float
    percent: bool

    def among(self, numbers: Iterable[float]) -> bool:
        near = 1.0001 * self.rounding
        return any(
            abs(self.value - number) <= near
            or (self.percent and abs(self.value - 100 * number) <= near)
            for number in numbers
        )


def value_of(text: str) -> tuple[float, float]:
    """A number, and half a unit of its last digit; zeros that end a whole number round it."""
    mantissa, _, power = text.replace(",", "").replace("−", "-").partition("e")
    digits = len(mantissa.partition(".")[2])
    if not digits and len(mantissa) > 2:
        digits = -min(len(mantissa) - 2, len(mantissa) - len(mantissa.rstrip("0")))
    scale = 10.0 ** int(power or 0)
    return float(mantissa) * scale, 0.5 * 10.0**-digits * scale


def figures(text: str) -> Iterator[Figure]:
    """What a text gives as measured, apart from its blocks, code, versions and links."""
    text = NOT_FIGURES.sub(" ", BLOCK.sub(" ", text))
    for found in FIGURE.finditer(text):
        number, unit = found["number"], found["unit"]
        part = found[0].startswith("1/")
        if unit is not None or part or "." in number or "e" in number:
            percent = (unit or "").strip() in ("%", "per cent", "points", "point")
            yield Figure(number, *value_of(number), percent)


def numbers(text: str) -> set[float]:
    """All numbers of a file, whatever their sign."""
    found = re.findall(rf"(?<![\w.]){NUMBER}", text)
    return {value_of(each)[0] for each in found if each}


def comments(kind: str, text: str) -> list[str]:
    """What stands in the comments of a kind."""
    return re.findall(rf"<!-- {kind}: (.*?) -->", text, flags=re.DOTALL)


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv}  # fmt: skip


def computed(formula: str, known: set[float]) -> float:
    """The value of a formula of numbers from the files; whole powers of ten are free."""

    def value(node: ast.AST) -> float:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Constant):
            if abs(node.value) not in known | {1, 10, 100, 1000, 10**6, 10**9}:
                raise ValueError(f"{node.value} of the formula {formula!r} is in no file")
            return float(node.value)
        raise ValueError(f"{formula!r} is more than + − × ÷ of numbers")

    return value(ast.parse(formula.strip(), mode="eval").body)


def lost(text: str) -> list[str]:
    """Figures of a page that no file it names has, and explanations that explain nothing."""
    names = {found[2] for found in BLOCK.finditer(text)}
    names |= {name for words in comments("figures from", text) for name in words.split()}
    known = set().union(*(numbers(read(name).text) for name in names))
    derived = {}
    for line in ";".join(comments("derived", text)).split(";"):
        if line.strip():
            shown, _, formula = line.partition("=")
            derived[shown.strip()] = computed(formula, known)
    constants = {word for words in comments("constants", text) for word in words.split()}
    used, found = set(), []
    for figure in figures(text):
        explained = figure.among([derived.get(figure.text, math.nan)])
        if figure.text in constants or explained:
            used.add(figure.text)
        elif not figure.among(known):
            found.append(figure.text)
    idle = sorted((constants | derived.keys()) - used)
    return [*found, *(f"{each} is explained, but not said" for each in idle)]


# The run -------------------------------------------------------------------------------------


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*", metavar="NAME", help="files to write anew")
    options.add_argument("--list", action="store_true", help="what there is, and how long it takes")
    options.add_argument("--printed", type=Path, help="what the command printed, if it ran already")
    options.add_argument("--commit", default="", help="at which commit it ran (now)")
    options.add_argument("--date", default="", help="and when (today)")
    chosen = options.parse_args()
    known = commands()
    if chosen.list:
        for name, entry in known.items():
            print(f"{name:24} {entry['minutes']:5} min  {entry['command']}")
        return
    names = [name for name in chosen.names if name != "none"]
    if "all" in names:
        names = [name for name, entry in known.items() if entry["minutes"]]
    if "usual" in names:
        names = [name for name, entry in known.items() if 0 < entry["minutes"] <= USUAL]
    for name in names:
        if name not in known:
            options.error(f"there are no figures {name!r}; --list shows what there is")
        command = known[name]["command"]
        if not known[name]["minutes"]:
            options.error(f"no command writes {name!r} ({command}): edit its file by hand")
        here = chosen.printed is None
        if here and "$TIERRANK_DATA" in command and "TIERRANK_DATA" not in os.environ:
            print(f"{name}: skipped, since TIERRANK_DATA names no folder of data", file=sys.stderr)
            continue
        print(f"{name}: {command}", file=sys.stderr)
        printed = run(command) if here else chosen.printed.read_text(encoding="utf-8")
        write(name, known[name], printed, chosen.commit, chosen.date)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (fresh := with_blocks(text)) != text:
            page.write_text(fresh, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} has new figures", file=sys.stderr)
        for each in lost(fresh):
            print(f"{page.relative_to(ROOT)}: {each}: in no file of figures", file=sys.stderr)


if __name__ == "__main__":
    main()
