"""The page as a person sees it: in a real browser, offline. Its arithmetic is that of `Attention`, for every view."""

import json
import re
from dataclasses import asdict
from itertools import product
from xml.etree import ElementTree

import numpy
import pytest

from maps import random_attention, random_recording, random_stack
from softgaze.gaze import Alignment, Attention, Choice, Recording, View
from softgaze.gaze.answers import Answer
from softgaze.gaze.choice import maps, pointed
from softgaze.gaze.honesty import honesty
from softgaze.gaze.page import page
from softgaze.gaze.plain import plain
from softgaze.gaze.recording import Part
from softgaze.gaze.words import BEGIN_MARK, END_MARK, Side

CHOICE = Choice(View(layer=1, head=0), 0.125, "influence", 24)  # a score that is rounded to even: 0.12


def views(recording):
    """Every map there is."""
    for kind in recording.kinds:
        layers, heads = recording.size(kind)
        fields = (
            [None, *range(layers)],
            [None, *range(heads)],
            ("predicting", "reading"),
            ("weights", "norms", "rollout"),
        )
        for layer, head, rows, measure, unit in product(*fields, ("words", "subwords")):
            yield View(kind, layer, head, rows, measure, unit)


def one_part(seed):
    pieces = [(["▁a", "▁do", "g", ",", "▁sleeps", "."], ["▁개", "가", "▁자", "요", ".", "▁–"])]
    return random_recording(pieces, "a dog, sleeps.", "개가 자요. –", seed)


READ = """views => views.map(view => {
  const map = mapOf(recording, view), weights = wordWeights(recording, view);
  return {
    source: map.columns.map(each => each.text), target: map.rows.map(each => each.text),
    weights: Array.from(map.values), shows: showsOf(recording, view, facts.names, facts.choice),
    entropy: entropies(map), coverage: coverages(map), sink: sinkOf(map), pharaoh: linksOf(recording, view),
    honesty: view.kind === "cross" ? honestyOf(weights, influence) : null,
  };
})"""


@pytest.mark.parametrize("recording", [random_recording(seed=1), one_part(2)], ids=["two parts", "one part"])
def test_every_view_is_computed_as_python_does(open_page, recording):
    shape = len(recording.target.words), len(recording.source.words)
    influence = numpy.random.default_rng(0).normal(size=shape)
    influence[0, 1] = numpy.nan
    every = list(views(recording))
    opened = open_page(page(Attention(recording, View(), CHOICE), influence=influence))
    for view, found in zip(every, opened.evaluate(READ, [asdict(view) for view in every]), strict=True):
        wanted = Attention(recording, view, CHOICE)
        assert (tuple(found["source"]), tuple(found["target"]), found["shows"]) == (
            wanted.source,
            wanted.target,
            wanted.shows,
        )
        assert abs(numpy.reshape(found["weights"], wanted.weights.shape) - wanted.weights).max() < 1e-4
        numpy.testing.assert_allclose(found["entropy"], wanted.entropy(), atol=1e-3)
        numpy.testing.assert_allclose(found["coverage"], wanted.coverage(), atol=1e-3)
        assert found["sink"] == pytest.approx(wanted.sink, abs=1e-4)
        if view.kind == "cross":
            assert {tuple(link) for link in found["pharaoh"]} == wanted.alignment().links
            assert found["honesty"] == pytest.approx(honesty(wanted, influence), abs=1e-6)


# --- what a person sees and does --------------------------------------------------------------------------------

SOURCE = ["the", "women", "go", "to", "school", END_MARK]
TARGET = ["여자들은", "학교에", "가요", END_MARK]
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


def said(opened):
    return opened.inner_text("#sentence")


def lit(opened):
    """The words that are not faded."""
    return opened.locator("#stage.lit .word.on").all_inner_texts()


