"""What a notebook shows of an attention: a page to play with, a picture where no scripts run, text in a terminal."""

import base64
import html

from softgaze.gaze.attention import Attention
from softgaze.gaze.sheet import Sheet
from softgaze.gaze.svg import drawn
from softgaze.gaze.tiles import drawn_tiles

HEIGHT = 760  # of the frame, in pixels; it scrolls if a page is longer

# Where a notebook is not trusted, as on GitHub, frame and style are both taken out, and the picture comes to light.
FRAME = """<style>.softgaze-still {{ display: none }}</style>
<iframe title="attention" sandbox="allow-scripts allow-downloads" width="100%" height="{height}" frameborder="0" \
srcdoc="{page}"></iframe>
<img class="softgaze-still" alt="attention" src="data:image/svg+xml;base64,{picture}">"""


def bundle(attention: Attention, *lines: str) -> dict[str, str]:
    """All forms at once, from which a notebook takes the richest it can show; `lines` stand above the map."""
    return {
        "text/plain": "\n".join([*lines, "", str(attention)] if lines else [str(attention)]),
        "image/svg+xml": attention.plot().svg,
        "text/html": "".join(map(paragraph, lines)) + frame(attention),
    }


def paragraph(line: str) -> str:
    """One line of text, in the direction of its script."""
    return f'<p dir="auto">{html.escape(line)}</p>\n'


def frame(attention: Attention) -> str:
    """The page, where it can reach nothing of the notebook around it."""
    still = drawn(Sheet(attention)) if attention.grid is None else drawn_tiles(attention)
    picture = base64.b64encode(still.encode()).decode()
    return FRAME.format(height=HEIGHT, page=html.escape(attention.to_html()), picture=picture)
