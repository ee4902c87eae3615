"""A table lines up and holds every cell, as text and as HTML, whatever is in it."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from softgaze.evaluation.tables import Table
from softgaze.explain.render.text_layout import clean

some_cells = st.lists(st.text(max_size=8), min_size=3, max_size=3)


def test_columns_line_up_though_hangul_is_wide():
    shown = Table("Scores", ["", "BLEU"], [["모델", "1.00"], ["rnn-luong", "없음"]], "a note").text()
    title, *lines, note = shown.splitlines()
    assert (title, note.strip()) == ("Scores", "a note")
    assert len({cell_len(line) for line in lines}) == 1
    assert lines[1].startswith("  모델 ")


class Cells(HTMLParser):
    """The texts of all cells."""

    def __init__(self):
        super().__init__()
        self.found, self.is_inside = [], False

    def handle_starttag(self, tag, attrs):
        self.is_inside = tag in ("th", "td")
        self.found += [""] * self.is_inside

    def handle_data(self, data):
        if self.is_inside:
            self.found[-1] += data

    def handle_endtag(self, tag):
        self.is_inside = False


@given(header=some_cells, rows=st.lists(some_cells, max_size=4))
def test_every_cell_comes_back_from_html(header, rows):
    reader = Cells()
    reader.feed(Table("<b>", header, rows, "&").html())
    assert reader.found == [clean(cell) for row in (header, *rows) for cell in row]