def test_opens_on_ribbons_heat_map_and_a_plain_sentence(open_page):
    opened = open_page(page(example()))
    assert said(opened) == "여자들은 ← women 0.90, 학교에 ← school 0.83, 가요 ← go 0.96; 1 source word unused: the"
    assert opened.locator(INPUT).all_inner_texts() == SOURCE
    assert opened.locator(OUTPUT).all_inner_texts() == TARGET
    assert opened.locator("#heat .number").all_text_contents() == ["0.90", "0.10", "0.83", "0.96", "0.10", "0.90"]
    assert opened.inner_text("#shows") == example().shows
    assert opened.title() == "the women go to school → 여자들은 학교에 가요"


def test_the_plain_sentence_is_python_s_for_every_view(open_page):
    recording = one_part(8)
    every = list(views(recording))
    opened = open_page(page(Attention(recording, View())))
    told = "views => views.map(view => make('p', {}, ...sentence(mapOf(recording, view), null)).textContent)"
    assert opened.evaluate(told, [asdict(view) for view in every]) == [
        plain(Attention(recording, view)) for view in every
    ]


def test_ribbons_are_as_wide_as_their_weights(open_page):
    opened = open_page(page(example()))
    found = opened.evaluate("ribbons.paths.map(each => [each.row, each.column, each.width])")
    unit = {width / WEIGHTS[row][column] for row, column, width in found}
    assert max(unit) - min(unit) < 0.01
    assert {(row, column) for row, column, _ in found} >= {(0, 1), (1, 4), (1, 3), (2, 2), (3, 5)}


def test_hover_fades_the_rest(open_page):
    opened = open_page(page(example()))
    opened.hover(f"{OUTPUT} >> nth=1")
    assert said(opened).startswith("학교에 ← school 0.83, to 0.10; 1 source word unused")
    assert lit(opened) == ["to", "school", "학교에"]
    opened.hover(f"{INPUT} >> nth=4")
    assert said(opened).startswith("school → 학교에 0.83, ⏎ 0.10; looked at by all words together: 0.84")
    opened.mouse.move(1, 1)
    assert lit(opened) == []


def test_every_cell_of_the_heat_map_says_its_weight(open_page):
    opened = open_page(page(example()))
    box = opened.locator("#heat .cells").bounding_box()
    for row, column in product(range(4), range(6)):
        where = box["x"] + (column + 0.5) * box["width"] / 6, box["y"] + (row + 0.5) * box["height"] / 4
        opened.mouse.move(*where)
        assert said(opened).startswith(f"{TARGET[row]} ← {SOURCE[column]} {WEIGHTS[row][column]:.2f}")


def test_a_click_pins_until_it_is_clicked_again_or_escape(open_page):
    opened = open_page(page(example()))
    for release in (lambda: opened.click(f"{OUTPUT} >> nth=2"), lambda: opened.keyboard.press("Escape")):
        opened.click(f"{OUTPUT} >> nth=2")
        opened.hover(f"{OUTPUT} >> nth=0")
        opened.mouse.move(1, 1)
        assert lit(opened) == ["go", "가요"]
        assert opened.get_by_role("button", name="가요", pressed=True).count() == 1
        release()
        opened.mouse.move(1, 1)
        assert lit(opened) == []


def test_arrow_keys_replay_the_output_word_by_word(open_page):
    opened = open_page(page(example()))
    for number, word in enumerate(TARGET):
        opened.keyboard.press("ArrowRight")
        assert said(opened).startswith(f"{word} ← ")
        assert opened.locator(".word.later").all_inner_texts() == TARGET[number + 1 :]
        assert opened.evaluate("document.activeElement.textContent") == word
    opened.keyboard.press("ArrowRight")
    assert said(opened).startswith(TARGET[-1])
    opened.keyboard.press("ArrowLeft")
    assert said(opened).startswith("가요")
    opened.keyboard.press("Home")
    assert said(opened).startswith("여자들은")
    opened.keyboard.press("Enter")
    assert opened.get_by_role("button", name="여자들은", pressed=True).count() == 1
    opened.keyboard.press("Escape")
    assert lit(opened) == []


