"""The page as a person uses it: a real server, a real browser, a mouse, a keyboard and a phone.

What is shown is compared with what the models say here, or with what the API says to the same question.
"""

import io
import random
import re
from importlib.resources import files

import pytest
from PIL import Image
from playwright.sync_api import expect

from bundles import make_bundle
from pictures import picture_bundle
from serving import serving
from softgaze.data.tokens import normalise
from softgaze.gaze.colours import contrast
from softgaze.translator import load, sentences

TEXT = "The small dog sees a tree."
TWO = "The old man sleeps.\n\nA red cat sees the small tree! The dog runs."
HOSTILE = '</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202eevil שלום the dog & "x" \u2067'
RECURRENT = {"width": 16, "layers": 1}
HTML = (files("softgaze.serve") / "static" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """There, there with another model, there without attention, and back."""
    folder = tmp_path_factory.mktemp("desk")
    changes = {
        "tiny": {},
        "rival": {"arch": "rnn-luong", "options": RECURRENT},
        "plain": {"arch": "rnn", "options": RECURRENT},
        "back": {"source_language": "ko", "target_language": "en"},
    }
    return {name: make_bundle(folder / name, **own) for name, own in changes.items()}


@pytest.fixture(scope="module")
def desk(models):
    with serving(*models.values()) as running:
        yield running


@pytest.fixture(scope="module")
def tiny(models):
    return load(models["tiny"])


@pytest.fixture
def enter(desk, visit):
    """The page, ready, in English and in a window that is wide enough unless told otherwise."""

    def entered(**options):
        page = visit(f"{desk.url}/", **{"locale": "en-US", "viewport": {"width": 1200, "height": 900}, **options})
        page.wait_for_selector("html[data-ready]")
        return page

    return entered


expect.set_options(timeout=60_000)  # of a busy machine; nothing here is about time


def write(page, text):
    """Put a text into the left pane, and wait for all of its translation."""
    page.fill("#text", text)
    settled(page)


def settled(page):
    expect(page.locator("#output")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#output")).to_have_attribute("aria-busy", "false")


def shown(page):
    return page.locator("#output").evaluate("each => each.textContent")


def words(page, side, root="#first"):
    return page.locator(f"{root} .word[data-side={side}]")


def translated(translator, text):
    """Sentence by sentence, lines kept."""
    lines = [
        " ".join(each.text for each in translator.translate(sentences(normalise(line)))) for line in text.split("\n")
    ]
    return "\n".join(lines)


# --- what is served -----------------------------------------------------------------------------------------------


def test_nothing_in_the_page_is_inline_or_from_elsewhere(desk):
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", HTML)
    assert all(
        re.search(r' src="static/\w+\.js"></script>', f"{each}</script>") for each in HTML.split("</script>")[:-1]
    )
    for name in ["", *re.findall(r'(?:src|href)="(static/[^"]+)"', HTML)]:
        found = desk.get(f"/{name}")
        assert (found.status, found.headers["x-content-type-options"]) == (200, "nosniff")
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_both_languages_say_everything(enter):
    both = enter().evaluate("async () => (await import('/static/words.js')).TEXTS")
    places = {
        language: {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in texts.items()}
        for language, texts in both.items()
    }
    assert places["en"] == places["ko"]
    assert set(re.findall(r'data-say(?:-\w+)?="([^"]+)"', HTML)) <= set(places["en"])


# --- typing -------------------------------------------------------------------------------------------------------


def test_what_is_typed_is_translated(enter, tiny):
    page = enter()
    page.locator("#text").press_sequentially(TEXT)
    expect(page.locator("#output")).to_have_text(tiny.translate(TEXT, beam=5).text)
    expect(page.locator("#source option:checked")).to_have_text("English (detected)")
    expect(page.locator("#count")).to_have_text(f"{len(TEXT)} / 10,000")
    assert page.locator("#output").get_attribute("lang") == "ko"


def test_lines_and_sentences_stay_where_they_are(enter, tiny):
    page = enter()
    write(page, TWO)
    assert shown(page) == translated(tiny, TWO)
    expect(page.locator("#step-count")).to_have_text("Sentence 3 of 3")
    page.click("#step-back")
    expect(words(page, "column").first).to_have_text("A")
    page.locator("#output .part").first.click()
    expect(words(page, "column").nth(1)).to_have_text("old")


def test_only_sentences_that_changed_are_asked_for(enter):
    page, asked = enter(), []
    page.on("request", lambda each: asked.append(each.post_data_json) if each.url.endswith("/v1/translate") else None)
    write(page, TWO)
    assert [each["q"] for each in asked] == [sentences(TWO)]
    write(page, f"{TWO} A cat runs.")
    assert [each["q"] for each in asked[1:]] == ["A cat runs.", ["A cat runs."]]  # the draft, then all of it


@pytest.mark.parametrize("path", ["detect", "v1/translate"])
def test_a_late_answer_replaces_nothing(enter, tiny, path):
    page, late = enter(), []
    page.route(f"**/{path}", lambda each: late.append(each) if "red" in each.request.post_data else each.continue_())
    with page.expect_request(f"**/{path}"):
        page.fill("#text", "A red tree.")
    with page.expect_event("requestfailed", lambda each: "red" in each.post_data):  # it is given up
        write(page, TEXT)
    for route in late:
        route.continue_()
    assert shown(page) == tiny.translate(TEXT, beam=5).text


def test_a_single_sentence_is_shown_while_it_is_written(enter, tiny):
    page = enter()
    page.route("**/v1/translate", lambda each: each.continue_() if each.request.post_data_json.get("stream") else None)
    page.fill("#text", TEXT)
    expect(page.locator("#output .draft")).to_have_text(tiny.translate(TEXT, beam=1).text)
    expect(page.locator("#output")).to_have_attribute("aria-busy", "true")


CUT = """async texts => {
  const { sentencesOf } = await import("/static/sentences.js");
  return texts.map(text => sentencesOf(text).map(each => each.text));
}"""


def test_sentences_are_cut_as_the_translator_cuts(enter):
    dice = random.Random(3)
    pieces = [
        "Mr",
        "U.S",
        "a",
        "B",
        "é",
        "Éa",
        "3",
        "3.5",
        ".",
        ".",
        "...",
        "!",
        "?",
        "…",
        "。",
        "！",
        '"',
        "”",
        ")",
        " ",
        " ",
        "\t",
        "개",
        "Ab",
        "안",
        "’",
        "»",
        "_",
        "word",
    ]
    texts = ["".join(dice.choices(pieces, k=dice.randint(0, 25))) for _ in range(2000)]
    assert enter().evaluate(CUT, texts) == [sentences(normalise(text)) for text in texts]


def test_swap_takes_the_translation_back(enter):
    page = enter()
    write(page, TEXT)
    made = shown(page)
    page.click("#swap")
    expect(page.locator("#text")).to_have_value(made)
    expect(page.locator("#source")).to_have_value("ko")
    expect(page.locator("#target")).to_have_value("en")
    settled(page)
    assert page.locator("#output").get_attribute("lang") == "en"


def test_alternatives_can_be_taken_and_left_again(enter, desk):
    page = enter()
    write(page, TEXT)
    [said] = desk.post("/v1/translate", {"q": TEXT, "model": "tiny", "alternatives": 3, "attention": True}).json[
        "translations"
    ]
    page.click("#more")
    expect(page.locator("#alternatives li")).to_have_text([each["text"] for each in said["alternatives"]])
    page.click("#alternatives li >> nth=1")
    assert shown(page) == said["alternatives"][1]["text"]
    expect(words(page, "row")).to_have_text(said["alternatives"][1]["attention"]["target_words"])
    page.click("#alternatives li >> nth=1")
    assert shown(page) == said["text"]


def test_copy_and_clear(enter):
    page = enter(permissions=["clipboard-read", "clipboard-write"])
    write(page, TWO)
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == shown(page)
    page.click("#clear")
    expect(page.locator("#output")).to_be_empty()
    expect(page.locator("#gaze")).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "text"


# --- looking ------------------------------------------------------------------------------------------------------


def looked(desk, text=TEXT, model="tiny"):
    [said] = desk.post("/v1/translate", {"q": text, "model": model, "alternatives": 3, "attention": True}).json[
        "translations"
    ]
    return said["attention"]


def lit(page, side):
    """Words that are on, by number."""
    return page.locator(f"#first .word[data-side={side}].on").evaluate_all(
        "all => all.map(each => +each.dataset.number)"
    )


def test_pointing_at_a_word_shows_its_partners(enter, desk):
    page, said = enter(), looked(desk)
    write(page, TEXT)
    expect(words(page, "column")).to_have_text(said["source_words"])
    expect(words(page, "row")).to_have_text(said["target_words"])
    words(page, "row").first.hover()
    row = said["weights"][0]
    assert lit(page, "column") == [place for place, weight in enumerate(row) if weight >= 0.1]
    most = max(range(len(row)), key=row.__getitem__)
    expect(page.locator("#first .sentence")).to_contain_text(
        f"{said['target_words'][0]} ← {said['source_words'][most]} {row[most]:.2f}"
    )
    words(page, "column").nth(2).hover()
    assert lit(page, "row") == [place for place, own in enumerate(said["weights"]) if own[2] >= 0.1]


def test_the_keyboard_walks_over_words_and_across(enter):
    page = enter()
    write(page, TEXT)
    words(page, "column").first.focus()
    is_down = page.locator("#first .stage.down").count()
    onward, across, back = (
        ("ArrowDown", "ArrowRight", "ArrowLeft") if is_down else ("ArrowRight", "ArrowDown", "ArrowUp")
    )
    for key, side, number in ((onward, "column", 1), ("End", "column", 5), ("Home", "column", 0), (back, "column", 0)):
        page.keyboard.press(key)
        assert page.evaluate("[document.activeElement.dataset.side, +document.activeElement.dataset.number]") == [
            side,
            number,
        ]
    for key, side in ((across, "row"), (back, "column")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.side") == side
        assert page.locator("#first .stage.lit").count()


def test_the_full_view_opens(enter):
    page = enter()
    write(page, TEXT)
    with page.context.expect_page() as opening:
        page.click("#full button")
    opened = opening.value
    opened.wait_for_selector("#heat canvas")
    assert opened.title().startswith(TEXT)


def test_a_model_without_attention_says_so(enter):
    page = enter()
    page.select_option("#model", "plain")
    write(page, TEXT)
    expect(page.locator("#nothing-seen")).to_contain_text("one fixed memory")
    expect(page.locator("#first .stage")).to_be_hidden()


def test_two_models_side_by_side(enter, desk, models):
    page = enter()
    write(page, TEXT)
    expect(page.locator("#compare option")).to_have_text(["no other model", "rival", "plain"])
    page.select_option("#compare", "rival")
    for root, name in (("#first", "tiny"), ("#second", "rival")):
        expect(page.locator(f"{root} .name")).to_have_text(name)
        expect(page.locator(f"{root} .whole")).to_have_text(load(models[name]).translate(TEXT, beam=5).text)
        expect(words(page, "row", root)).to_have_text(looked(desk, model=name)["target_words"])
    page.select_option("#compare", "plain")
    expect(page.locator("#second .sentence")).to_contain_text("one fixed memory")


def test_ignored_words_are_named_and_marked(enter):
    page = enter()

    def ignoring(route):
        said = route.fetch().json()
        for each in said["translations"]:
            each["attention"]["warnings"] = [{"word": 2, "text": "dog", "coverage": 0.01}]
        route.fulfill(json=said)

    page.route(
        "**/v1/translate",
        lambda route: route.abort() if route.request.post_data_json.get("stream") else ignoring(route),
    )
    page.route(
        "**/v1/translate",
        lambda route: route.fulfill(body="") if route.request.post_data_json.get("stream") else route.fallback(),
    )
    write(page, TEXT)
    expect(page.locator("#warning")).to_contain_text("dog")
    assert page.locator(".word.ignored").evaluate_all("all => all.map(each => +each.dataset.number)") == [2]


# --- changing where it looks --------------------------------------------------------------------------------------


def after(desk, **question):
    return desk.post("/v1/what_if", {"q": TEXT, "model": "tiny", **question}).json


def check_change(page, said):
    """Both texts, what changed, and the new ribbons."""
    expect(page.locator("#output")).to_have_text(said["after"]["text"])
    expect(page.locator("#edited")).to_be_visible()
    lines = page.locator("#change .said span:last-child")
    expect(lines).to_have_text([said["before"]["text"], said["after"]["text"]])
    assert page.locator("#change del").all_inner_texts() == [text for what, text in said["diff"] if what == "removed"]
    assert page.locator("#change ins").all_inner_texts() == [text for what, text in said["diff"] if what == "added"]
    expect(words(page, "row")).to_have_text(said["after"]["attention"]["target_words"])


def test_a_word_is_silenced_by_keyboard_and_heard_again(enter, desk, tiny):
    page = enter()
    write(page, TEXT)
    words(page, "column").nth(1).focus()
    page.keyboard.press("Delete")
    expect(page.locator("#edits .chip")).to_contain_text("small")
    check_change(page, after(desk, mask=[1]))
    assert "silenced" in words(page, "column").nth(1).get_attribute("class")
    assert page.evaluate("+document.activeElement.dataset.number") == 1  # the focus is still there
    page.keyboard.press("Delete")
    expect(page.locator("#edited")).to_be_hidden()
    assert shown(page) == tiny.translate(TEXT, beam=5).text


def test_words_are_chosen_to_look_at_each_other(enter, desk):
    page = enter()
    write(page, TEXT)
    words(page, "row").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hint")).to_contain_text("Now choose the source word")
    words(page, "column").nth(4).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#edits .chip")).to_have_count(1)
    check_change(page, after(desk, attend={"1": 4}))
    words(page, "column").nth(3).click()
    page.click("#silence")
    expect(page.locator("#edits .chip")).to_have_count(2)
    check_change(page, after(desk, attend={"1": 4}, mask=[3]))
    words(page, "row").first.click()
    words(page, "column").nth(3).click()  # what is looked at is no longer silenced
    expect(page.locator("#edits .chip").filter(has_text="silenced")).to_have_count(0)
    check_change(page, after(desk, attend={"1": 4, "0": 3}))
    page.click(".reset")
    expect(page.locator("#edits li")).to_have_count(0)
    expect(page.locator("#change")).to_be_empty()
    assert shown(page) == after(desk, mask=[])["before"]["text"]


TALL = {"width": 1200, "height": 2000}  # all of the words in sight


def test_an_exported_model_can_only_be_looked_at(enter, desk):
    page, known = enter(), desk.get("/v1/models").json
    known["models"][0] |= {"what_if": False, "full": False}
    page.route("**/v1/models", lambda route: route.fulfill(json=known))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    write(page, TEXT)
    expect(page.locator("#first .sentence")).to_have_text("Point at a word to see its partners.")
    words(page, "column").first.click()
    page.keyboard.press("Delete")
    words(page, "row").first.click()
    expect(page.locator("#first .word[aria-pressed=true]")).to_have_attribute("data-side", "row")
    expect(page.locator("#edits li")).to_have_count(0)
    for part in ("#full", "#silence", "#hint"):
        expect(page.locator(part)).to_be_hidden()


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
    page.mouse.move(*end, steps=3)
    page.mouse.up()


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_word_is_dragged_to_another(enter, desk):
    page = enter(viewport=TALL)
    write(page, TEXT)
    drag(page, middle(words(page, "row").first), middle(words(page, "column").nth(5)))
    expect(page.locator("#edits .chip")).to_have_count(1)
    check_change(page, after(desk, attend={"0": 5}))


RIBBON = """number => {
  const path = document.querySelectorAll("#first .ribbon")[number], length = path.getTotalLength();
  const spot = path.getPointAtLength(length * 0.06).matrixTransform(path.getScreenCTM());
  return [spot.x, spot.y];
}"""


def test_a_ribbon_is_dragged_by_its_end(enter):
    page, asked = enter(viewport=TALL), []
    write(page, "dog sees")
    page.on("request", lambda each: asked.append(each.post_data_json) if each.url.endswith("/v1/what_if") else None)
    start = page.evaluate(RIBBON, 0)
    row = page.evaluate("([x, y]) => +document.elementFromPoint(x, y).dataset.number", start)
    columns = words(page, "column")
    own = min(
        range(2),
        key=lambda place: abs(middle(columns.nth(place))[0] - start[0]) + abs(middle(columns.nth(place))[1] - start[1]),
    )
    drag(page, start, middle(columns.nth(1 - own)))
    expect(page.locator("#edits .chip")).to_have_count(1)
    assert (asked[0]["attend"], asked[0]["mask"]) == ({str(row): 1 - own}, [])


def test_a_drag_that_ends_nowhere_changes_nothing(enter):
    page = enter(viewport=TALL)
    write(page, TEXT)
    drag(page, middle(words(page, "row").first), (5, 5))
    expect(page.locator("#edits li")).to_have_count(0)
    expect(page.locator("#first .ghost")).to_have_count(0)
    drag(page, middle(words(page, "row").first), middle(words(page, "row").first))
    expect(page.locator("#first .word[aria-pressed=true]")).to_have_count(1)  # only chosen, as by a click


# --- hostile, large, broken ---------------------------------------------------------------------------------------


STRANGE = [
    HOSTILE,
    "\x00",
    "𝔘𝔫𝔦 👩‍👩‍👧 e\u0301\u0301\u0301",
    "{word} $& `",
    "\u2029 a\r\nb",
    "Dog. " * 199 + "aaaa😀",  # two halves around the thousandth place
]


def test_any_text_is_only_text(enter):
    page = enter()
    for text in STRANGE:
        write(page, text)
        words(page, "column").first.click()
        assert page.locator("main script, main img:not(#photo)").count() == 0
        assert page.locator("#problem").inner_text() == ""
    page.locator("#text").evaluate("each => { each.value = 'a \\ud800 dog'; each.dispatchEvent(new Event('input')); }")
    settled(page)
    expect(words(page, "column")).to_have_text(["a", "\ufffd", "dog"])


def test_a_text_that_is_too_long_is_not_sent(enter):
    page, asked = enter(), []
    page.on("request", lambda each: asked.append(each.url) if each.method == "POST" else None)
    page.fill("#text", "a" * 10_001)
    expect(page.locator("#problem")).to_have_text(re.compile("^The text has 10,001 characters, and at most 10,000"))
    assert asked == []


def test_errors_are_one_plain_line(enter):
    page = enter(expected=("error: Failed to load resource",))
    page.route("**/v1/translate", lambda route: route.fulfill(status=400, json={"error": "<b>no</b>\n\n  such model"}))
    page.fill("#text", TEXT)
    expect(page.locator("#problem")).not_to_be_empty()
    assert page.locator("#problem").evaluate("each => each.textContent") == "<b>no</b> such model"
    page.unroute_all()
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#text", f"{TEXT} ")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    page.unroute_all()
    page.route("**/v1/translate", lambda route: route.fulfill(status=502, body="<html>"))
    page.fill("#text", TEXT)
    expect(page.locator("#problem")).to_contain_text("502")
    page.unroute_all()
    write(page, TEXT)
    expect(page.locator("#problem")).to_be_empty()
    assert shown(page)


def test_a_busy_server_is_asked_again(enter, tiny):
    page, busy = enter(expected=("error: Failed to load resource",)), [True]
    page.route(
        "**/v1/translate",
        lambda route: (
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "busy"})
            if busy.pop(0)
            else route.continue_()
        ),
    )
    busy.extend([False] * 5)
    page.fill("#text", TEXT)
    expect(page.locator("#problem")).to_contain_text("busy; trying again in 1 s")
    expect(page.locator("#output")).to_have_text(tiny.translate(TEXT, beam=5).text)
    expect(page.locator("#problem")).to_be_empty()


def test_a_key_is_asked_for_and_sent(enter, desk):
    page = enter(expected=("verbose",))
    page.route("**/v1/models", lambda route: route.fulfill(json={**desk.get("/v1/models").json, "key_required": True}))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.fill("#key", "secret")
    page.keyboard.press("Tab")
    with page.expect_request("**/v1/translate") as asked:
        page.fill("#text", TEXT)
    assert asked.value.headers["authorization"] == "Bearer secret"


# --- files and pictures -------------------------------------------------------------------------------------------


def file(name, text):
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def test_a_file_is_translated_and_named(enter, tiny):
    page = enter()
    page.click("#tab-file")
    page.set_input_files("#file", file("my <b>text</b>.txt", "A dog runs.\n\nThe cat sleeps.\n"))
    expect(page.locator("#file-state")).to_contain_text("my <b>text</b>.txt\u2069 is translated.")
    with page.expect_download() as saving:
        page.click(".download")
    assert saving.value.suggested_filename.endswith(".ko.txt")
    lines = saving.value.path().read_text(encoding="utf-8").splitlines()
    assert lines == [tiny.translate(line).text for line in ("A dog runs.", "", "The cat sleeps.")]


def test_what_cannot_be_a_text_file_is_not_sent(enter):
    page, asked = enter(), []
    page.on("request", lambda each: asked.append(each.url) if each.method == "POST" else None)
    page.click("#tab-file")
    page.set_input_files("#file", file("photo.png", "x"))
    expect(page.locator("#file-state")).to_contain_text("photo.png\u2069 is not a text file; this server takes .txt.")
    page.set_input_files("#file", file("long.txt", "x" * 1_100_000))
    expect(page.locator("#file-state")).to_contain_text("at most 1 MB")
    assert asked == []


GRID = {"rows": 2, "columns": 2, "crop": [0.2, 0, 0.8, 1]}
VEIL = """places => {
  const canvas = document.getElementById("regions"), { width, height } = canvas;
  const shades = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  return places.map(([x, y]) => shades[4 * (Math.floor(y * height) * width + Math.floor(x * width)) + 3]);
}"""
CAPTION = {
    "text": "a <b>red</b> circle",
    "alternatives": [{"text": "a circle"}],
    "attention": {
        "target_words": ["a", "<b>red</b>", "circle"],
        "grid": GRID,
        "weights": [[0.25] * 4, [0.0, 1.0, 0.0, 0.0], [0.1, 0.1, 0.7, 0.1]],
        "shows": "",
    },
}
PIXEL = (  # a whole PNG
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


@pytest.fixture
def gallery(enter, desk):
    """The page with a captioner whose answer is known."""

    def entered(**options):
        page = enter(**options)
        captioner = {
            **desk.get("/v1/models").json["models"][0],
            "id": "eye",
            "kind": "image",
            "source": {"code": "image", "name": "image"},
        }
        known = desk.get("/v1/models").json
        page.route("**/v1/models", lambda route: route.fulfill(json={**known, "models": [*known["models"], captioner]}))
        page.route(
            "**/v1/caption",
            lambda route: route.fulfill(json={"model": "eye", "captions": [CAPTION], "milliseconds": 1}),
        )
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.click("#tab-image")
        page.set_input_files("#image", {"name": "x.png", "mimeType": "image/png", "buffer": bytes.fromhex(PIXEL)})
        page.wait_for_selector("#caption .word")
        return page

    return entered


def test_words_point_at_regions_and_regions_at_words(gallery):
    page = gallery()
    assert page.locator("#caption .word").all_inner_texts() == CAPTION["attention"]["target_words"]
    page.hover("#caption .word >> nth=1")
    expect(page.locator("#caption-sentence")).to_have_text("<b>red</b> ← Row 1, column 2 1.00")
    aside, dark, clear, below = page.evaluate(VEIL, [[0.1, 0.2], [0.3, 0.2], [0.7, 0.2], [0.7, 0.8]])
    assert (
        min(aside, dark, below) > 120 > 20 > clear
    )  # what the model did not see is as dark as what it did not look at
    page.focus("#frame")
    for key, named in (("ArrowDown", "Row 1, column 1"), ("ArrowDown", "Row 2, column 1")):
        page.keyboard.press(key)
        expect(page.locator("#caption-sentence")).to_contain_text(named)
    assert page.locator("#caption .word.on").all_inner_texts() == ["a", "circle"]
    assert page.locator("#photo").get_attribute("alt").endswith(CAPTION["text"])


def test_a_large_photo_is_made_smaller_before_it_is_sent(gallery):
    page = gallery()
    noise = io.BytesIO()
    Image.frombytes("RGB", (1500, 900), random.Random(1).randbytes(1500 * 900 * 3)).save(noise, "PNG")
    with page.expect_request("**/v1/caption") as asked:
        page.set_input_files("#image", {"name": "x.png", "mimeType": "image/png", "buffer": noise.getvalue()})
    sent = asked.value.post_data_buffer
    start, end = sent.index(b"\xff\xd8"), sent.rindex(b"\xff\xd9")
    assert len(sent) < 2**20 < len(noise.getvalue())
    assert Image.open(io.BytesIO(sent[start : end + 2])).size == (1024, 614)


def test_no_captioner_no_images(enter):
    expect(enter().locator("#tab-image")).to_be_hidden()


def test_a_captioner_alone_has_no_place_for_text(visit, tmp_path):
    Image.frombytes("RGB", (40, 30), random.Random(1).randbytes(40 * 30 * 3)).save(tmp_path / "any.png")
    with serving(picture_bundle()) as running:
        page = visit(f"{running.url}/", locale="en-US")
        page.wait_for_selector("html[data-ready]")
        for panel in ("text", "file"):
            expect(page.locator(f"#{panel}-panel")).to_be_hidden()
        page.set_input_files("#image", str(tmp_path / "any.png"))
        expect(page.locator("#caption .word").first).to_be_visible()


# --- for everybody ------------------------------------------------------------------------------------------------


def test_korean_is_spoken_to_who_speaks_it_and_a_choice_is_remembered(enter):
    page = enter(locale="ko-KR")
    expect(page.locator("#gaze-title")).to_have_text("단어마다 어디를 보았나")
    expect(page.locator("#target option:checked")).to_have_text("한국어")
    assert page.locator("html").get_attribute("lang") == "ko"
    write(page, TEXT)
    page.click("#interface")
    expect(page.locator("#source option:checked")).to_have_text("English (detected)")
    expect(page.locator("#first .sentence")).to_contain_text("Drag a ribbon")
    page.reload()
    expect(page.locator("#gaze-title")).to_have_text("Where each word looked")


def test_dark_is_switched_and_remembered(enter):
    page = enter(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(23, 24, 26)")
    page.reload()
    assert page.evaluate(paper) == dark
    page.click("#theme")
    assert page.evaluate(paper) == light
    assert enter(color_scheme="dark").evaluate(paper) == dark


def test_a_browser_that_remembers_nothing_is_served_too(enter, desk):
    page = enter()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.click("#theme")
    page.click("#interface")
    expect(page.locator("#gaze-title")).to_have_text("단어마다 어디를 보았나")


COLOURS = """() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const ground = element => {
    if (!element) return [255, 255, 255];
    const [r, g, b, a = 1] = channels(getComputedStyle(element).backgroundColor);
    return a === 1 ? [r, g, b] : over([r, g, b, a], ground(element.parentElement));
  };
  const hex = colour => "#" + colour.map(each => Math.round(each).toString(16).padStart(2, "0")).join("");
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    const isLeftOut = element.closest("noscript, .unseen, :disabled, option");
    if (!node.textContent.trim() || !element.checkVisibility() || isLeftOut) continue;
    const paper = ground(element);
    found.push([node.textContent, hex(over(channels(getComputedStyle(element).color), paper)), hex(paper)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(enter, scheme):
    page = enter(color_scheme=scheme, reduced_motion="reduce")
    write(page, TWO)
    page.click("#more")
    words(page, "column").first.click()
    page.click("#silence")
    expect(page.locator("#edits .chip")).to_have_count(1)
    page.select_option("#compare", "rival")
    settled(page)
    words(page, "row").first.click()
    page.mouse.move(5, 5)
    read = page.evaluate(COLOURS)
    page.click("#tab-file")
    page.set_input_files("#file", file("a.txt", "A dog."))
    page.wait_for_selector(".download")
    read += page.evaluate(COLOURS)
    assert len(read) > 40
    assert [each for each in read if contrast(each[1], each[2]) < 4.5] == []


NAMELESS = """() => {
  const named = "button, select, input:not([type=hidden]), textarea, a, section, ol, ul, [role=group], [role=tablist]";
  const byText = each => each.matches("button, a") && each.textContent.trim();
  const hasName = each => each.ariaLabel || each.getAttribute("aria-labelledby") || each.labels?.length || byText(each);
  const seen = [...document.querySelectorAll(named)].filter(each => each.checkVisibility());
  return seen.filter(each => !hasName(each)).map(each => each.outerHTML);
}"""


def test_everything_has_a_name_and_is_reached_in_order(enter):
    page = enter()
    write(page, TWO)
    page.click("#more")
    assert page.evaluate(NAMELESS) == []
    page.focus("#text")
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.dataset.side || document.activeElement.textContent"
            )
        )
    wanted = ["clear", "output", "more", "copy", "step-back", "compare", "Open the full view", "column", "row"]
    assert [each for each in reached if each in wanted] == wanted


def test_motion_is_reduced_when_asked(enter):
    page = enter(reduced_motion="reduce")
    every = "[...document.querySelectorAll('*')].map(each => parseFloat(getComputedStyle(each).transitionDuration))"
    assert set(page.evaluate(every)) == {0}


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
def test_a_phone_has_room_for_it(enter, width, locale):
    page = enter(viewport={"width": width, "height": 780}, has_touch=True, is_mobile=True, locale=locale)
    write(page, f"{TWO} {'a' * 90}")
    page.click("#more")
    assert page.locator(".panes").evaluate("each => getComputedStyle(each).gridTemplateColumns.split(' ').length") == 1
    words(page, "column").first.tap()
    page.locator("#silence").tap()
    expect(page.locator("#edits .chip")).to_have_count(1)
    for tab in ("#tab-text", "#tab-file"):
        page.click(tab)
        assert page.evaluate("document.documentElement.scrollWidth") == width
