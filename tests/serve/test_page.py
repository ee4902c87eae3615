"""The web page in a real browser on a real server: mouse, keyboard and phone.

The page is compared with the models in this process, or with the API's response to the same request.
"""

import io
import random
import re
from contextlib import contextmanager
from importlib.resources import files

import pytest
from PIL import Image
from playwright.sync_api import expect

from bundles import make_bundle
from contrast import contrast
from pictures import image_bundle
from serving import serving
from softgaze.data.sentence_split import split_sentences
from softgaze.data.tokenizer import normalise
from softgaze.documents.formats import SUFFIXES
from softgaze.translator import load

TEXT = "The small dog sees a tree."
TWO = "The old man sleeps.\n\nA red cat sees the small tree! The dog runs."
HOSTILE = '</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202eevil שלום the dog & "x" \u2067'
RECURRENT = {"width": 16, "layers": 1}
HTML = (files("softgaze.serve") / "static" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Three models en to ko, one of them without attention, and one back."""
    folder = tmp_path_factory.mktemp("page")
    changes = {
        "tiny": {},
        "rival": {"arch": "rnn-luong", "options": RECURRENT},
        "plain": {"arch": "rnn", "options": RECURRENT},
        "back": {"source_language": "ko", "target_language": "en"},
    }
    return {name: make_bundle(folder / name, **own) for name, own in changes.items()}


@pytest.fixture(scope="module")
def server(models):
    with serving(*models.values()) as running:
        yield running


@pytest.fixture(scope="module")
def tiny(models):
    return load(models["tiny"])


@pytest.fixture
def open_app(server, visit):
    """Open the page, by default in English and in a wide window, and translate `text` if it is given."""

    def open_it(text=None, **options):
        page = visit(f"{server.url}/", **{"locale": "en-US", "viewport": {"width": 1200, "height": 900}, **options})
        page.wait_for_selector("html[data-ready]")
        if text is not None:
            translate(page, text)
        return page

    return open_it


expect.set_options(timeout=60_000)  # generous, since the machine may be busy


TRANSLATIONS = """() => {
  const output = document.getElementById("output"), state = document.documentElement.dataset;
  state.translated = false;
  new MutationObserver((records) => {
    const wasBusy = records.some((record) => record.oldValue === "true");
    state.translated = output.ariaBusy === "false" && (state.translated === "true" || wasBusy);
  }).observe(output, { attributeFilter: ["aria-busy"], attributeOldValue: true });
}"""


@contextmanager
def awaiting_translation(page):
    """Wait for a translation started inside the block, even if it takes less time than one poll of the page."""
    page.evaluate(TRANSLATIONS)
    yield
    expect(page.locator("html")).to_have_attribute("data-translated", "true")


def translate(page, text):
    """Enter a text and wait for its translation."""
    with awaiting_translation(page):
        page.fill("#text", text)


def reload(page):
    page.reload()
    page.wait_for_selector("html[data-ready]")


def output_of(page):
    return page.locator("#output").evaluate("element => element.textContent")


def string(page, key, **values):
    """Return a string of the page in its current language."""
    return page.evaluate("([key, values]) => t(key, values)", [key, values])


def words(page, side, root="#first"):
    return page.locator(f"{root} .word[data-side={side}]")


def translate_sentences(translator, text):
    """Translate sentence by sentence and keep the lines."""
    lines = [
        " ".join(each.text for each in translator.translate(split_sentences(normalise(line))))
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def best_of(server, model="tiny"):
    """Return the API's translation of TEXT with alternatives and attention."""
    request = {"q": TEXT, "model": model, "num_hypotheses": 4, "attention": True}
    return server.post("/v1/translate", request).json["translations"][0]


# --- files -------------------------------------------------------------------------------------------------------


def test_the_page_has_no_inline_code_and_only_own_files(server):
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", HTML)
    assert all(
        re.search(r' src="static/\w+\.js"></script>', f"{each}</script>") for each in HTML.split("</script>")[:-1]
    )
    for name in ["", *re.findall(r'(?:src|href)="(static/[^"]+)"', HTML)]:
        found = server.get(f"/{name}")
        assert (found.status, found.headers["x-content-type-options"]) == (200, "nosniff")
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_both_languages_have_all_strings(open_app):
    both = open_app().evaluate("STRINGS")
    places = {
        language: {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in texts.items()}
        for language, texts in both.items()
    }
    assert places["en"] == places["ko"]
    assert set(re.findall(r'data-i18n(?:-\w+)?="([^"]+)"', HTML)) <= set(places["en"])


# --- typing ------------------------------------------------------------------------------------------------------


def test_typed_text_is_translated(open_app, tiny):
    page = open_app()
    page.locator("#text").press_sequentially(TEXT)
    expect(page.locator("#output")).to_have_text(tiny.translate(TEXT, beam_size=5).text)
    expect(page.locator("#source option:checked")).to_have_text("English (detected)")
    expect(page.locator("#count")).to_have_text(f"{len(TEXT)} / 10,000")
    assert page.locator("#output").get_attribute("lang") == "ko"


def test_lines_and_sentences_are_preserved(open_app, tiny):
    page = open_app(TWO)
    assert output_of(page) == translate_sentences(tiny, TWO)
    expect(page.locator("#sentence-number")).to_have_text(string(page, "sentence-number", number=3, count=3))
    page.click("#previous-sentence")
    expect(words(page, "column").first).to_have_text("A")
    page.locator("#output .part").first.click()
    expect(words(page, "column").nth(1)).to_have_text("old")


def test_only_changed_sentences_are_requested(open_app):
    page, requests = open_app(), []
    page.on("request", lambda sent: requests.append(sent.post_data_json) if "/v1/translate" in sent.url else None)
    translate(page, TWO)
    assert [each["q"] for each in requests] == [split_sentences(TWO)]
    translate(page, f"{TWO} A cat runs.")
    assert [each["q"] for each in requests[1:]] == ["A cat runs.", ["A cat runs."]]  # the draft, then all of it


@pytest.mark.parametrize("path", ["detect", "v1/translate"])
def test_a_late_response_is_ignored(open_app, tiny, path):
    page, late = open_app(), []
    page.route(f"**/{path}", lambda each: late.append(each) if "red" in each.request.post_data else each.continue_())
    with page.expect_request(f"**/{path}"):
        page.fill("#text", "A red tree.")
    with page.expect_event("requestfailed", lambda each: "red" in each.post_data):  # it is given up
        translate(page, TEXT)
    for route in late:
        route.continue_()
    assert output_of(page) == tiny.translate(TEXT, beam_size=5).text


def test_a_single_sentence_is_streamed(open_app, tiny):
    page = open_app()
    page.route("**/v1/translate", lambda each: each.continue_() if each.request.post_data_json.get("stream") else None)
    page.fill("#text", TEXT)
    expect(page.locator("#output .draft")).to_have_text(tiny.translate(TEXT, beam_size=1).text)
    expect(page.locator("#output")).to_have_attribute("aria-busy", "true")


CUT = """async texts => {
  const { splitSentences } = await import("/static/sentences.js");
  return texts.map(text => splitSentences(text).map(each => each.text));
}"""


def test_sentences_are_split_as_by_the_translator(open_app):
    dice = random.Random(3)
    words = "Mr U.S a B é Éa 3 3.5 . . ... ! ? … 。 ！ ” ) 개 Ab 안 ’ » _ word no dr z. I O vii と pág"
    pieces = [*words.split(), '"', " ", " ", "\t"]
    texts = ["".join(dice.choices(pieces, k=dice.randint(0, 25))) for _ in range(2000)]
    assert open_app().evaluate(CUT, texts) == [split_sentences(normalise(text)) for text in texts]


def test_swap(open_app):
    page = open_app(TEXT)
    made = output_of(page)
    with awaiting_translation(page):
        page.click("#swap")
    expect(page.locator("#text")).to_have_value(made)
    expect(page.locator("#source")).to_have_value("ko")
    expect(page.locator("#target")).to_have_value("en")
    assert page.locator("#output").get_attribute("lang") == "en"


def test_placeholders_stay_in_the_output(open_app):
    made = output_of(open_app("The {color} dog sees %s."))
    assert (made.count("{color}"), made.count("%s")) == (1, 1)


def test_uncertain_words_are_underlined_and_another_word_continues_the_translation(open_app, server):
    page = open_app(TEXT)
    request = {"q": TEXT, "model": "tiny", "confidence": True}
    confidence = server.post("/v1/translate", request).json["translations"][0]["confidence"]
    uncertain = [word["text"] for word in confidence["words"] if word["confidence"] < 0.5]
    expect(page.locator(".output-word")).to_have_text([word["text"] for word in confidence["words"]])
    expect(page.locator(".output-word.uncertain")).to_have_text(uncertain)
    expect(page.locator("#confidence-note")).to_contain_text("not calibrated")
    request = {"q": TEXT, "model": "tiny", "translation": output_of(page), "word": 1}
    expected = server.post("/v1/alternatives", request).json["alternatives"]
    page.focus(".output-word[data-word='0']")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#word-menu bdi")).to_have_text([each["word"] for each in expected])
    page.keyboard.press("Escape")
    expect(page.locator("#word-menu")).to_be_hidden()
    page.hover(".output-word[data-word='1']")
    index = next(number for number, each in enumerate(expected) if each["translation"]["text"] != output_of(page))
    page.click(f"#word-menu button >> nth={index}")
    assert output_of(page) == expected[index]["translation"]["text"]
    expect(page.locator(".output-word[data-word='1']")).to_be_focused()
    expect(words(page, "row")).to_have_count(len(expected[index]["translation"]["confidence"]["words"]))
    page.click("#restore")
    assert output_of(page) == request["translation"]


def test_alternatives_can_be_chosen_and_unchosen(open_app, server):
    page = open_app(TEXT)
    best = best_of(server)
    page.click("#show-alternatives")
    expect(page.locator("#alternatives li")).to_have_text([each["text"] for each in best["alternatives"]])
    page.click("#alternatives li >> nth=1")
    assert output_of(page) == best["alternatives"][1]["text"]
    expect(words(page, "row")).to_have_text(best["alternatives"][1]["attention"]["target_words"])
    page.click("#alternatives li >> nth=1")
    assert output_of(page) == best["text"]


def test_copy_and_clear(open_app):
    page = open_app(TWO, permissions=["clipboard-read", "clipboard-write"])
    page.click("#copy")
    expect(page.locator("#copy")).to_have_text(string(page, "copied"))
    assert page.evaluate("navigator.clipboard.readText()") == output_of(page)
    page.click("#clear")
    expect(page.locator("#output")).to_be_empty()
    expect(page.locator("#attention")).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "text"


# --- attention ---------------------------------------------------------------------------------------------------


def highlighted(page, side):
    """Return the indices of the highlighted words."""
    return page.locator(f"#first .word[data-side={side}].on").evaluate_all(
        "all => all.map(each => +each.dataset.number)"
    )


def test_pointing_at_a_word_shows_its_weights(open_app, server):
    page, best = open_app(TEXT), best_of(server)["attention"]
    expect(words(page, "column")).to_have_text(best["source_words"])
    expect(words(page, "row")).to_have_text(best["target_words"])
    words(page, "row").first.hover()
    row = best["weights"][0]
    assert highlighted(page, "column") == [index for index, weight in enumerate(row) if weight >= 0.1]
    most = max(range(len(row)), key=row.__getitem__)
    expect(page.locator("#first .sentence")).to_contain_text(
        f"{best['target_words'][0]} ← {best['source_words'][most]} {row[most]:.2f}"
    )
    words(page, "column").nth(2).hover()
    assert highlighted(page, "row") == [index for index, own in enumerate(best["weights"]) if own[2] >= 0.1]


def test_arrow_keys_move_over_words_and_across(open_app):
    page = open_app(TEXT)
    words(page, "column").first.focus()
    is_down = page.locator("#first .stage.vertical").count()
    onward, across, back = (
        ("ArrowDown", "ArrowRight", "ArrowLeft") if is_down else ("ArrowRight", "ArrowDown", "ArrowUp")
    )
    for key, side, number in ((onward, "column", 1), ("End", "column", 5), ("Home", "column", 0), (back, "column", 0)):
        page.keyboard.press(key)
        focused = page.evaluate("({ ...document.activeElement.dataset })")
        assert (focused["side"], focused["number"]) == (side, str(number))
    for key, side in ((across, "row"), (back, "column")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.side") == side
        assert page.locator("#first .stage.lit").count()


def test_the_explain_page_opens(open_app):
    page = open_app(TEXT)
    with page.context.expect_page() as opening:
        page.click("#explain button")
    opened = opening.value
    opened.wait_for_selector("#heat canvas")
    assert opened.title().startswith(TEXT)


def test_a_model_without_attention(open_app):
    page = open_app()
    page.select_option("#model", "plain")
    translate(page, TEXT)
    expect(page.locator("#no-attention")).to_have_text(string(page, "no-attention"))
    expect(page.locator("#first .stage")).to_be_hidden()


def test_comparison_of_two_models(open_app, server, models):
    page = open_app(TEXT)
    expect(page.locator("#compare option")).to_have_text([string(page, "compare-none"), "rival", "plain"])
    page.select_option("#compare", "rival")
    for root, name in (("#first", "tiny"), ("#second", "rival")):
        expect(page.locator(f"{root} .name")).to_have_text(name)
        expect(page.locator(f"{root} .model-text")).to_have_text(load(models[name]).translate(TEXT, beam_size=5).text)
        expect(words(page, "row", root)).to_have_text(best_of(server, name)["attention"]["target_words"])
    page.select_option("#compare", "plain")
    expect(page.locator("#second .sentence")).to_have_text(string(page, "no-attention"))


def test_uncovered_words_are_listed_and_marked(open_app):
    page = open_app()

    def ignoring(route):
        if route.request.post_data_json.get("stream"):
            route.fulfill(body="")
            return
        best = route.fetch().json()
        for each in best["translations"]:
            each["attention"]["uncovered"] = [{"index": 2, "text": "dog", "coverage": 0.01}]
        route.fulfill(json=best)

    page.route("**/v1/translate", ignoring)
    translate(page, TEXT)
    expect(page.locator("#warning")).to_contain_text("dog")
    assert page.locator(".word.uncovered").evaluate_all("all => all.map(each => +each.dataset.number)") == [2]


# --- attention edits ---------------------------------------------------------------------------------------------


def what_if(server, **change):
    return server.post("/v1/what_if", {"q": TEXT, "model": "tiny", **change}).json


def check_what_if(page, response):
    """Check both texts, their difference, and the new attention."""
    expect(page.locator("#output")).to_have_text(response["after"]["text"])
    expect(page.locator("#edited")).to_be_visible()
    lines = page.locator("#diff .text-line span:last-child")
    expect(lines).to_have_text([response["before"]["text"], response["after"]["text"]])
    assert page.locator("#diff del").all_inner_texts() == [text for kind, text in response["diff"] if kind == "removed"]
    assert page.locator("#diff ins").all_inner_texts() == [text for kind, text in response["diff"] if kind == "added"]
    expect(words(page, "row")).to_have_text(response["after"]["attention"]["target_words"])


def test_a_word_is_masked_and_unmasked_by_keyboard(open_app, server, tiny):
    page = open_app(TEXT)
    words(page, "column").nth(1).focus()
    page.keyboard.press("Delete")
    expect(page.locator("#edits .chip")).to_contain_text("small")
    check_what_if(page, what_if(server, mask=[1]))
    assert "masked" in words(page, "column").nth(1).get_attribute("class")
    assert page.evaluate("+document.activeElement.dataset.number") == 1  # the focus is still there
    page.keyboard.press("Delete")
    expect(page.locator("#edited")).to_be_hidden()
    assert output_of(page) == tiny.translate(TEXT, beam_size=5).text


def test_selected_words_attend_to_each_other(open_app, server):
    page = open_app(TEXT)
    words(page, "row").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#hint")).not_to_be_empty()
    words(page, "column").nth(4).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#edits .chip")).to_have_count(1)
    check_what_if(page, what_if(server, attend={"1": 4}))
    words(page, "column").nth(3).click()
    page.click("#mask-word")
    expect(page.locator("#edits .chip")).to_have_count(2)
    check_what_if(page, what_if(server, attend={"1": 4}, mask=[3]))
    words(page, "row").first.click()
    words(page, "column").nth(3).click()  # what is looked at is no longer silenced
    expect(page.locator("#edits .chip").filter(has_text="masked")).to_have_count(0)
    check_what_if(page, what_if(server, attend={"1": 4, "0": 3}))
    page.click(".reset")
    expect(page.locator("#edits li")).to_have_count(0)
    expect(page.locator("#diff")).to_be_empty()
    assert output_of(page) == what_if(server, mask=[])["before"]["text"]


TALL = {"width": 1200, "height": 2000}  # all of the words in sight


def test_an_exported_model_cannot_be_edited(open_app, server):
    page, models = open_app(), server.get("/v1/models").json
    models["models"][0] |= {"what_if": False, "explain": False}
    page.route("**/v1/models", lambda route: route.fulfill(json=models))
    reload(page)
    translate(page, TEXT)
    expect(page.locator("#first .sentence")).to_have_text(string(page, "hint-view"))
    words(page, "column").first.click()
    page.keyboard.press("Delete")
    words(page, "row").first.click()
    expect(page.locator("#first .word[aria-pressed=true]")).to_have_attribute("data-side", "row")
    expect(page.locator("#edits li")).to_have_count(0)
    for part in ("#explain", "#mask-word", "#hint"):
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


def test_drag_a_word_to_another(open_app, server):
    page = open_app(TEXT, viewport=TALL)
    drag(page, middle(words(page, "row").first), middle(words(page, "column").nth(5)))
    expect(page.locator("#edits .chip")).to_have_count(1)
    check_what_if(page, what_if(server, attend={"0": 5}))


RIBBON = """number => {
  const path = document.querySelectorAll("#first .ribbon")[number], length = path.getTotalLength();
  const spot = path.getPointAtLength(length * 0.06).matrixTransform(path.getScreenCTM());
  return [spot.x, spot.y];
}"""


def test_drag_the_end_of_a_ribbon(open_app):
    page, requests = open_app("dog sees", viewport=TALL), []
    page.on("request", lambda each: requests.append(each.post_data_json) if each.url.endswith("/v1/what_if") else None)
    start = page.evaluate(RIBBON, 0)
    row = page.evaluate("([x, y]) => +document.elementFromPoint(x, y).dataset.number", start)
    columns = words(page, "column")
    own = min(
        range(2),
        key=lambda place: abs(middle(columns.nth(place))[0] - start[0]) + abs(middle(columns.nth(place))[1] - start[1]),
    )
    drag(page, start, middle(columns.nth(1 - own)))
    expect(page.locator("#edits .chip")).to_have_count(1)
    assert (requests[0]["attend"], requests[0]["mask"]) == ({str(row): 1 - own}, [])


def test_a_drag_without_a_target_changes_nothing(open_app):
    page = open_app(TEXT, viewport=TALL)
    drag(page, middle(words(page, "row").first), (5, 5))
    expect(page.locator("#edits li")).to_have_count(0)
    expect(page.locator("#first .ghost")).to_have_count(0)
    drag(page, middle(words(page, "row").first), middle(words(page, "row").first))
    expect(page.locator("#first .word[aria-pressed=true]")).to_have_count(1)  # only chosen, as by a click


# --- hostile input and errors ------------------------------------------------------------------------------------


STRANGE = [
    HOSTILE,
    "\x00",
    "𝔘𝔫𝔦 👩‍👩‍👧 e\u0301\u0301\u0301",
    "{word} $& `",
    "\u2029 a\r\nb",
    "Dog. " * 199 + "aaaa😀",  # two halves around the thousandth place
]


def test_any_text_is_inserted_as_text(open_app):
    page = open_app()
    for text in STRANGE:
        translate(page, text)
        words(page, "column").first.click()
        assert page.locator("main script, main img:not(#photo)").count() == 0
        assert page.locator("#error").inner_text() == ""
    with awaiting_translation(page):
        page.locator("#text").evaluate(
            "each => { each.value = 'a \\ud800 dog'; each.dispatchEvent(new Event('input')); }"
        )
    expect(words(page, "column")).to_have_text(["a", "\ufffd", "dog"])


def test_a_long_text_is_not_sent(open_app):
    page, requests = open_app(), []
    page.on("request", lambda each: requests.append(each.url) if each.method == "POST" else None)
    page.fill("#text", "a" * 10_001)
    expect(page.locator("#error")).to_have_text(string(page, "too-long", count="10,001", limit="10,000"))
    assert requests == []


def test_errors_are_shown_as_one_line_of_text(open_app):
    page = open_app(expected=("error: Failed to load resource",))
    page.route("**/v1/translate", lambda route: route.fulfill(status=400, json={"error": "<b>no</b>\n\n  such model"}))
    page.fill("#text", TEXT)
    expect(page.locator("#error")).not_to_be_empty()
    assert page.locator("#error").evaluate("element => element.textContent") == "<b>no</b> such model"
    page.unroute_all()
    page.route("**/v1/translate", lambda route: route.abort())
    page.fill("#text", f"{TEXT} ")
    expect(page.locator("#error")).to_have_text(string(page, "unreachable"))
    page.unroute_all()
    page.route("**/v1/translate", lambda route: route.fulfill(status=502, body="<html>"))
    page.fill("#text", TEXT)
    expect(page.locator("#error")).to_contain_text("502")
    page.unroute_all()
    translate(page, TEXT)
    expect(page.locator("#error")).to_be_empty()
    assert output_of(page)


def test_a_busy_server_is_tried_again(open_app, tiny):
    page, busy = open_app(expected=("error: Failed to load resource",)), [True]
    refusal = {"status": 429, "headers": {"Retry-After": "1"}, "json": {"error": "busy"}}
    busy.extend([False] * 5)
    page.route("**/v1/translate", lambda route: route.fulfill(**refusal) if busy.pop(0) else route.continue_())
    page.fill("#text", TEXT)
    expect(page.locator("#error")).to_have_text(string(page, "busy", seconds=1))
    expect(page.locator("#output")).to_have_text(tiny.translate(TEXT, beam_size=5).text)
    expect(page.locator("#error")).to_be_empty()


def test_the_api_key_is_sent(open_app, server):
    page = open_app(expected=("verbose",))
    page.route(
        "**/v1/models", lambda route: route.fulfill(json={**server.get("/v1/models").json, "key_required": True})
    )
    reload(page)
    page.fill("#key", "secret")
    page.keyboard.press("Tab")
    with page.expect_request("**/v1/translate") as requests:
        page.fill("#text", TEXT)
    assert requests.value.headers["authorization"] == "Bearer secret"


# --- files and images --------------------------------------------------------------------------------------------


def file(name, text):
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def test_a_file_is_translated_and_downloaded(open_app, tiny):
    page = open_app()
    page.click("#tab-file")
    page.set_input_files("#file", file("my <b>text</b>.txt", "A dog runs.\n\nThe cat sleeps.\n"))
    expect(page.locator("#file-status")).to_contain_text("my <b>text</b>.txt")
    with page.expect_download() as saving:
        page.click(".download")
    assert saving.value.suggested_filename.endswith(".ko.txt")
    lines = saving.value.path().read_text(encoding="utf-8").splitlines()
    assert lines == [tiny.translate(line).text for line in ("A dog runs.", "", "The cat sleeps.")]


def test_other_files_are_not_sent(open_app):
    page, requests = open_app(), []
    page.on("request", lambda each: requests.append(each.url) if each.method == "POST" else None)
    page.click("#tab-file")
    page.set_input_files("#file", file("photo.png", "x"))
    expect(page.locator("#file-status")).to_have_text(
        string(page, "file-format", name="\u2068photo.png\u2069", formats=", ".join(SUFFIXES))
    )
    page.set_input_files("#file", file("long.txt", "x" * 17_000_000))
    expect(page.locator("#file-status")).to_contain_text("16 MB")
    assert requests == []


GRID = {"rows": 2, "columns": 2, "crop": [0.2, 0, 0.8, 1]}
SHADE = """places => {
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
def open_images(open_app, server):
    """The page with a captioner whose answer is known."""

    def open_it(**options):
        page = open_app(**options)
        known = server.get("/v1/models").json
        changes = {"id": "eye", "kind": "image", "source": {"code": "image", "name": "image"}}
        listed = {**known, "models": [*known["models"], {**known["models"][0], **changes}]}
        page.route("**/v1/models", lambda route: route.fulfill(json=listed))
        result = {"model": "eye", "captions": [CAPTION], "milliseconds": 1}
        page.route("**/v1/caption", lambda route: route.fulfill(json=result))
        reload(page)
        page.click("#tab-image")
        page.set_input_files("#image", {"name": "x.png", "mimeType": "image/png", "buffer": bytes.fromhex(PIXEL)})
        page.wait_for_selector("#caption .word")
        return page

    return open_it


def test_words_highlight_regions_and_regions_words(open_images):
    page = open_images()
    assert page.locator("#caption .word").all_inner_texts() == CAPTION["attention"]["target_words"]
    page.hover("#caption .word >> nth=1")
    expect(page.locator("#caption-weights")).to_have_text(
        f"<b>red</b> ← {string(page, 'region', row=1, column=2)} 1.00"
    )
    aside, dark, clear, below = page.evaluate(SHADE, [[0.1, 0.2], [0.3, 0.2], [0.7, 0.2], [0.7, 0.8]])
    assert (
        min(aside, dark, below) > 120 > 20 > clear
    )  # what the model did not see is as dark as what it did not look at
    page.focus("#frame")
    for row in (1, 2):
        page.keyboard.press("ArrowDown")
        expect(page.locator("#caption-weights")).to_contain_text(string(page, "region", row=row, column=1))
    assert page.locator("#caption .word.on").all_inner_texts() == ["a", "circle"]
    assert page.locator("#photo").get_attribute("alt").endswith(CAPTION["text"])


def test_a_masked_region_shows_how_the_caption_was_before(open_images):
    page = open_images()
    note = page.locator("#caption-unmasked")
    expect(note).to_be_hidden()
    page.focus("#frame")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(note).to_have_text(string(page, "caption-same"))
    other = {"model": "eye", "captions": [{**CAPTION, "text": "a blue square"}], "milliseconds": 1}
    page.route("**/v1/caption", lambda route: route.fulfill(json=other))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(note).to_contain_text(CAPTION["text"])


def test_a_large_photo_is_shrunk(open_images):
    page = open_images()
    noise = io.BytesIO()
    Image.frombytes("RGB", (1500, 900), random.Random(1).randbytes(1500 * 900 * 3)).save(noise, "PNG")
    with page.expect_request("**/v1/caption") as requests:
        page.set_input_files("#image", {"name": "x.png", "mimeType": "image/png", "buffer": noise.getvalue()})
    sent = requests.value.post_data_buffer
    start, end = sent.index(b"\xff\xd8"), sent.rindex(b"\xff\xd9")
    assert len(sent) < 2**20 < len(noise.getvalue())
    assert Image.open(io.BytesIO(sent[start : end + 2])).size == (1024, 614)


def test_no_image_tab_without_a_captioner(open_app):
    expect(open_app().locator("#tab-image")).to_be_hidden()


def test_no_text_tab_without_a_text_model(visit, tmp_path):
    Image.frombytes("RGB", (40, 30), random.Random(1).randbytes(40 * 30 * 3)).save(tmp_path / "any.png")
    with serving(image_bundle()) as running:
        page = visit(f"{running.url}/", locale="en-US")
        page.wait_for_selector("html[data-ready]")
        for panel in ("text", "file"):
            expect(page.locator(f"#{panel}-panel")).to_be_hidden()
        page.set_input_files("#image", str(tmp_path / "any.png"))
        expect(page.locator("#caption .word").first).to_be_visible()


# --- languages, themes, accessibility ----------------------------------------------------------------------------


def test_language_follows_the_browser_and_a_choice_is_stored(open_app):
    page = open_app(locale="ko-KR")
    expect(page.locator("#attention-title")).to_have_text("어텐션")
    expect(page.locator("#target option:checked")).to_have_text("한국어")
    assert page.locator("html").get_attribute("lang") == "ko"
    translate(page, TEXT)
    page.click("#page-language")
    expect(page.locator("#source option:checked")).to_have_text("English (detected)")
    expect(page.locator("#first .sentence")).to_have_text(string(page, "hint-edit"))
    page.reload()
    expect(page.locator("#attention-title")).to_have_text("Attention")


def test_theme_is_switched_and_stored(open_app):
    page = open_app(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    dark = page.evaluate(paper)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(23, 24, 26)")
    page.reload()
    assert page.evaluate(paper) == dark
    page.click("#theme")
    assert page.evaluate(paper) == light
    assert open_app(color_scheme="dark").evaluate(paper) == dark


def test_a_browser_without_storage(open_app, server):
    page = open_app()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    reload(page)
    page.click("#theme")
    page.click("#page-language")
    expect(page.locator("#attention-title")).to_have_text("어텐션")


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
    const isLeftOut = element.closest("noscript, .visually-hidden, :disabled, option");
    if (!node.textContent.trim() || !element.checkVisibility() || isLeftOut) continue;
    const paper = ground(element);
    found.push([node.textContent, hex(over(channels(getComputedStyle(element).color), paper)), hex(paper)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_all_text(open_app, scheme):
    page = open_app(TWO, color_scheme=scheme, reduced_motion="reduce")
    page.click("#show-alternatives")
    words(page, "column").first.click()
    page.click("#mask-word")
    expect(page.locator("#edits .chip")).to_have_count(1)
    with awaiting_translation(page):
        page.select_option("#compare", "rival")
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


def test_all_controls_have_names_and_a_tab_order(open_app):
    page = open_app(TWO)
    page.click("#show-alternatives")
    assert page.evaluate(NAMELESS) == []
    page.focus("#text")
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("(({ id, dataset, form }) => id || dataset.side || form?.id)(document.activeElement)")
        )
    controls = ["clear", "output", "show-alternatives", "copy", "previous-sentence", "compare", "explain"]
    expected = [*controls, "column", "row"]
    assert [name for name in reached if name in expected] == expected


def test_reduced_motion(open_app):
    page = open_app(reduced_motion="reduce")
    every = "[...document.querySelectorAll('*')].map(each => parseFloat(getComputedStyle(each).transitionDuration))"
    assert set(page.evaluate(every)) == {0}


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
def test_layout_on_a_phone(open_app, width, locale):
    page = open_app(viewport={"width": width, "height": 780}, has_touch=True, is_mobile=True, locale=locale)
    translate(page, f"{TWO} {'a' * 90}")
    page.click("#show-alternatives")
    assert page.locator(".panes").evaluate("each => getComputedStyle(each).gridTemplateColumns.split(' ').length") == 1
    words(page, "column").first.tap()
    page.locator("#mask-word").tap()
    expect(page.locator("#edits .chip")).to_have_count(1)
    for tab in ("#tab-text", "#tab-file"):
        page.click(tab)
        assert page.evaluate("document.documentElement.scrollWidth") == width


# --- glossary


def test_typed_terms_are_used_and_kept_in_the_browser(open_app):
    page = open_app(TEXT)
    page.click("#glossary summary")
    page.fill("#terms", "dog = 강아지\n\ntree\t소나무|은행나무")
    expect(page.locator("#output")).to_contain_text("강아지")
    assert re.search("소나무|은행나무", page.inner_text("#output"))
    assert page.inner_text("#glossary-title").endswith("(2)")
    page.fill("#terms", "dog = 멍멍이")
    expect(page.locator("#output")).to_contain_text("멍멍이")
    page.reload()
    expect(page.locator("#terms")).to_have_value("dog = 멍멍이")