def test_the_replay_buttons_do_the_same(open_page):
    opened = open_page(page(example()))
    opened.click("#forth")
    opened.click("#forth")
    assert said(opened).startswith("학교에 ← ")
    opened.click("#back")
    assert said(opened).startswith("여자들은 ← ")
    opened.click("#play")
    opened.locator("#sentence", has_text="학교에 ←").wait_for()
    opened.keyboard.press("Escape")
    assert opened.get_attribute("#play", "aria-pressed") == "false"


STOPS = [
    *(
        "tab-look",
        "cross",
        "encoder",
        "decoder",
        "layer",
        "head",
        "weights",
        "norms",
        "rollout",
        "predicting",
        "reading",
    ),
    *("words", "subwords", "column", "row", "back", "play", "forth", "heat", "tile"),
    *("", "scroll", "save-svg", "save-png", "save-pharaoh", "save-json"),  # the summary has no name but its text
]
FOCUSED = """() => { const own = document.activeElement, box = own.getBoundingClientRect();
  return [own.id || own.dataset.side || own.dataset.option || own.dataset.field || own.className, box.width > 0]; }"""


def test_the_tab_key_reaches_everything_once(open_page):
    opened = open_page(page(random_attention(), answers=[answer()]))
    opened.evaluate("find('as-text').open = true")
    walk = []
    for _ in range(40):
        opened.keyboard.press("Tab")
        name, is_visible = opened.evaluate(FOCUSED)
        assert is_visible
        walk.append(name)
        if name == "save-json":
            break
    assert sorted(walk) == sorted(STOPS)
    assert walk.index("column") < walk.index("row") < walk.index("heat") < walk.index("tile")


def test_everything_that_can_be_pressed_has_a_name_and_a_role(open_page):
    opened = open_page(page(random_attention(kind="decoder"), answers=[answer()], gold=Alignment.parse("0-0")))
    named = "each => each.ariaLabel || each.textContent.trim() || each.labels?.length"
    assert opened.locator("button, select").evaluate_all(f"all => all.filter({named}).length === all.length")
    assert opened.get_by_role("tab", name="What if").count() == 1
    assert opened.get_by_role("button", name="begin of the sentence").count() > 0
    assert opened.get_by_role("img", name=re.compile("Heat map of the self-attention of the decoder")).count() == 1
    assert opened.get_attribute("#sentence", "aria-live") == "polite"
    assert opened.get_by_role("combobox", name="Layer").count() == 1


def test_toggles_show_the_map_they_say(open_page):
    attention = Attention(random_recording(), CHOICE.view, CHOICE)
    opened = open_page(page(attention))
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
        opened.click(f"#controls [data-option={option}]")
        assert opened.inner_text("#shows") == wanted.shows
        assert opened.locator("#heat .top span").all_inner_texts() == list(wanted.source)
        assert opened.locator("#heat .left span").all_inner_texts() == list(wanted.target)
        assert opened.get_attribute(f"[data-option={option}]", "aria-pressed") == "true"
    opened.select_option("select[data-field=layer]", "2")
    opened.select_option("select[data-field=head]", "1")
    assert opened.inner_text("#shows") == attention.decoder().reading().head(2, 1).shows
    opened.click("#chosen")
    assert opened.inner_text("#shows") == attention.shows


def test_rows_without_an_end_have_one_meaning(open_page):
    opened = open_page(page(Attention.of(["a", "b"], ["c"], [[0.5, 0.5]])))
    assert opened.is_disabled("[data-option=reading]")


