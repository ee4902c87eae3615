"""The page of one sentence in a real browser, offline; its arithmetic equals that of `Attention` for every view."""

import json
import re
from dataclasses import asdict, replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest

from maps import random_attention, random_recording, random_stack
from softgaze.explain import Alignment, Attention, Recording, SelectedMap, View
from softgaze.explain.attention_map import MIN_RELIABILITY, LinkReliability
from softgaze.explain.map_selection import occlusion_agreement, word_maps
from softgaze.explain.occlusion import faithfulness
from softgaze.explain.recording import MEASURES, ROWS, UNITS, PartAttention
from softgaze.explain.render.pages import attention_page
from softgaze.explain.render.terminal import summarize
from softgaze.explain.what_if import Counterfactual
from softgaze.explain.word_spans import BOS_MARK, EOS_MARK, TokenizedText

SELECTED = SelectedMap(View(layer=1, head=0), 0.125, "occlusion", 24)  # a score that is rounded to even: 0.12


def views(recording):
    for kind in recording.kinds:
        layers, heads = recording.size(kind)
        fields = [None, *range(layers)], [None, *range(heads)], ROWS, MEASURES, UNITS
        yield from (View(kind, *choice) for choice in product(*fields))


def one_part(seed):
    pieces = [(["▁a", "▁do", "g", ",", "▁sleeps", "."], ["▁개", "가", "▁자", "요", ".", "▁–"])]
    return random_recording(pieces, "a dog, sleeps.", "개가 자요. –", seed)


COMPUTE = """views => views.map(view => {
  const map = mapOf(recording, view), weights = wordWeights(recording, view);
  return {
    source: map.columns.map(label => label.text), target: map.rows.map(label => label.text),
    weights: Array.from(map.values), description: describeMap(recording, view, data.names, data.selected),
    entropy: entropies(map), coverage: coverages(map), sink: sinkOf(map), links: alignmentLinks(recording, view),
    faithfulness: view.kind === "cross" ? faithfulnessOf(weights, occlusion) : null,
  };
})"""


@pytest.mark.parametrize("recording", [random_recording(seed=1), one_part(2)], ids=["two parts", "one part"])
def test_every_view_equals_python(open_page, recording):
    shape = len(recording.target.words), len(recording.source.words)
    occlusion = np.random.default_rng(0).normal(size=shape)
    occlusion[0, 1] = np.nan
    all_views = list(views(recording))
    page = open_page(attention_page(Attention(recording, View(), SELECTED), occlusion=occlusion))
    for view, computed in zip(all_views, page.evaluate(COMPUTE, [asdict(view) for view in all_views]), strict=True):
        wanted = Attention(recording, view, SELECTED)
        assert (tuple(computed["source"]), tuple(computed["target"]), computed["description"]) == (
            wanted.source,
            wanted.target,
            wanted.description,
        )
        assert abs(np.reshape(computed["weights"], wanted.weights.shape) - wanted.weights).max() < 1e-4
        np.testing.assert_allclose(computed["entropy"], wanted.entropy(), atol=1e-3)
        np.testing.assert_allclose(computed["coverage"], wanted.coverage(), atol=1e-3)
        assert computed["sink"] == pytest.approx(wanted.sink, abs=1e-4)
        if view.kind == "cross":
            assert {tuple(link) for link in computed["links"]} == wanted.alignment().links
            assert computed["faithfulness"] == pytest.approx(faithfulness(wanted, occlusion), abs=1e-6)


# --- interaction --------------------------------------------------------------------------------

SOURCE = ["the", "women", "go", "to", "school", EOS_MARK]
TARGET = ["여자들은", "학교에", "가요", EOS_MARK]
WEIGHTS = [
    [0.06, 0.9, 0.01, 0.01, 0.01, 0.01],
    [0.01, 0.02, 0.02, 0.1, 0.83, 0.02],
    [0.01, 0.01, 0.96, 0.01, 0.0, 0.01],
    [0.0, 0.0, 0.0, 0.0, 0.1, 0.9],
]
OUTPUT = "#stage .line[aria-label=output] .word"
INPUT = "#stage .line[aria-label=source] .word"


