"""What makes a page somebody's own: a logo, and a colour that stays readable."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

MOST_BYTES = 500_000  # of a logo, which is inside the page
CONTRAST = 4.5  # of text and what lies behind it: WCAG 2, level AA

# What text in the colour lies on, by day and by night: the palest and the darkest of page.css.
_BEHIND = {"light": ("#ffffff", "#f1f3f6"), "dark": ("#181c20", "#262c33")}

_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}

RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """A logo as a data URI, and an accent colour as #rrggbb; "" for none."""

    logo: str = ""
    accent: str = ""

    @classmethod
    def of(cls, logo: str | Path | None = None, accent: str | None = None) -> Look:
        """From the file of a logo (PNG, JPEG or SVG) and a colour (#rgb or #rrggbb).

        Examples
        --------
        >>> Look.of(accent="#C03").accent
        '#cc0033'
        """
        return cls("" if logo is None else _embedded(Path(logo)), _colour(accent or ""))

    def on_paper(self) -> str:
        """The colour as it can be read on white; "" for none."""
        return _readable(self.accent, _BEHIND["light"]) if self.accent else ""

    def style(self) -> str:
        """The colour for day and night, as near to it as can be read there."""
        if not self.accent:
            return ""
        night = _readable(self.accent, _BEHIND["dark"])
        return (
            f":root{{--best:{self.on_paper()}}}\n"
            f"@media screen and (prefers-color-scheme:dark){{:root{{--best:{night}}}}}\n"
        )


def _embedded(path: Path) -> str:
    data = path.read_bytes()
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{path}: the logo has {len(data):,} bytes, and all of them are in the page: give one "
            f"of at most {MOST_BYTES:,}"
        )
    kind = next((kind for sign, kind in _SIGNATURES.items() if data.startswith(sign)), None)
    if kind is None and _is_svg(data):
        kind = "image/svg+xml"
    if kind is None:
        raise ValueError(f"{path}: the logo is no PNG, JPEG or SVG: give one of these")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _is_svg(data: bytes) -> bool:
    if b"<!DOCTYPE" in data.upper() or b"<!ENTITY" in data.upper():  # may unfold without end
        return False
    try:
        return ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    except (ElementTree.ParseError, ValueError, LookupError):
        return False


def _colour(text: str) -> str:
    short = re.fullmatch(r"#([0-9a-f])([0-9a-f])([0-9a-f])", text.strip().lower())
    written = "#" + "".join(2 * each for each in short.groups()) if short else text.strip().lower()
    if text and not re.fullmatch("#[0-9a-f]{6}", written):
        raise ValueError(f"the accent colour is {text!r}: give it as #rrggbb, such as #0b5aa6")
    return written


def _readable(accent: str, behind: tuple[str, ...]) -> str:
    """The colour mixed with black or white, as little as it takes to be told from all `behind`."""
    end = 0.0 if _luminance(_rgb(behind[0])) > 0.5 else 255.0
    rgb = _rgb(accent)
    for percent in range(101):
        mixed = tuple(round(c + (end - c) * percent / 100) for c in rgb)
        found = f"#{mixed[0]:02x}{mixed[1]:02x}{mixed[2]:02x}"
        if all(contrast(found, each) >= CONTRAST for each in behind):
            break
    return found


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: from 1 to 21."""
    bright, dark = sorted((_luminance(_rgb(one)), _luminance(_rgb(other))), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _rgb(colour: str) -> RGB:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _luminance(rgb: RGB) -> float:
    parts = (c / 255 for c in rgb)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
