"""A page that is somebody's own: logo, colour, card."""

import base64
import dataclasses
import io

import pytest

from tierrank.report.aggregation import Look, contrast, page_html
from tierrank.report.plots import card_png

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize(
    ("data", "kind"),
    [(PNG, "image/png"), (b"\xff\xd8\xff\xe0 and so on", "image/jpeg"), (SVG, "image/svg+xml")],
)
def test_a_logo_is_put_into_the_page_as_a_picture_that_runs_nothing(
    make_page, tmp_path, data, kind
):
    file = tmp_path / "logo"
    file.write_bytes(data)
    text = page_html(make_page(3), look=Look.of(file))
    assert f'src="data:{kind};base64,{base64.b64encode(data).decode()}"' in text
    assert "img-src data:;" in text
    assert "img-src" not in page_html(make_page(3))


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", b"<html>", b"<svg", b"<!DOCTYPE svg><svg xmlns='http://www.w3.org/2000/svg'/>",
     b"<svg/>", b"\x00" * 9],
)  # fmt: skip
def test_what_is_no_picture_is_refused(tmp_path, data):
    file = tmp_path / "logo.png"
    file.write_bytes(data)
    with pytest.raises(ValueError, match="no PNG, JPEG or SVG"):
        Look.of(file)
    file.write_bytes(PNG + b"0" * 500_000)
    with pytest.raises(ValueError, match="at most 500,000"):
        Look.of(file)


@pytest.mark.parametrize("accent", ["red", "#12", "#12345g", "#0000000", "};body{}"])
def test_what_is_no_colour_is_refused(accent):
    with pytest.raises(ValueError, match="give it as #rrggbb"):
        Look.of(accent=accent)


@pytest.mark.parametrize("accent", ["#ffff00", "#000000", "#ffffff", "#0b5aa6", "#fc0", "#808080"])
def test_any_colour_can_be_read_by_day_and_by_night(accent):
    style = Look.of(accent=accent).style()
    day, night = (part.partition("}")[0] for part in style.split("--best:")[1:])
    for colour, behind in ((day, ("#ffffff", "#f1f3f6")), (night, ("#181c20", "#21262c"))):
        assert min(contrast(colour, each) for each in behind) >= 4.5
    if accent == "#0b5aa6":
        assert day == accent


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # WebAIM's checker


@pytest.mark.parametrize("items", [1, 5, 200])
def test_a_card_is_a_picture_of_the_size_that_is_shared(make_page, items):
    from matplotlib.image import imread

    page = make_page(items, title="$x$ <b> " + "y" * 200)
    first = dataclasses.replace(page.rows[0], name="$\\bad{ \x00 שלום", high=float("inf"))
    page = dataclasses.replace(page, rows=(first, *page.rows[1:]))
    drawn = card_png(page, Look.of(accent="#c03"))
    assert imread(io.BytesIO(drawn)).shape[:2] == (630, 1200)
    assert drawn == card_png(page, Look.of(accent="#c03"))