def example(**view):
    return Attention(Attention.of(SOURCE, TARGET, WEIGHTS).recording, View(**view))


def sentence(page):
    return page.inner_text("#sentence")


def highlighted(page):
    """The words that are not faded."""
    return page.locator("#stage.lit .word.on").all_inner_texts()


def test_opens_with_ribbons_heat_map_and_summary(open_page):
    page = open_page(attention_page(example()))
    assert sentence(page) == "여자들은 ← women 0.90, 학교에 ← school 0.83, 가요 ← go 0.96; 1 source word unused: the"
    assert page.locator(INPUT).all_inner_texts() == SOURCE
    assert page.locator(OUTPUT).all_inner_texts() == TARGET
    assert page.locator("#heat .number").all_text_contents() == ["0.90", "0.10", "0.83", "0.96", "0.10", "0.90"]
    assert page.inner_text("#description") == example().description
    assert page.title() == "the women go to school → 여자들은 학교에 가요"
    assert not page.is_visible("#tabs")  # no what-if without counterfactuals


def test_summary_equals_python_for_every_view(open_page):
    recording = one_part(8)
    all_views = list(views(recording))
    page = open_page(attention_page(Attention(recording, View())))
    describe = "views => views.map(view => make('p', {}, ...describeActive(mapOf(recording, view), null)).textContent)"
    assert page.evaluate(describe, [asdict(view) for view in all_views]) == [
        summarize(Attention(recording, view)) for view in all_views
    ]


def test_ribbon_width_is_proportional_to_weight(open_page):
    page = open_page(attention_page(example()))
    ribbons = page.evaluate("ribbons.paths.map(path => [path.row, path.column, path.width])")
    unit = {width / WEIGHTS[row][column] for row, column, width in ribbons}
    assert max(unit) - min(unit) < 0.01
    assert {(row, column) for row, column, _ in ribbons} >= {(0, 1), (1, 4), (1, 3), (2, 2), (3, 5)}


def test_hover_highlights_the_word_and_its_weights(open_page):
    page = open_page(attention_page(example()))
    page.hover(f"{OUTPUT} >> nth=1")
    assert sentence(page).startswith("학교에 ← school 0.83, to 0.10; 1 source word unused")
    assert highlighted(page) == ["to", "school", "학교에"]
    page.hover(f"{INPUT} >> nth=4")
    assert sentence(page).startswith("school → 학교에 0.83, ⏎ 0.10; coverage 0.84")
    page.mouse.move(1, 1)
    assert highlighted(page) == []


def test_every_cell_of_the_heat_map_describes_its_weight(open_page):
    page = open_page(attention_page(example()))
    box = page.locator("#heat .cells").bounding_box()
    for row, column in product(range(4), range(6)):
        where = box["x"] + (column + 0.5) * box["width"] / 6, box["y"] + (row + 0.5) * box["height"] / 4
        page.mouse.move(*where)
        assert sentence(page).startswith(f"{TARGET[row]} ← {SOURCE[column]} {WEIGHTS[row][column]:.2f}")


def test_click_pins_a_word_until_the_next_click_or_escape(open_page):
    page = open_page(attention_page(example()))
    for release in (lambda: page.click(f"{OUTPUT} >> nth=2"), lambda: page.keyboard.press("Escape")):
        page.click(f"{OUTPUT} >> nth=2")
        page.hover(f"{OUTPUT} >> nth=0")
        page.mouse.move(1, 1)
        assert highlighted(page) == ["go", "가요"]
        assert page.get_by_role("button", name="가요", pressed=True).count() == 1
        release()
        page.mouse.move(1, 1)
        assert highlighted(page) == []


