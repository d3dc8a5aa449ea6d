"""The style sheets keep to the design system of tokens.css."""

import re
from pathlib import Path

import pytest

from tests.harness.stack import ROOT

SHEETS = sorted([*ROOT.glob("static/css/*.css"), *ROOT.glob("dialogs/extras/*/static/css/*.css")])
NAMED = [sheet for sheet in SHEETS if sheet.name != "fonts.css"]
DISTANCE = re.compile(r"(?<![\w-])(?:margin|padding|gap|row-gap|column-gap)(?:-[a-z-]+)?: ([^;}]+)")
SIZE = re.compile(r"(?<![\w-])font(?:-size)?: ([^;}]+)")
HAIRLINES = (0, 1, 2)  # px: what is drawn at an edge
OF_THE_PHONE = "max(1rem, 16px)"  # a smaller field makes a phone zoom


@pytest.mark.parametrize("sheet", NAMED, ids=lambda sheet: sheet.name)
def test_distances_stand_on_a_grid_of_four_pixels(sheet: Path) -> None:
    results = [
        f"{value}px in {distance}"
        for distance in DISTANCE.findall(sheet.read_text())
        for value in re.findall(r"(?<![\w.])-?([\d.]+)px", distance)
        if float(value) not in HAIRLINES and float(value) % 4
    ]
    assert not results


@pytest.mark.parametrize("sheet", NAMED, ids=lambda sheet: sheet.name)
def test_sizes_of_letters_are_those_of_the_tokens(sheet: Path) -> None:
    sizes = SIZE.findall(sheet.read_text())
    named = re.compile(r"var\(--[a-z]+\)( ?/ ?[\d.]+(rem)?)?( var\(--(mono|font)\))?|inherit|0\.\d+em")
    assert not [size for size in sizes if not named.fullmatch(size) and size != OF_THE_PHONE and not size.endswith("%")]


@pytest.mark.parametrize("sheet", NAMED, ids=lambda sheet: sheet.name)
def test_no_side_is_called_left_or_right(sheet: Path) -> None:
    """Languages that run from right to left need no styles of their own. A chart runs from left to right everywhere."""
    text = sheet.read_text()
    sided = re.findall(r"(?:margin|padding|border)-(?:left|right)|text-align: (?:left|right)", text)
    four = re.findall(r"(?<![\w-])(?:margin|padding): ([^\s;]+) ([^\s;]+) ([^\s;]+) ([^\s;}]+)[;}]", text)
    assert [name for name in sided if sheet.name != "ops.css"] == []
    assert all(right == left for _, right, _, left in four)


def test_summaries_with_marks_of_their_own_have_no_others() -> None:
    """WebKit draws its triangle in a summary of any kind; others only in those that are list items."""
    marked, unmarked = set[str](), set[str]()
    for sheet in NAMED:
        for selector, body in re.findall(r"([^{}]+){([^{}]*)}", re.sub(r"(?s)/\*.*?\*/", "", sheet.read_text())):
            if "summary::-webkit-details-marker" in selector:
                unmarked |= {*re.findall(r"\.[a-z-]+", selector)}
            elif re.search(r"summary\)?\s*$|summary::before", selector) and re.search(
                r"display: \S*flex|(?<!-)content:", body
            ):
                marked |= {*re.findall(r"\.[a-z-]+", selector)}
    assert {".nav-folder", ".tool"} <= marked <= unmarked


def test_each_icon_that_is_named_is_drawn() -> None:
    drawn = set(re.findall(r'<symbol id="([a-z-]+)"', (ROOT / "static/icons.svg").read_text()))
    named: set[str] = set()
    for folder in ("templates", "static/js", "dialogs/extras/*/templates", "dialogs/extras/*/static/js"):
        for file in ROOT.glob(f"{folder}/**/*.*"):
            named |= set(re.findall(r"""(?:icon |iconOf\()"([a-z-]+)["]""", file.read_text()))
    assert {"logo", "retry"} <= named <= drawn
