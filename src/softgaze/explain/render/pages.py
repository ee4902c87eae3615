"""Interactive pages: one sentence, captioned images, a corpus, an attention history; and the display in a notebook.

Each page is one HTML file that needs neither network nor server. It contains the whole recording and computes every
map in the browser with `assets/maps.js`, which tests compare with `Attention`.
"""

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from softgaze.bundle import ATTENTION, Bundle
from softgaze.errors import DataError
from softgaze.explain.alignment import Alignment
from softgaze.explain.attention_map import MIN_RELIABILITY, Attention
from softgaze.explain.recording import KINDS, MEASURES, ROWS, UNITS, Matrix, PartAttention, SelectedMap
from softgaze.explain.render.text_layout import clean
from softgaze.explain.serialization import ELEMENT, Snapshot, read_history, recording_to_dict, script_element, to_json
from softgaze.explain.what_if import Counterfactual

if TYPE_CHECKING:
    from softgaze.explain.corpus_report import CorpusReport

DATA_ELEMENT = "softgaze-page"  # the id of the page data, next to the recordings
CORPUS_TITLE = "Dropped and repeated words"
HISTORY_TITLE = "Attention during training"
MAX_TITLE = 60  # characters of both sentences in the window title
NAMES = {"kind": KINDS, "rows": ROWS, "measure": MEASURES, "unit": UNITS}

# --- documents -------------------------------------------------------------------------------------------------

ASSETS = files("softgaze.explain.render") / "assets"
STYLE = "style.css"  # shared by all pages

DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
{body}
<script>{js}</script>
</body>
</html>
"""
# Only this style and this script; images only from the page itself, which it needs to save a PNG.
POLICY = (
    "default-src 'none'; style-src '{css}'; script-src '{js}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def document(title: str, body: str, *, styles: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> str:
    """Return a page with files of `assets/` as its styles and scripts; no other code can run in it."""
    css, js = ("\n".join(map(asset, names)) for names in ((STYLE, *styles), scripts))
    policy = POLICY.format(css=_csp_hash(css), js=_csp_hash(js))
    return DOCUMENT.format(title=html.escape(title), policy=policy, css=css, body=body, js=js)


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _page(name: str, window_title: str, title: str | None, data: Any, recordings: Sequence[Attention] = ()) -> str:
    """Fill the template `name`.html, with its own title by default, and embed `data` and the recordings as JSON."""
    heading = f"<h1>{html.escape(title)}</h1>" if title else '<h1 data-i18n="title"></h1>'
    body = [Template(asset(f"{name}.html")).substitute(heading=heading)]
    for number, attention in enumerate(recordings, 1):
        body.append(script_element(ELEMENT if number == 1 else f"{ELEMENT}-{number}", to_json(attention)))
    packed = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body.append(script_element(DATA_ELEMENT, packed))
    style, script = ((), ("export.js",)) if name == "attention" else ((f"{name}.css",), ())
    scripts = ("maps.js", "i18n.js", "page_strings.js", f"{name}_strings.js", "draw.js", *script, f"{name}.js")
    return document(window_title, "\n".join(body), styles=("page.css", *style), scripts=scripts)


def _selected(attention: Attention) -> dict[str, Any] | None:
    """Return the selected map with what `describeMap` states about it, and about other maps of the sentence."""
    selected, reliability = attention.selected_map, attention.reliability
    if selected is None:
        return None
    texts = (attention.reliability_text,) * 2
    own, other = texts if reliability is None else (reliability.describe(), reliability.describe_sentence())
    return {
        "view": vars(selected.view),
        "text": selected.describe(),
        "reliability": {"own": own, "other": other, "isLow": reliability is not None and reliability.is_low},
    }


# --- one sentence -----------------------------------------------------------------------------------------------


def attention_page(
    attention: Attention,
    *,
    gold: Alignment | None = None,
    occlusion: Matrix | None = None,
    counterfactuals: Iterable[Counterfactual] = (),
    title: str | None = None,
    opens_with: str = "attention",
    unsupported: Sequence[int] = (),
    omitted: Sequence[int] = (),
    source_share: Matrix | None = None,
) -> str:
    """Return the page of one sentence.

    `gold` links are outlined, heads are sorted by their agreement with `occlusion` (target words, source words), and
    the what-if tab shows the `counterfactuals`. With `occlusion`, a switch shows it as a map; the page `opens_with`
    "attention" or "occlusion". Output words that are `unsupported` and source words that are `omitted` are marked, and
    the tooltip of an output word has its `source_share` (target words,).
    """
    recording, packed = attention.recording, None
    if occlusion is not None:
        expected = len(recording.target.words), len(recording.source.words)
        if occlusion.shape != expected:
            raise ValueError(
                f"expected occlusion of shape {expected} (target words, source words), got {occlusion.shape}"
            )
        values = np.ascontiguousarray(occlusion, dtype="<f4").tobytes()  # NaN, for unknown values, survives
        packed = {"height": expected[0], "width": expected[1], "values": base64.b64encode(values).decode()}
    data = {
        "names": NAMES,
        "selected": _selected(attention),
        "reliability": attention.reliability and attention.reliability.to_dict(),
        "cores": {"source": recording.source.core_of, "target": recording.target.core_of},
        "gold": {"links": sorted(gold.links), "possible": sorted(gold.possible)} if gold else None,
        "occlusion": packed,
        "opensWith": opens_with,
        "flags": {"row": [*unsupported], "column": [*omitted]},
        "sourceShare": None if source_share is None else source_share.round(3).tolist(),
        "counterfactuals": [_counterfactual_record(each) for each in counterfactuals],
    }
    texts = " → ".join(" ".join(text.words) for text in (recording.source, recording.target))
    window_title = title or (texts if len(texts) <= MAX_TITLE else f"{texts[: MAX_TITLE - 1]}…")
    return _page("attention", window_title, title, data, [attention])


def _counterfactual_record(counterfactual: Counterfactual) -> dict[str, Any]:
    """Pack a counterfactual with only the shown map of its attention: there may be one for each word."""
    record = {name: getattr(counterfactual, name) for name in ("kind", "values", "source_word", "text", "diff")}
    for name in ("score", "before"):
        score = getattr(counterfactual, name)
        record[name] = score if math.isfinite(score) else None  # JSON has neither NaN nor infinity
    shown = counterfactual.attention.words() if counterfactual.attention else None
    if shown is None:
        return {**record, "attention": None}
    recording = Attention.of(shown.source, shown.target, shown.weights).recording
    return {**record, "attention": {"shows": shown.description, **recording_to_dict(recording)}}


# --- images -----------------------------------------------------------------------------------------------------


def image_page(attentions: Sequence[Attention], names: Sequence[str] = (), *, title: str | None = None) -> str:
    """Return the page of images and their captions; `Attention.load` reads the first of them."""
    from softgaze.explain.render.image_overlay import caption

    if not attentions or any(attention.grid is None for attention in attentions):
        raise ValueError("expected one or more maps, each over an image grid")
    data = {
        "imageNames": [clean(name) for name in names] or [""] * len(attentions),
        "names": NAMES,
        "selected": [_selected(attention) for attention in attentions],
    }
    recordings = attentions if len(attentions) == 1 else [without_self_attention(attention) for attention in attentions]
    return _page("image", title or caption(attentions[0]), title, data, recordings)


def without_self_attention(attention: Attention) -> Attention:
    """Drop the self-attention, which is large and not shown, unless a rollout needs it."""
    if attention.view.measure == "rollout":
        return attention
    parts = tuple(PartAttention(part.cross) for part in attention.recording.parts)
    return replace(attention, recording=replace(attention.recording, parts=parts))


# --- a corpus ---------------------------------------------------------------------------------------------------


def corpus_page(report: "CorpusReport", facts: Mapping[str, Any]) -> str:
    """Return the page of a corpus report; `facts` are model, corpus, beam_size, and the description of the maps."""
    from softgaze.explain.corpus_report import MIN_FAITHFULNESS, RANKINGS

    required = ("line", "source", "output", "coverage", "faithfulness", "sink", "weights")
    optional = (
        "reference",
        "uncovered",
        "shortfall",
        "omitted",
        "misfit",
        "unsupported",
        "reliability",
        "repeated",
        "different",
        "aer",
        "scores",
    )
    data = {
        "facts": dict(facts),
        "summary": report.summary(),
        "isComplete": report.is_complete,
        "minFaithfulness": MIN_FAITHFULNESS,
        "minReliability": MIN_RELIABILITY,
        "rankings": {name: {"title": rank.title, "explained": rank.explained} for name, rank in RANKINGS.items()},
        "sentences": [
            {name: getattr(sentence, name) for name in required}
            | {name: value for name in optional if (value := getattr(sentence, name)) or value == 0.0}
            for sentence in report.kept()
        ],
    }
    return _page("corpus", f"{CORPUS_TITLE}: {facts['corpus']}", None, data)


# --- an attention history ---------------------------------------------------------------------------------------


def run_history_page(run: Path) -> str:
    """Return the page of a run directory, with the selected map if the trained model has one."""
    try:
        stored = Bundle.open(run).facts.get(ATTENTION)
    except DataError:  # the run has no bundle yet
        stored = None
    return history_page(read_history(run, SelectedMap.from_dict(stored) if stored else None))


def history_page(snapshots: Sequence[Snapshot]) -> str:
    """Return the page of an attention history, whose snapshots have the same source and reference."""
    if not snapshots:
        raise DataError("the attention history has no snapshot yet; each validation adds one")
    last = snapshots[-1].attention
    data = {
        "names": NAMES,
        "view": asdict(last.view),
        "selected": _selected(last),
        "snapshots": [
            {name: getattr(snapshot, name) for name in ("step", "minutes", "scores", "text")}
            | {"recording": recording_to_dict(snapshot.attention.recording)}
            for snapshot in snapshots
        ],
    }
    return _page("history", f"{HISTORY_TITLE}: {' '.join(last.recording.source.words)}", None, data)


# --- notebooks --------------------------------------------------------------------------------------------------

FRAME_HEIGHT = 760  # pixels; a longer page scrolls

# An untrusted notebook, as on GitHub, loses iframe and style, and the image becomes visible.
NOTEBOOK = """<style>.softgaze-still {{ display: none }}</style>
<iframe title="attention" sandbox="allow-scripts allow-downloads" width="100%" height="{height}" frameborder="0" \
srcdoc="{page}"></iframe>
<img class="softgaze-still" alt="attention" src="data:image/svg+xml;base64,{image}">"""


def notebook_mimebundle(attention: Attention, *lines: str) -> dict[str, str]:
    """Return the map as text, SVG and a sandboxed page, below `lines` of text; a notebook shows the best it can."""
    from softgaze.explain.render.heatmap_svg import draw_heatmap
    from softgaze.explain.render.image_overlay import draw_image_overlay

    draw = draw_heatmap if attention.grid is None else draw_image_overlay
    image = base64.b64encode(draw(attention, with_data=False).encode()).decode()
    page = NOTEBOOK.format(height=FRAME_HEIGHT, page=html.escape(attention.to_html()), image=image)
    return {
        "text/plain": "\n".join([*lines, "", str(attention)] if lines else [str(attention)]),
        "image/svg+xml": attention.plot().svg,
        "text/html": "".join(f'<p dir="auto">{html.escape(line)}</p>\n' for line in lines) + page,
    }