def test_arrow_keys_replay_the_output_word_by_word(open_page):
    page = open_page(attention_page(example()))
    for number, word in enumerate(TARGET):
        page.keyboard.press("ArrowRight")
        assert sentence(page).startswith(f"{word} ← ")
        assert page.locator(".word.later").all_inner_texts() == TARGET[number + 1 :]
        assert page.evaluate("document.activeElement.textContent") == word
    page.keyboard.press("ArrowRight")
    assert sentence(page).startswith(TARGET[-1])
    page.keyboard.press("ArrowLeft")
    assert sentence(page).startswith("가요")
    page.keyboard.press("Home")
    assert sentence(page).startswith("여자들은")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="여자들은", pressed=True).count() == 1
    page.keyboard.press("Escape")
    assert highlighted(page) == []


def test_replay_buttons(open_page):
    page = open_page(attention_page(example()))
    page.click("#next")
    page.click("#next")
    assert sentence(page).startswith("학교에 ← ")
    page.click("#previous")
    assert sentence(page).startswith("여자들은 ← ")
    page.click("#play")
    page.locator("#sentence", has_text="학교에 ←").wait_for()
    page.keyboard.press("Escape")
    assert page.get_attribute("#play", "aria-pressed") == "false"


STOPS = [
    "page-language",
    *("tab-explore", "cross", "encoder", "decoder", "layer", "head", "weights", "norms", "rollout"),
    *("predicting", "reading", "words", "subwords", "column", "row", "previous", "play", "next", "heat", "tile"),
    *("", "scroll", "save-svg", "save-png", "save-pharaoh", "save-json"),  # the summary has no name but its text
]
FOCUSED = """() => {
  const { id, dataset, className } = document.activeElement, box = document.activeElement.getBoundingClientRect();
  return [id || dataset.side || dataset.option || dataset.field || className, box.width > 0];
}"""


def test_tab_key_reaches_every_control_once(open_page):
    page = open_page(attention_page(random_attention(), counterfactuals=[counterfactual()]))
    page.evaluate("find('as-text').open = true")
    walk = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name, is_visible = page.evaluate(FOCUSED)
        assert is_visible
        walk.append(name)
        if name == "save-json":
            break
    assert sorted(walk) == sorted(STOPS)
    assert walk.index("column") < walk.index("row") < walk.index("heat") < walk.index("tile")


def test_every_control_has_a_name_and_a_role(open_page):
    page = open_page(
        attention_page(
            random_attention(kind="decoder"), counterfactuals=[counterfactual()], gold=Alignment.parse("0-0")
        )
    )
    named = "element => element.ariaLabel || element.textContent.trim() || element.labels?.length"
    assert page.locator("button, select").evaluate_all(f"all => all.filter({named}).length === all.length")
    assert page.get_by_role("tab", name="What if").count() == 1
    assert page.get_by_role("button", name="beginning of the sentence").count() > 0
    assert page.get_by_role("img", name=re.compile("Heat map of the self-attention of the decoder")).count() == 1
    assert page.get_attribute("#sentence", "aria-live") == "polite"
    assert page.get_by_role("combobox", name="Layer").count() == 1


def test_options_select_the_view(open_page):
    attention = Attention(random_recording(), SELECTED.view, SELECTED)
    page = open_page(attention_page(attention))
    walk = (
        ("subwords", attention.subwords()),
        ("reading", attention.subwords().reading()),
        ("norms", attention.subwords().reading().norms()),
        ("rollout", attention.subwords().reading().rollout()),
        ("encoder", attention.subwords().reading().rollout().encoder()),
        ("weights", attention.subwords().reading().encoder().mean().plain()),
        ("words", attention.words().reading().encoder().mean()),
        ("decoder", attention.words().reading().encoder().decoder()),
    )
    for option, wanted in walk:
        page.click(f"#controls [data-option={option}]")
        assert page.inner_text("#description") == wanted.description
        assert page.locator("#heat .top span").all_inner_texts() == list(wanted.source)
        assert page.locator("#heat .left span").all_inner_texts() == list(wanted.target)
        assert page.get_attribute(f"[data-option={option}]", "aria-pressed") == "true"
    page.select_option("select[data-field=layer]", "2")
    page.select_option("select[data-field=head]", "1")
    assert page.inner_text("#description") == attention.decoder().reading().head(2, 1).description
    page.click("#selected")
    assert page.inner_text("#description") == attention.description


