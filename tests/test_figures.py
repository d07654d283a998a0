"""Figures of README and docs: blocks are their files, and no figure of the text is from nowhere."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "docs" / "figures"
_spec = importlib.util.spec_from_file_location("refresh", HERE / "refresh.py")
refresh = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(refresh)
PAGES = refresh.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_includes_is_what_the_file_of_figures_has(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- figures: ") == text.count("<!-- end -->")
    assert text == refresh.with_blocks(text), "python docs/figures/refresh.py mends it"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_figure_of_the_text_is_in_a_file_that_the_page_names(page):
    assert refresh.lost(page.read_text(encoding="utf-8")) == []


def test_every_file_says_which_command_wrote_it_when_and_where():
    known = refresh.commands()
    files = {path.stem for path in HERE.glob("*.md")}
    assert files == set(known)
    for name, entry in known.items():
        head = refresh.read(name).head
        assert {"command", "source", "date", "commit", "machine", "versions"} <= set(head), name
        assert head["command"] == entry["command"], name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", head["date"]), name
        assert head["source"].startswith(("written by the command", "recorded from docs/")), name
        for program in re.findall(r"(?:benchmarks|experiments)/\w+\.py", entry["command"]):
            assert (ROOT / program).is_file(), program
        if entry["command"].startswith("none"):
            assert entry["minutes"] == 0, name
    said = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    idle = {name for name in files if not re.search(rf"<!-- figures.*\b{name}\b", said)}
    assert idle == set()  # on no page


def test_a_changed_figure_is_found_in_block_and_text():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(refresh.BLOCK.finditer(readme))
    number = re.search(r"\d\.\d{4}", block[4])[0]
    changed = readme.replace(block[4], block[4].replace(number, "0.9876", 1))
    assert refresh.with_blocks(changed) == readme
    assert "0.98765" in refresh.lost(readme + "\nIt is at 0.98765 now.\n")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A file of figures to ask."""
    (tmp_path / "speed.md").write_text(
        "---\ncommand: time it\ndate: 2026-01-02\n---\n\n## Slow, then fast\n\n"
        "| what | ns | best |\n| --- | ---: | ---: |\n| ours | 1,240 | 17.36 |\n"
        "| theirs | 2e-11 | **0.456** |\n\n## Next\n\n| a |\n| - |\n| 5 % |\n",
        encoding="utf-8",
    )
    entry = {"command": "time it", "minutes": 1, "excerpts": {"short": {
        "of": "Slow, then fast", "columns": {"what": "who", "best": "at best"},
        "rows": {"theirs": "they"}}}}  # fmt: skip
    monkeypatch.setattr(refresh, "HERE", tmp_path)
    monkeypatch.setattr(refresh, "ROOT", tmp_path)
    monkeypatch.setattr(refresh, "commands", lambda: {"speed": entry})


def test_a_block_is_a_section_a_table_an_excerpt_or_all(tables):
    assert refresh.block("speed", "Next") == "| a |\n| - |\n| 5 % |"
    assert refresh.block("speed", "2") == refresh.block("speed", "Next")
    assert refresh.block("speed", None).startswith("## Slow, then fast\n")
    short = refresh.block("speed", "short")
    assert short == "| who | at best |\n| --- | ---: |\n| they | **0.456** |"
    with pytest.raises(ValueError, match="nothing titled 'Never'; they have: Slow, then"):
        refresh.block("speed", "Never")
    with pytest.raises(ValueError, match="there are no figures 'fast'"):
        refresh.block("fast", None)


PAGE = "<!-- figures from: speed -->\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("17.4 ns, 17.36, .46, 0.5 and 45.6 %, 5 %, 2e-11, 1,240 times", []),
        ("1,200 to 1,240 ns", []),  # rounded, and both of a range have the unit
        ("17.35", ["17.35"]),
        ("3e-11 and 46.6 %", ["3e-11", "46.6"]),
        ("in 1,300 ms", ["1,300"]),
        ("40 to 60 times", ["40", "60"]),
        ("1/18 of it", ["18"]),
        ("In 2026, 300 lists of 20 (Python 3.11, torch 2.13, section 4.2, 1.2.3)", []),
        ("`0.123` and [a link](page-0.5.md)\n\n    0.789\n\n```\n0.321\n```\n", []),
        ("a level of 0.95 <!-- constants: 0.95 -->", []),
        ("nothing of the kind <!-- constants: 0.95 -->", ["0.95 is explained, but not said"]),
        ("71.4 times <!-- derived: 71.4 = 1240 / 17.36 -->", []),
        ("72.4 times <!-- derived: 72.4 = 1240 / 17.36 -->",
         ["72.4", "72.4 is explained, but not said"]),
    ],
)  # fmt: skip
def test_figures_are_told_from_other_numbers_and_looked_for_as_they_are_rounded(
    tables, text, found
):
    assert refresh.lost(PAGE + text) == found


def test_what_is_derived_is_from_numbers_of_the_files_and_nothing_but_arithmetic(tables):
    with pytest.raises(ValueError, match=r"17\.5 of the formula"):
        refresh.lost(PAGE + "1.0 <!-- derived: 1.0 = 17.5 / 17.36 -->")
    with pytest.raises(ValueError, match="more than"):
        refresh.lost(PAGE + "1.0 <!-- derived: 1.0 = abs(17.36) -->")


def test_a_command_is_run_and_its_output_kept_under_a_head(tables, monkeypatch):
    printed = refresh.run("printf '## Machine\n\n| CPU |\n| --- |\n\n## New\n\n| 0.25 |\n'")
    entry = {"command": "time it", "titles": ["Untitled"]}
    refresh.write("speed", {"command": "time it"}, printed, commit="1a2b3c4")
    file = refresh.read("speed")
    assert file.text == "## New\n\n| 0.25 |"
    refresh.write("speed", entry, "so\n\n| 0.25 |\n| 1 |\n\n| 2 |\n", commit="1a2b3c4")
    file = refresh.read("speed")
    assert file.text == "so\n\n## Untitled\n\n| 0.25 |\n| 1 |\n\n| 2 |"
    assert file.head["commit"] == "1a2b3c4"
    assert file.head["source"] == "written by the command"
    assert "1a2b3c4" in file.source()


def test_the_table_of_commands_is_what_make_figures_lists():
    entries = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))
    assert all(
        entry.keys() <= {"command", "minutes", "excerpts", "titles"} for entry in entries.values()
    )
