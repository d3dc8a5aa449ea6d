"""What the crawl takes for a percentage of nobody knows what."""

import pytest

from tests.dialogs.percentages import Percentages


def bare(html: str) -> set[str]:
    page = Percentages()
    page.feed(html)
    return page.bare


@pytest.mark.parametrize(
    "html",
    [
        "<p>94.6 % of 6,500</p>",
        "<div>Utilization <strong>12.3%</strong> <span>est. share of the window</span></div>",
        "<table><tr><th>Call</th><th>Of window</th></tr><tr><td>1</td><td>94.6 %</td></tr></table>",
        "<dl><dt>Of the optimal size</dt><dd>94.6 %</dd></dl>",
        "<script>width = '12 %'</script>",
    ],
)
def test_a_percentage_says_of_what(html: str) -> None:
    assert bare(html) == set()


@pytest.mark.parametrize(
    "html",
    [
        "<p>94.6 %</p>",
        "<p>94.6 % of 6,500</p><p>6 %</p>",
        "<p>94.6 % of 6,500, and 6 % full</p>",
        "<table><tr><th>Call</th><th>Of window</th></tr><tr><td>94.6 %</td><td>6 %</td></tr></table>",
        "<dl><dt>Of the window</dt><dd>6 %</dd><dt>Full</dt><dd>94.6 %</dd></dl>",
        '<button title="94.6 % used">Health</button>',
    ],
)
def test_or_it_is_bare(html: str) -> None:
    assert len(bare(html)) == 1
