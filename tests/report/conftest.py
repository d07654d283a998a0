"""Pages to look at, and a browser to look at them with."""

import pytest

import browser
from report_page import made_page


@pytest.fixture
def make_page():
    return made_page


@pytest.fixture(scope="module")
def chromium():
    path = browser.find()
    if path is None:
        pytest.skip("there is no chromium here, to see the page in a real browser")
    with browser.Browser(path) as running:
        yield running