def test_heads_are_sorted_by_agreement_with_occlusion(open_page):
    recording = one_part(3)
    occlusion = np.random.default_rng(3).normal(size=(len(recording.target.words), len(recording.source.words)))
    page = open_page(attention_page(Attention(recording, SELECTED.view, SELECTED), occlusion=occlusion))
    tiles = page.evaluate("tilesOf(state.view).map(tile => [tile.layer, tile.head, tile.score])")
    tile_views = [View(layer=layer, head=head) for layer, head, _ in tiles]
    assert {(view.layer, view.head) for view in tile_views} == {*product(range(3), (None, 0, 1)), (None, None)}
    reached, reachable = occlusion_agreement(word_maps(recording, tile_views), occlusion)
    scores = [score for _, _, score in tiles]
    np.testing.assert_allclose(scores, reached / reachable, atol=1e-6)
    assert scores == sorted(scores, reverse=True) != sorted(scores)
    badged = page.locator(".tile:has(.badge)")
    assert [badged.get_attribute("data-layer"), badged.get_attribute("data-head")] == ["1", "0"]


def test_a_head_that_attends_only_to_eos_is_last(open_page):
    sharp, at_end = np.eye(4)[:3], [[0.03, 0.0, 0.0, 0.97]] * 3
    attention = Attention.of(["a", "b", "c", EOS_MARK], ["x", "y", "z"], [at_end, sharp, [[0.5, 0.2, 0.2, 0.1]] * 3])
    page = open_page(attention_page(attention))
    names = page.locator(".tile").all_inner_texts()
    assert [re.search("mean|head .", name)[0] for name in names] == ["head 1", "mean", "head 2", "head 0"]


def attribute(index):
    return "null" if index is None else str(index)


def test_click_on_a_head_shows_it(open_page):
    attention = random_attention(seed=4)
    page = open_page(attention_page(attention))
    for layer, head in ((2, 1), (0, 0), (1, None), (None, None)):
        selector = f'.tile[data-layer="{attribute(layer)}"][data-head="{attribute(head)}"]'
        page.click(selector)
        assert page.inner_text("#description") == attention.with_view(layer=layer, head=head).description
        assert page.locator(".tile[aria-pressed=true]").count() == 1


def test_gold_links_are_outlined_and_can_be_hidden(open_page):
    page = open_page(attention_page(example(), gold=Alignment.parse("1-0 3p1 4-1 0-2")))
    assert page.locator("#heat .gold").count() == 4
    assert page.locator("#heat .gold.possible").count() == 1
    assert page.locator("#heat .beneath + .gold").count() == 4  # makes dashes visible on a dark cell
    assert page.locator("#stage .matched").count() == 3  # 0-2 has no attention
    assert page.locator("#stage .missed").count() == 1
    page.click("#gold")
    assert page.locator(".gold, .beneath, .matched, .missed").count() == 0


def test_numbers_equal_python_and_follow_the_word(open_page):
    occlusion = np.random.default_rng(5).normal(size=(3, 5))
    page = open_page(attention_page(example(), occlusion=occlusion))
    names = ("entropy", "sink", "faithfulness")
    shown = {name: page.inner_text(f"#numbers [data-name={name}] b") for name in names}
    wanted = {
        "entropy": example().entropy().mean(),
        "sink": example().sink,
        "faithfulness": faithfulness(example(), occlusion),
    }
    assert {name: float(value) for name, value in shown.items()} == pytest.approx(wanted, abs=0.0051)
    page.hover(f"{OUTPUT} >> nth=1")
    assert page.inner_text("[data-name=entropy] b") == f"{example().entropy()[1]:.2f}"
    page.hover(f"{INPUT} >> nth=0")
    assert page.inner_text("[data-name=coverage] b") == f"{example().coverage()[0]:.2f}"