def test_heads_are_sorted_by_what_mattered(open_page):
    recording = one_part(3)
    influence = numpy.random.default_rng(3).normal(size=(len(recording.target.words), len(recording.source.words)))
    opened = open_page(page(Attention(recording, CHOICE.view, CHOICE), influence=influence))
    tiles = opened.evaluate("tilesOf(state.view).map(tile => [tile.layer, tile.head, tile.score])")
    asked = [View(layer=layer, head=head) for layer, head, _ in tiles]
    assert {(view.layer, view.head) for view in asked} == {*product(range(3), (None, 0, 1)), (None, None)}
    reached, reachable = pointed(maps(recording, asked), influence)
    scores = [score for _, _, score in tiles]
    numpy.testing.assert_allclose(scores, reached / reachable, atol=1e-6)
    assert scores == sorted(scores, reverse=True) != sorted(scores)
    badged = opened.locator(".tile:has(.badge)")
    assert [badged.get_attribute("data-layer"), badged.get_attribute("data-head")] == ["1", "0"]


def test_a_head_that_looks_only_at_the_end_is_last(open_page):
    sharp, at_end = numpy.eye(4)[:3], [[0.03, 0.0, 0.0, 0.97]] * 3
    attention = Attention.of(["a", "b", "c", END_MARK], ["x", "y", "z"], [at_end, sharp, [[0.5, 0.2, 0.2, 0.1]] * 3])
    opened = open_page(page(attention))
    names = opened.locator(".tile").all_inner_texts()
    assert [re.search("mean|head .", name)[0] for name in names] == ["head 1", "mean", "head 2", "head 0"]


def written(number):
    return "null" if number is None else str(number)


def test_a_click_on_a_head_shows_it_large(open_page):
    attention = random_attention(seed=4)
    opened = open_page(page(attention))
    for layer, head in ((2, 1), (0, 0), (1, None), (None, None)):
        place = f'[data-layer="{written(layer)}"][data-head="{written(head)}"]'
        opened.click(f".tile{place}")
        assert opened.inner_text("#shows") == attention.seen(layer=layer, head=head).shows
        assert opened.locator(".tile[aria-pressed=true]").count() == 1


def test_gold_outlines_right_links_until_it_is_switched_off(open_page):
    opened = open_page(page(example(), gold=Alignment.parse("1-0 3p1 4-1 0-2")))
    assert opened.locator("#heat .gold").count() == 4
    assert opened.locator("#heat .gold.possible").count() == 1
    assert opened.locator("#heat .beneath + .gold").count() == 4  # paper, or dashes are lost on a dark cell
    assert opened.locator("#stage .right").count() == 3  # 0-2 was never looked at
    assert opened.locator("#stage .missed").count() == 1
    opened.click("#gold")
    assert opened.locator(".gold, .beneath, .right, .missed").count() == 0


def test_numbers_are_python_s_and_change_with_the_word(open_page):
    influence = numpy.random.default_rng(5).normal(size=(3, 5))
    opened = open_page(page(example(), influence=influence))
    shown = {name: opened.inner_text(f"#numbers [data-name={name}] b") for name in ("entropy", "sink", "honesty")}
    wanted = {"entropy": example().entropy().mean(), "sink": example().sink, "honesty": honesty(example(), influence)}
    assert {name: float(value) for name, value in shown.items()} == pytest.approx(wanted, abs=0.0051)
    opened.hover(f"{OUTPUT} >> nth=1")
    assert opened.inner_text("[data-name=entropy] b") == f"{example().entropy()[1]:.2f}"
    opened.hover(f"{INPUT} >> nth=0")
    assert opened.inner_text("[data-name=coverage] b") == f"{example().coverage()[0]:.2f}"


def test_the_same_is_told_as_a_table(open_page):
    opened = open_page(page(example()))
    opened.click("summary")
    opened.locator("#as-text tbody tr").first.wait_for()  # the browser tells of an opened element a little later
    rows = [row.inner_text().split("\t") for row in opened.locator("#as-text tbody tr").all()]
    assert [row[0] for row in rows] == TARGET
    assert rows[1] == ["학교에", "school 0.83", "to 0.10", "–", f"{example().entropy()[1]:.2f}"]


