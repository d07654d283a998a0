"""The page is whole, valid, and asks nobody for anything."""

import base64
from html.parser import HTMLParser

import pytest
from page import Cell, Table, facts, page

VOID = {"meta", "img", "br"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and collects cells and addresses."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.text, self.tables = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


@pytest.fixture
def text():
    rows = [[Cell("a < b & c"), Cell("1", "[0, 2]", "printed", best=True)], [Cell("d"), Cell("–")]]
    table = Table(
        "Title <1>", ["x", "y"], rows, [("", 1), ("group", 1)], "Words.", "", ["ours", ""]
    )
    return page(
        "A \"title\" & more", ["First."], [table], b"\x89PNG bytes", "It's <shown>.", ["A note."],
        [facts("Settings", {"seed": "0"})],
    )  # fmt: skip


def test_tags_are_closed_and_text_is_escaped(text):
    read = Reader(text)
    assert read.tables[0] == [["", "group"], ["x", "y"], ["a < b & c", "1 [0, 2]"], ["d", "–"]]
    assert read.tables[1] == [["what", "which"], ["seed", "0"]]
    for words in ("Title <1>", "Words.", "First.", "A note.", "It's <shown>.", 'A "title" & more'):
        assert words in read.text
    assert '<td class="printed"><b>1</b>' in text
    assert '<tr class="ours">' in text


def test_the_plot_is_inside_and_nothing_is_fetched(text):
    (address,) = Reader(text).addresses
    kind, _, data = address.partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == b"\x89PNG bytes"
    assert "http" not in text
    assert "<script" not in text
    assert "url(" not in text
