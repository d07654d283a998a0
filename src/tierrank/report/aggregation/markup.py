"""Text and numbers as they stand in the page. All that comes from outside passes `text`."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"

# A browser drops or replaces these, and a lone surrogate cannot be written as UTF-8.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def text(value: str) -> str:
    """Text from outside, for an element's content or an attribute in double quotes."""
    return html.escape(_UNWRITABLE.sub("\ufffd", value), quote=True)


def item_name(name: str) -> str:
    """An item's name, kept from turning the direction of what stands beside it."""
    if not name.strip():
        return '<bdi class="unnamed">(no name)</bdi>'
    return f"<bdi>{text(name)}</bdi>"


def plain_name(name: str) -> str:
    """An item's name where no element may stand: in a title or an attribute."""
    return text(name) if name.strip() else "(no name)"


def number(value: float | None, decimals: int) -> str:
    """A number with its sign as in print; nothing where there is none."""
    if value is None:
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= 1e9:
        return significant(value)
    written = f"{value:,.{decimals}f}"
    if not float(written.replace(",", "")):
        written = written.lstrip("-")  # no "−0.00"
    return written.replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """A number to some digits, however large or small it is."""
    written = f"{value:#.{digits}g}" if value else "0"
    return written.rstrip(".").replace("-", MINUS)


def percent(value: float, decimals: int = 0) -> str:
    """A probability in percent, which is 0 or 100 only if it is exactly that."""
    least = 10.0**-decimals
    if 0 < 100 * value < least / 2:
        return f"&lt;{least:g}"
    if value < 1 and 100 * value > 100 - least / 2:
        return f"&gt;{100 - least:g}"
    return f"{100 * value:.{decimals}f}"


def count(many: int, one: str, more: str | None = None) -> str:
    """`1 item`, `1,200 items`."""
    return f"{many:,}{NO_BREAK}{one if many == 1 else more or one + 's'}"


def length(value: float) -> str:
    """A share of a whole as CSS and SVG write it."""
    return f"{100 * value:.3f}".rstrip("0").rstrip(".") + "%"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of terms and what they are; the second of each pair is markup."""
    rows = "".join(f"<div><dt>{term}</dt><dd>{what}</dd></div>" for term, what in pairs)
    return f'<dl class="facts">{rows}</dl>'


@dataclass(frozen=True)
class Section:
    """A part of the page under its heading.

    On a large screen its `shape` is "wide" (the whole width), "half", or "tall" (half the width,
    and as high as two halves beside it).
    """

    name: str
    heading: str
    content: str
    shape: Literal["wide", "half", "tall"] = "half"

    def html(self) -> str:
        """The section as markup."""
        return (
            f'<section id="{self.name}" class="{self.shape}" aria-labelledby="{self.name}-heading">'
            f'<h2 id="{self.name}-heading">{self.heading}</h2>{self.content}</section>\n'
        )