# --- what if ----------------------------------------------------------------------------------------------------


def answer(**changes):
    other = Attention.of(["the", "women", "go", END_MARK], ["여자들은", "가요", END_MARK], numpy.eye(3, 4, 1))
    diff = (("same", "여자들은"), ("removed", "학교에"), ("same", "가요"))
    plain = Answer("mask", "without “school”", 4, "여자들은 가요", -0.25, diff, other, before=-0.125)
    return plain._replace(**changes)


def test_a_page_without_answers_has_no_what_if(open_page):
    opened = open_page(page(example()))
    assert not opened.is_visible("#tabs")


def test_what_if_answers_without_a_server(open_page):
    same = (("same", "여자들은 학교에 가요"),)
    answers = [
        answer(kind="mask", question="without “the”", source_word=0, text="여자들은 학교에 가요", diff=same),
        answer(),
        answer(kind="ablate", question="without head 1 of layer 0", source_word=None, attention=None, score=-numpy.inf),
    ]
    opened = open_page(page(example(), answers=answers))
    opened.get_by_role("tab", name="What if").click()
    assert not opened.is_visible("#look")
    assert opened.inner_text("#answer h2") == "Without “school”, it would write"  # the first that changes anything
    assert opened.inner_text("#answer del") == "학교에"
    assert opened.locator("#answer .said").all_inner_texts() == ["before\n여자들은 학교에 가요", "now\n여자들은 가요"]
    assert opened.locator("#answer-stage .line[aria-label=output] .word").all_inner_texts() == [
        "여자들은",
        "가요",
        END_MARK,
    ]
    opened.locator("#questions").get_by_role("button", name="the", exact=True).click()
    assert "it would write the same" in opened.inner_text("#answer h2")
    opened.get_by_role("button", name="without head 1 of layer 0").click()
    assert not opened.is_visible("#answer-stage")
    assert "Score" not in opened.inner_text("#answer")
    assert opened.locator("#questions button:disabled").count() == 3  # words nobody asked about
    opened.get_by_role("tab", name="What if").focus()
    opened.keyboard.press("ArrowLeft")
    assert opened.is_visible("#look")


def test_what_if_shows_both_scores(open_page):
    opened = open_page(page(example(), answers=[answer(), answer(source_word=0, before=numpy.nan)]))
    opened.click("#tab-what-if")
    assert "Score −0.13 → −0.25:" in opened.inner_text("#answer")
    opened.locator("#questions").get_by_role("button", name="the", exact=True).click()
    assert "Score −0.25:" in opened.inner_text("#answer")


def test_a_head_that_looks_nowhere_says_so(open_page):
    blind = Attention.of(SOURCE, TARGET, numpy.zeros((4, 6)))
    answers = [answer(attention=blind), answer(source_word=0), answer(source_word=1, attention=None)]
    opened = open_page(page(example(), answers=answers))
    opened.click("#tab-what-if")
    wanted = {"school": (True, False), "the": (False, True), "women": (False, False)}
    for word, (is_nowhere, is_shown) in wanted.items():
        opened.locator("#questions").get_by_role("button", name=word, exact=True).click()
        assert opened.is_visible("text=This head now looks nowhere") == is_nowhere
        assert opened.is_visible("#answer-stage") == is_shown


def test_texts_without_spaces_stay_without_spaces(open_page):
    diff = (("same", "我们"), ("removed", "去"), ("added", "来"), ("same", "学校"))
    opened = open_page(page(example(), answers=[answer(text="我们来学校", diff=diff)]))
    opened.click("#tab-what-if")
    assert opened.locator("#answer .said").all_inner_texts() == ["before\n我们去学校", "now\n我们来学校"]


# --- files ------------------------------------------------------------------------------------------------------


def saved(opened, kind, folder):
    with opened.expect_download() as download:
        opened.click(f"#save-{kind}")
    path = folder / f"saved.{kind}"
    download.value.save_as(path)
    return path