def test_table_for_screen_readers(open_page):
    page = open_page(attention_page(example()))
    page.click("summary")
    page.locator("#as-text tbody tr").first.wait_for()  # the toggle event comes later
    rows = [row.inner_text().split("\t") for row in page.locator("#as-text tbody tr").all()]
    assert [row[0] for row in rows] == TARGET
    assert rows[1] == ["학교에", "school 0.83", "to 0.10", "–", f"{example().entropy()[1]:.2f}"]


# --- what if ----------------------------------------------------------------------------------------------------


def counterfactual(**changes):
    other = Attention.of(["the", "women", "go", EOS_MARK], ["여자들은", "가요", EOS_MARK], np.eye(3, 4, 1))
    diff = (("same", "여자들은"), ("removed", "학교에"), ("same", "가요"))
    plain = Counterfactual("mask", {"word": "“school”"}, 4, "여자들은 가요", -0.25, diff, other, before=-0.125)
    return plain._replace(**changes)


def test_what_if_answers_without_a_server(open_page):
    same = (("same", "여자들은 학교에 가요"),)
    answers = [
        counterfactual(kind="mask", values={"word": "“the”"}, source_word=0, text="여자들은 학교에 가요", diff=same),
        counterfactual(),
        counterfactual(kind="ablate", values={"layer": 0, "head": 1}, source_word=None, attention=None, score=-np.inf),
    ]
    page = open_page(attention_page(example(), counterfactuals=answers))
    page.get_by_role("tab", name="What if").click()
    assert not page.is_visible("#explore")
    assert "school" in page.inner_text("#answer h2")  # the first that changes anything
    assert page.inner_text("#answer del") == "학교에"
    assert page.locator("#answer .text-line").all_inner_texts() == [
        "before\n여자들은 학교에 가요",
        "after\n여자들은 가요",
    ]
    assert page.locator("#answer-stage .line[aria-label=output] .word").all_inner_texts() == [
        "여자들은",
        "가요",
        EOS_MARK,
    ]
    page.locator("#questions").get_by_role("button", name="the", exact=True).click()
    assert "stays the same" in page.inner_text("#answer h2")
    page.get_by_role("button", name="Without head 1 of layer 0").click()
    assert not page.is_visible("#answer-stage")
    assert "Score" not in page.inner_text("#answer")
    assert page.locator("#questions button:disabled").count() == 3  # words without a counterfactual
    page.get_by_role("tab", name="What if").focus()
    page.keyboard.press("ArrowLeft")
    assert page.is_visible("#explore")


def test_what_if_shows_both_scores(open_page):
    page = open_page(
        attention_page(example(), counterfactuals=[counterfactual(), counterfactual(source_word=0, before=np.nan)])
    )
    page.click("#tab-what-if")
    assert "Score −0.13 → −0.25:" in page.inner_text("#answer")
    page.locator("#questions").get_by_role("button", name="the", exact=True).click()
    assert "Score −0.25:" in page.inner_text("#answer")


def test_empty_attention_is_reported(open_page):
    blind = Attention.of(SOURCE, TARGET, np.zeros((4, 6)))
    answers = [
        counterfactual(attention=blind),
        counterfactual(source_word=0),
        counterfactual(source_word=1, attention=None),
    ]
    page = open_page(attention_page(example(), counterfactuals=answers))
    page.click("#tab-what-if")
    wanted = {"school": (True, False), "the": (False, True), "women": (False, False)}
    for word, (is_empty, is_shown) in wanted.items():
        page.locator("#questions").get_by_role("button", name=word, exact=True).click()
        assert page.is_visible("#no-attention") == is_empty
        assert page.is_visible("#answer-stage") == is_shown


def test_texts_without_spaces_stay_without_spaces(open_page):
    diff = (("same", "我们"), ("removed", "去"), ("added", "来"), ("same", "学校"))
    page = open_page(attention_page(example(), counterfactuals=[counterfactual(text="我们来学校", diff=diff)]))
    page.click("#tab-what-if")
    assert page.locator("#answer .text-line").all_inner_texts() == ["before\n我们去学校", "after\n我们来学校"]


# --- files ------------------------------------------------------------------------------------------------------