def test_what_is_shown_can_be_saved(open_page, tmp_path):
    attention = Attention(random_recording(), CHOICE.view, CHOICE)
    opened = open_page(page(attention, gold=Alignment.parse("0-0 1p1")))
    opened.click("[data-option=subwords]")
    opened.click("[data-option=norms]")
    wanted = attention.subwords().norms()
    for kind in ("json", "svg"):
        again = Attention.load(saved(opened, kind, tmp_path))
        assert (again.shows, again.source, again.target) == (wanted.shows, wanted.source, wanted.target)
        assert abs(again.weights - wanted.weights).max() < 1e-4
        assert again.choice == CHOICE
    shown = json.loads((tmp_path / "saved.json").read_text())
    assert [shown[name] for name in ("source", "target", "shows")] == [[*wanted.source], [*wanted.target], wanted.shows]
    assert abs(numpy.array(shown["weights"]) - wanted.weights).max() < 1e-4
    texts = [each.text for each in ElementTree.parse(tmp_path / "saved.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {*wanted.source, *wanted.target} <= {*texts}
    assert saved(opened, "pharaoh", tmp_path).read_text() == f"{wanted.alignment()}\n"
    opened.click("[data-option=encoder]")
    assert opened.is_disabled("#save-pharaoh")
    opened.click("[data-option=cross]")
    picture = saved(opened, "png", tmp_path).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert min(int.from_bytes(picture[place : place + 4]) for place in (16, 20)) > 400


def test_the_page_is_an_attention_to_load_again(tmp_path):
    attention = Attention(random_recording(), CHOICE.view, CHOICE)
    text = attention.to_html(tmp_path / "look.html", title="mine")
    again = Attention.load(tmp_path / "look.html")
    assert (tmp_path / "look.html").read_text() == text
    assert (again.shows, again.source) == (attention.shows, attention.source)
    assert "<h1>mine</h1>" in text
    assert [each.name for each in tmp_path.iterdir()] == ["look.html"]


def test_the_shell_is_small_and_the_recording_packed():
    text = page(Attention.of(["a"], ["b"], [[1.0]]))
    assert len(text.encode()) < 100_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(|innerHTML|outerHTML|eval\(", text)


def test_influence_of_another_sentence_is_refused():
    with pytest.raises(ValueError, match="another sentence"):
        page(example(), influence=numpy.zeros((2, 2)))


# --- hostile ----------------------------------------------------------------------------------------------------


def attention_of(source, target):
    weights = numpy.random.default_rng(6).dirichlet(numpy.ones(len(source)), (2, 2, len(target)))
    return Attention.of(source, target, weights)


EVIL = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "&lt;",
    "\u202eevil",
    "\x00",
]
HOSTILE = {
    "markup": ([*EVIL, END_MARK], ["</metadata>", *EVIL, END_MARK]),
    "emoji": (["🐕‍🦺", "👩‍👩‍👧", END_MARK], ["🐕", END_MARK]),
    "Arabic": (["the", "boy", "reads", END_MARK], ["يقرأ", "الولد", "كتابا", END_MARK]),
    "a word without end": (["a" * 5_000, END_MARK], ["나" * 5_000, END_MARK]),
    "empty output": (["a", END_MARK], [END_MARK]),
    "marks": ([BEGIN_MARK, END_MARK], [BEGIN_MARK, END_MARK]),
    "one word": (["a"], ["b"]),
}


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize(("source", "target"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_only_text(open_page, tmp_path, source, target, width):
    opened = open_page(
        page(
            attention_of(source, target),
            title=source[0],
            gold=Alignment.parse("0-0"),
            answers=[answer(question=source[0], text=target[0], diff=(("added", target[0]),))],
        ),
        viewport={"width": width, "height": 800},
    )
    assert opened.locator(INPUT).evaluate_all("all => all.map(each => each.textContent)") == source
    assert opened.locator(OUTPUT).evaluate_all("all => all.map(each => each.textContent)") == target
    assert opened.locator("img, h1 script").count() == 0
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    opened.keyboard.press("ArrowRight")
    opened.click("[data-option=subwords]")
    assert Attention.load(saved(opened, "svg", tmp_path)).target == tuple(target)
    ElementTree.parse(tmp_path / "saved.svg")
    saved(opened, "png", tmp_path)
    opened.click("#tab-what-if")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


def test_an_output_of_nothing_at_all(open_page):
    opened = open_page(page(Attention.of(["a", "b"], [], numpy.zeros((0, 2)))))
    assert said(opened) == "The output is empty: no word looked at anything."
    opened.keyboard.press("ArrowRight")
    opened.click("#play")
    opened.click("[data-option=subwords]")


def long_attention(words):
    dice = numpy.random.default_rng(7)
    texts = [[f"{name}{number}" for number in range(words)] for name in ("word", "단어")]
    sides = [Side.of(" ".join(own), [[f"▁{each}" for each in own]]) for own in texts]
    stacks = [random_stack(dice, words + 1, words + 1, 2, 2, causal) for causal in (False, False, True)]
    return Attention(Recording(*sides, (Part(*stacks),)), View(layer=1, head=0))


def test_arabic_is_written_from_the_right(open_page):
    opened = open_page(page(attention_of(*HOSTILE["Arabic"])))
    places = [each.bounding_box()["x"] for each in opened.locator(OUTPUT).all()]
    assert places == sorted(places, reverse=True)
    opened.locator(OUTPUT).first.focus()
    opened.keyboard.press("ArrowLeft")
    assert said(opened).startswith("الولد")


@pytest.mark.parametrize("width", [360, 1200])
def test_a_long_sentence_scrolls_and_keeps_its_labels(open_page, width):
    opened = open_page(page(long_attention(60)), viewport={"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    opened.evaluate("find('heat').scrollTo(700, 500)")
    heat, row = (opened.locator(f"#heat{part}").bounding_box() for part in ("", " .left span >> nth=30"))
    assert heat["x"] <= row["x"] < heat["x"] + 150
    opened.keyboard.press("End")  # nothing has the focus yet
    opened.locator(OUTPUT).first.focus()
    opened.keyboard.press("End")
    assert said(opened).startswith(END_MARK)


def test_ribbons_stay_in_sight_beside_taller_maps(open_page):
    opened = open_page(page(long_attention(20)), viewport={"width": 1000, "height": 800})
    assert opened.locator("#stage.down").count() == 1
    opened.evaluate("scrollTo(0, 450)")
    assert 0 <= opened.locator("#stage").bounding_box()["y"] < 100


def test_three_hundred_words(open_page):
    text = page(long_attention(300))
    assert len(text) < 9_000_000  # 2 × 2 maps of three kinds, two bytes a weight, in base64; and the shown one to read
    opened = open_page(text)
    assert opened.locator(OUTPUT).count() == 301
    opened.keyboard.press("ArrowRight")
    assert said(opened).startswith("단어0 ← ")
    opened.click("[data-option=decoder]")
    assert opened.inner_text("#shows").startswith("self-attention of the decoder")


def test_dark_mode_and_still_pictures(open_page):
    opened = open_page(page(example()), color_scheme="dark", reduced_motion="reduce")
    colours = opened.evaluate("['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])")
    dark, light = (sum(map(int, re.findall(r"\d+", each))) for each in reversed(colours))
    assert dark < 150 < 600 < light
    assert opened.evaluate("getComputedStyle(document.querySelector('.ribbon')).transitionDuration") == "0s"
    painted = opened.evaluate("[...heat.canvas.getContext('2d').getImageData(1, 0, 1, 1).data].slice(0, 3)")
    assert numpy.allclose(painted, opened.evaluate("currentHue()"), atol=2)