def saved(page, kind, folder):
    with page.expect_download() as download:
        page.click(f"#save-{kind}")
    path = folder / f"saved.{kind}"
    download.value.save_as(path)
    return path


def test_shown_map_can_be_saved(open_page, tmp_path):
    attention = Attention(random_recording(), SELECTED.view, SELECTED)
    page = open_page(attention_page(attention, gold=Alignment.parse("0-0 1p1")))
    page.click("[data-option=subwords]")
    page.click("[data-option=norms]")
    wanted = attention.subwords().norms()
    for kind in ("json", "svg"):
        again = Attention.load(saved(page, kind, tmp_path))
        assert (again.description, again.source, again.target) == (wanted.description, wanted.source, wanted.target)
        assert abs(again.weights - wanted.weights).max() < 1e-4
        assert again.selected_map == SELECTED
    shown = json.loads((tmp_path / "saved.json").read_text())
    assert [shown[name] for name in ("source", "target", "shows")] == [
        [*wanted.source],
        [*wanted.target],
        wanted.description,
    ]
    assert abs(np.array(shown["weights"]) - wanted.weights).max() < 1e-4
    texts = [text.text for text in ElementTree.parse(tmp_path / "saved.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {*wanted.source, *wanted.target} <= {*texts}
    assert saved(page, "pharaoh", tmp_path).read_text() == f"{wanted.alignment()}\n"
    page.click("[data-option=encoder]")
    assert page.is_disabled("#save-pharaoh")
    page.click("[data-option=cross]")
    picture = saved(page, "png", tmp_path).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert min(int.from_bytes(picture[start : start + 4]) for start in (16, 20)) > 400


def test_page_can_be_loaded_as_attention(tmp_path):
    attention = Attention(random_recording(), SELECTED.view, SELECTED)
    text = attention.to_html(tmp_path / "page.html", title="mine")
    again = Attention.load(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == text
    assert (again.description, again.source) == (attention.description, attention.source)
    assert "<h1>mine</h1>" in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_page_is_small_and_loads_nothing():
    text = attention_page(Attention.of(["a"], ["b"], [[1.0]]))
    assert len(text.encode()) < 105_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|innerHTML|outerHTML|eval\(", text)


def heat(page):
    return page.evaluate("Array.from(state.map.values)")


@pytest.mark.parametrize("opens_with", ["attention", "occlusion"])
def test_a_switch_shows_what_it_attended_to_or_what_mattered(open_page, opens_with):
    """Occlusion is a map of words: its positive effects as shares of each row, without BOS and EOS."""
    effects = np.array([[0.0, 3.0, -1.0, np.nan, 1.0], [0.0, 0.0, 0.0, 1.0, 4.0], [-1.0, 0.0, 0.0, 0.0, 0.0]])
    page = open_page(attention_page(example(), occlusion=effects, opens_with=opens_with))
    shares = np.zeros((4, 6))
    shares[0, [1, 4]], shares[1, [3, 4]] = (0.75, 0.25), (0.2, 0.8)
    names = {"attention": "What it attended to", "occlusion": "What mattered"}
    for shown in (opens_with, "occlusion", "attention"):
        if shown != opens_with or page.locator("button", has_text=names[shown]).get_attribute("aria-pressed") != "true":
            page.click(f"button:has-text('{names[shown]}')")
        assert heat(page) == pytest.approx((shares if shown == "occlusion" else np.array(WEIGHTS)).ravel(), abs=1e-4)
        assert page.inner_text("#description").startswith("occlusion") == (shown == "occlusion")
        assert page.locator("button", has_text=names[shown]).get_attribute("aria-pressed") == "true"
        assert page.is_disabled("#save-json") == (shown == "occlusion")


@pytest.mark.parametrize("value", [0.9, 0.3])
def test_the_warning_stays_when_another_map_is_shown(open_page, value):
    shown = replace(
        example(), selected_map=SelectedMap(View(), 0.5, "occlusion", 9), reliability=LinkReliability((value,))
    )
    page = open_page(attention_page(shown, occlusion=np.ones((3, 5)), opens_with="occlusion"))
    for _ in range(2):
        assert f"{value:.0%}".replace("%", " %") in page.inner_text("#reliability")
        assert ("Do not rely" in page.inner_text("#reliability")) == (value < MIN_RELIABILITY)
        assert (page.get_attribute("#reliability", "class") == "warning") == (value < MIN_RELIABILITY)
        page.click("button:has-text('What it attended to')")


def test_a_page_of_a_model_without_reliability_says_so(open_page):
    page = open_page(attention_page(example(), occlusion=np.ones((3, 5))))
    assert "not measured" in page.inner_text("#reliability")
    assert page.get_attribute("#reliability", "class") != "warning"


def test_words_without_support_and_omitted_words_are_marked(open_page):
    page = open_page(attention_page(example(), occlusion=np.ones((3, 5)), unsupported=[1], omitted=[0, 3]))
    for _ in range(2):
        assert page.locator(f"{OUTPUT}.unsupported").all_inner_texts() == [TARGET[1]]
        assert page.locator(f"{INPUT}.omitted").all_inner_texts() == [SOURCE[0], SOURCE[3]]
        page.click("button:has-text('What mattered')")
    lines = page.inner_text("#flags").splitlines()
    assert [line.partition(": ")[2] for line in lines] == [TARGET[1], f"{SOURCE[0]} · {SOURCE[3]}"]
    page.click("[data-field=unit] [data-option=subwords]")
    assert page.locator(f"{OUTPUT}.unsupported").all_inner_texts() == [TARGET[1]]
    assert not open_page(attention_page(example())).is_visible("#flags")


def test_an_output_word_tells_the_share_of_the_source(open_page):
    share = np.array([0.25, 0.5, 0.75])
    page = open_page(attention_page(example(), occlusion=np.ones((3, 5)), unsupported=[1], source_share=share))
    titles = [element.get_attribute("title") for element in page.locator(f"{OUTPUT}[title]").all()]
    assert [title.partition(" %")[0][-2:] for title in titles] == ["25", "50", "75"]
    assert titles[1].startswith("Perhaps hallucinated")
    assert page.inner_text("#numbers [data-name=source] b") == "0.50"
    assert not page.locator(f"{INPUT}[title]").count()


def test_without_occlusion_there_is_no_switch(open_page):
    assert not open_page(attention_page(example())).locator("button", has_text="What mattered").count()


def test_occlusion_of_another_sentence_is_rejected():
    with pytest.raises(ValueError, match="occlusion of shape"):
        attention_page(example(), occlusion=np.zeros((2, 2)))


# --- hostile ----------------------------------------------------------------------------------------------------


def attention_of(source, target):
    weights = np.random.default_rng(6).dirichlet(np.ones(len(source)), (2, 2, len(target)))
    return Attention.of(source, target, weights)


MARKUP = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>", "&lt;"]
EVIL = [*MARKUP, "\u202eevil", "\x00"]
HOSTILE = {
    "markup": ([*EVIL, EOS_MARK], ["</metadata>", *EVIL, EOS_MARK]),
    "emoji": (["🐕‍🦺", "👩‍👩‍👧", EOS_MARK], ["🐕", EOS_MARK]),
    "Arabic": (["the", "boy", "reads", EOS_MARK], ["يقرأ", "الولد", "كتابا", EOS_MARK]),
    "a word without end": (["a" * 5_000, EOS_MARK], ["나" * 5_000, EOS_MARK]),
    "empty output": (["a", EOS_MARK], [EOS_MARK]),
    "marks": ([BOS_MARK, EOS_MARK], [BOS_MARK, EOS_MARK]),
    "one word": (["a"], ["b"]),
}


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize(("source", "target"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_only_text(open_page, tmp_path, source, target, width):
    page = open_page(
        attention_page(
            attention_of(source, target),
            title=source[0],
            gold=Alignment.parse("0-0"),
            counterfactuals=[counterfactual(values={"word": source[0]}, text=target[0], diff=(("added", target[0]),))],
        ),
        viewport={"width": width, "height": 800},
    )
    assert page.locator(INPUT).evaluate_all("all => all.map(element => element.textContent)") == source
    assert page.locator(OUTPUT).evaluate_all("all => all.map(element => element.textContent)") == target
    assert page.locator("img, h1 script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("ArrowRight")
    page.click("[data-option=subwords]")
    assert Attention.load(saved(page, "svg", tmp_path)).target == tuple(target)
    ElementTree.parse(tmp_path / "saved.svg")
    saved(page, "png", tmp_path)
    page.click("#tab-what-if")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_rows_without_eos_cannot_be_read(open_page):
    page = open_page(attention_page(Attention.of(["a", "b"], ["c"], [[0.5, 0.5]])))
    assert page.is_disabled("[data-option=reading]")


def test_empty_output(open_page):
    page = open_page(attention_page(Attention.of(["a", "b"], [], np.zeros((0, 2)))))
    assert "empty" in sentence(page)
    page.keyboard.press("ArrowRight")
    page.click("#play")
    page.click("[data-option=subwords]")


def long_attention(length):
    rng = np.random.default_rng(7)
    texts = [[f"{name}{number}" for number in range(length)] for name in ("word", "단어")]
    sides = [TokenizedText.of(" ".join(words), [[f"▁{word}" for word in words]]) for words in texts]
    stacks = [random_stack(rng, length + 1, length + 1, 2, 2, causal) for causal in (False, False, True)]
    return Attention(Recording(*sides, (PartAttention(*stacks),)), View(layer=1, head=0))


def test_arabic_runs_right_to_left(open_page):
    page = open_page(attention_page(attention_of(*HOSTILE["Arabic"])))
    lefts = [element.bounding_box()["x"] for element in page.locator(OUTPUT).all()]
    assert lefts == sorted(lefts, reverse=True)
    page.locator(OUTPUT).first.focus()
    page.keyboard.press("ArrowLeft")
    assert sentence(page).startswith("الولد")


@pytest.mark.parametrize("width", [360, 1200])
def test_long_sentence_scrolls_and_keeps_its_labels(open_page, width):
    page = open_page(attention_page(long_attention(60)), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("find('heat').scrollTo(700, 500)")
    heat, row = (page.locator(f"#heat{part}").bounding_box() for part in ("", " .left span >> nth=30"))
    assert heat["x"] <= row["x"] < heat["x"] + 150
    page.keyboard.press("End")  # nothing has the focus yet
    page.locator(OUTPUT).first.focus()
    page.keyboard.press("End")
    assert sentence(page).startswith(EOS_MARK)


def test_ribbons_stay_visible_next_to_taller_maps(open_page):
    page = open_page(attention_page(long_attention(20)), viewport={"width": 1000, "height": 800})
    assert page.locator("#stage.vertical").count() == 1
    page.evaluate("scrollTo(0, 450)")
    assert 0 <= page.locator("#stage").bounding_box()["y"] < 100


def test_three_hundred_words(open_page):
    text = attention_page(long_attention(300))
    assert len(text) < 9_000_000  # 2 × 2 maps of three kinds, two bytes a weight, in base64; and the shown one to read
    page = open_page(text)
    assert page.locator(OUTPUT).count() == 301
    page.keyboard.press("ArrowRight")
    assert sentence(page).startswith("단어0 ← ")
    page.click("[data-option=decoder]")
    assert page.inner_text("#description").startswith("self-attention of the decoder")


def test_dark_mode_and_reduced_motion(open_page):
    page = open_page(attention_page(example()), color_scheme="dark", reduced_motion="reduce")
    colours = page.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
    dark, light = (sum(map(int, re.findall(r"\d+", colour))) for colour in reversed(colours))
    assert dark < 150 < 600 < light
    assert page.evaluate("getComputedStyle(document.querySelector('.ribbon')).transitionDuration") == "0s"
    painted = page.evaluate("[...heatmap.canvas.getContext('2d').getImageData(1, 0, 1, 1).data].slice(0, 3)")
    assert np.allclose(painted, page.evaluate("currentHue()"), atol=2)
