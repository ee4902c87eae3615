"""The page of images in a real browser: words show their attention, regions show the words that attend to them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from maps import random_stack
from pictures import random_image_attention, scene_attention
from softgaze.data.images import Box
from softgaze.explain import Attention, SelectedMap, View
from softgaze.explain.recording import AttentionStack
from softgaze.explain.render.image_overlay import DIM, darkness
from softgaze.explain.render.pages import image_page, without_self_attention
from softgaze.explain.word_spans import EOS_MARK

HOSTILE = "</script><img src=x onerror=alert(1)>"
CLEARED = "Caption of this image."
WEIGHTS = [
    [0.7, 0.1, 0.1, 0.0, 0.05, 0.05],
    [0.0, 0.0, 0.0, 0.25, 0.25, 0.5],
    [1 / 6] * 6,
]


def example(**options):
    """“a dog” over two rows of three cells."""
    return Attention.of(None, ["a", "dog", EOS_MARK], WEIGHTS, grid=(2, 3), **options)


def sentence(page):
    return page.inner_text("#sentence")


def word_button(page, number):
    return page.locator("#caption .word").nth(number)


def click_cell(page, row, column, rows=2, columns=3):
    box = page.locator("#stage canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows)


# Reads a copy: Chromium warns about a canvas that is read repeatedly.
READ_MASK = """mask => {
  const [width, height] = [mask.width / MASK_SCALE, mask.height / MASK_SCALE];
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.imageSmoothingEnabled = false;
  copy.drawImage(mask, 0, 0, width, height);
  return Array.from(copy.getImageData(0, 0, width, height).data).filter((_, index) => index % 4 === 3);
}"""
SMOOTHING = "mask => getComputedStyle(mask).imageRendering"


def mask_of(page, selector="#stage canvas", number=0):
    """The darkness of each cell, from 0 to 1."""
    return np.array(page.locator(selector).nth(number).evaluate(READ_MASK)) / 255


def test_opens_with_the_undimmed_image_and_a_tile_for_each_word(open_page):
    attention = scene_attention()
    page = open_page(image_page([attention], ["scene.png"]))
    words = [label.text for label in attention.row_labels if label.word is not None]
    assert page.locator("#caption .word").all_inner_texts() == words
    assert "scene.png" in sentence(page)
    assert (mask_of(page) == 0).all()
    assert page.locator("#tiles .tile").count() == len(words)
    for number, tile in enumerate(attention.tiles[: len(words)]):
        assert abs(mask_of(page, "#tiles canvas", number) - darkness(tile).ravel()).max() < 0.01
    labels = page.locator("#tiles .tile").first.inner_text()
    assert f"p {attention.word_probs[0]:.2f}" in labels
    assert page.inner_text("#description") == attention.description
    assert page.locator("#images").is_hidden()
    assert page.locator("select").count() == 0  # one layer, one head


def test_a_word_shows_its_attention(open_page):
    page = open_page(image_page([example(token_probs=[0.9, 0.25, 1.0])]))
    word_button(page, 1).click()
    assert sentence(page).startswith("dog (probability 0.25)")
    assert "row 2, column 3 (50 %)" in sentence(page)
    assert "1 of 6 cells" in sentence(page)
    assert abs(mask_of(page) - darkness(np.array(WEIGHTS[1]))).max() < 0.01
    assert word_button(page, 1).get_attribute("aria-pressed") == "true"
    word_button(page, 1).click()  # clears
    page.mouse.move(0, 0)
    assert (mask_of(page) == 0).all()
    page.locator("#tiles .tile").nth(0).click()
    assert sentence(page).startswith("a (probability 0.90)")
    assert "row 1, column 1 (70 %)" in sentence(page)


def test_a_region_shows_the_words_that_attend_to_it(open_page):
    page = open_page(image_page([example()]))
    click_cell(page, 1, 2)
    assert sentence(page).startswith("Row 2, column 3 ← dog 50 %, a 5.0 %; ")
    assert sentence(page).endswith("17 %")  # of uniform attention
    assert page.locator("#words li").all_inner_texts() == ["dog\n50 %", "a\n5.0 %"]
    assert mask_of(page).round(2).tolist() == [DIM] * 5 + [0]
    assert page.locator("#stage .region").count() == 1
    click_cell(page, 0, 0)
    assert sentence(page).startswith("Row 1, column 1 ← a 70 %; ")
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert sentence(page) == CLEARED


def test_a_region_shows_its_own_self_attention(open_page):
    plain = random_image_attention(grid=(2, 2))
    weights = np.array([[[[0.0, 0.0, 0.0, 1.0], [0.25] * 4, [0.25] * 4, [0.25] * 4]]])
    parts = tuple(replace(part, encoder=AttentionStack(weights, np.ones((1, 1, 4)))) for part in plain.recording.parts)
    page = open_page(image_page([replace(plain, recording=replace(plain.recording, parts=parts))]))
    page.click("#self")
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    assert "largest at row 2, column 2 (100 %); 0.0 % stays inside" in sentence(page)
    assert open_page(image_page([plain])).locator("#self").count() == 0


def test_dragging_selects_a_region(open_page):
    page = open_page(image_page([example()]))
    box = page.locator("#stage canvas").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 5)
    page.mouse.up()
    assert sentence(page).startswith("Rows 1 to 2, columns 1 to 2 ← a 85 %, dog 50 %; ")


def test_keyboard(open_page):
    page = open_page(image_page([example()]))
    page.locator("#page-language").focus()
    page.keyboard.press("Tab")
    assert sentence(page).startswith("a: ")
    page.keyboard.press("ArrowRight")
    assert sentence(page).startswith("dog: ")
    page.keyboard.press("Enter")
    assert word_button(page, 1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "stage"
    for key, region in [
        ("ArrowDown", "Row 1, column 1 "),
        ("ArrowRight", "Row 1, column 2 "),
        ("ArrowDown", "Row 2, column 2 "),
        ("Shift+ArrowRight", "Row 2, columns 2 to 3 "),
        ("ArrowRight", "Row 2, column 3 "),
        ("ArrowRight", "Row 2, column 3 "),
        ("Shift+ArrowUp", "Row 2, column 3 "),
    ]:
        page.keyboard.press(key)
        assert sentence(page).startswith(region), key
    page.keyboard.press("Escape")
    assert sentence(page) == CLEARED
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#raw").get_attribute("aria-pressed") == "true"


def test_raw_grid_shows_cells_and_numbers(open_page):
    page = open_page(image_page([example()]))
    word_button(page, 1).click()
    assert page.locator("#stage .share").count() == 0
    page.locator("#raw").click()
    assert page.locator("#stage .share").all_text_contents() == ["25", "25", "50"]
    assert page.locator("#stage .lines").count() == 1
    assert (
        page.locator("#stage").evaluate("e => getComputedStyle(e.querySelector('canvas')).imageRendering")
        == "pixelated"
    )
    page.locator("#raw").click()
    assert page.locator("#stage canvas").evaluate(SMOOTHING) == "auto"


def test_layer_and_head_can_be_selected(open_page):
    attention = random_image_attention(layers=2, heads=3)
    selected = SelectedMap(View(layer=1, head=2), 0.5, "a test", 3)
    attention = Attention(attention.recording, selected.view, selected)
    page = open_page(image_page([attention]))
    assert "a test" in page.inner_text("#description")
    assert abs(mask_of(page, "#tiles canvas", 1) - darkness(attention.tiles[1]).ravel()).max() < 0.01
    page.locator("[data-field=layer]").select_option("0")
    page.locator("[data-field=head]").select_option("")
    other = attention.layer(0)
    assert page.inner_text("#description") == other.description
    assert abs(mask_of(page, "#tiles canvas", 1) - darkness(other.tiles[1]).ravel()).max() < 0.01


def test_several_images_are_selected_by_their_thumbnails(open_page):
    attentions = [scene_attention(number) for number in range(3)]
    page = open_page(image_page(attentions, ["one.png", "둘.png", HOSTILE]))
    buttons = page.locator("#images button")
    assert buttons.all_inner_texts() == ["one.png", "둘.png", HOSTILE]
    buttons.nth(1).click()
    words = [label.text for label in attentions[1].row_labels if label.word is not None]
    assert page.locator("#caption .word").all_inner_texts() == words
    assert [button.get_attribute("aria-pressed") for button in buttons.all()] == ["false", "true", "false"]
    assert "둘.png" in sentence(page)
    click_cell(page, 3, 3, 8, 8)
    assert sentence(page).startswith("Row 4, column 4 ← ")


def test_image_keeps_its_shape_and_the_mask_covers_the_crop(open_page):
    wide = scene_attention(crop=Box(0.25, 0.0, 0.75, 0.5))
    page = open_page(image_page([wide]))
    photo, mask = (page.locator(f"#stage {kind}").bounding_box() for kind in ("img", "canvas"))
    assert photo["width"] == pytest.approx(photo["height"], rel=0.01)
    assert mask["x"] - photo["x"] == pytest.approx(photo["width"] / 4, abs=1.5)
    assert (mask["width"], mask["height"]) == pytest.approx((photo["width"] / 2, photo["height"] / 2), abs=1.5)
    assert "outside" in page.inner_text("#note")
    word_button(page, 0).click()
    assert page.locator("#stage .outside").count() == 1
    page.mouse.click(photo["x"] + 5, photo["y"] + 5)  # outside the crop
    page.mouse.move(0, 0)
    assert sentence(page) == CLEARED


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone(open_page, scheme):
    attentions = [scene_attention(number) for number in range(4)]
    page = open_page(
        image_page(attentions), viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator("#stage").bounding_box()
    assert box["width"] <= 360
    assert box["width"] == pytest.approx(box["height"], rel=0.02)
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert sentence(page).startswith("Row 5, column 5 ← ")
    word_button(page, 1).tap()
    assert "←" not in sentence(page)


def test_hostile_words_are_only_text(open_page):
    page = open_page(
        image_page(
            [random_image_attention([*HOSTILE.split(), "😀", "학교", EOS_MARK], (2, 2))], [HOSTILE], title=HOSTILE
        )
    )
    assert page.locator("#caption .word").all_inner_texts() == [*HOSTILE.split(), "😀", "학교"]
    assert page.inner_text("h1") == HOSTILE
    word_button(page, 0).click()
    page.locator("#as-text summary").click()
    page.locator("#as-text tbody tr").first.wait_for()  # the toggle event comes later
    assert page.locator("#as-text tbody tr").count() == len(HOSTILE.split()) + 2
    assert page.locator("img").count() == 0


def test_table_for_screen_readers(open_page):
    page = open_page(image_page([example(token_probs=[0.9, 0.25, 1.0])]))
    page.locator("#as-text summary").click()
    expect(page.locator("#as-text tbody tr").nth(1)).to_have_text(re.compile(r"^dog0\.25row 2, column 350 %1$"))


def test_empty_caption_is_reported(open_page):
    assert "empty" in sentence(open_page(image_page([random_image_attention([EOS_MARK], (2, 2))])))


def test_reading_rows_keep_the_probability_of_their_word(open_page):
    attention = example(token_probs=[0.9, 0.25, 1.0]).reading()
    page = open_page(image_page([attention]))
    word_button(page, 1).click()
    assert sentence(page).startswith("dog (probability 0.25)")
    assert abs(mask_of(page) - darkness(attention.tiles[1]).ravel()).max() < 0.01


def test_first_image_can_be_loaded_and_the_page_loads_nothing(tmp_path):
    attentions = [scene_attention(number) for number in range(2)]
    text = image_page(attentions)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    again = Attention.load(tmp_path / "page.html")
    assert again.recording.photo == attentions[0].recording.photo
    assert "default-src 'none'" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_page_of_many_images_has_no_self_attention(tmp_path):
    cross = scene_attention().recording
    whole = Attention(
        replace(cross, parts=(replace(cross.parts[0], encoder=square(64), decoder=square(len(cross.target.tokens))),)),
        View(),
    )
    for name, page in {"one": image_page([whole]), "two": image_page([whole, whole])}.items():
        (tmp_path / name).write_text(page, encoding="utf-8")
    one, two = (Attention.load(tmp_path / name) for name in ("one", "two"))
    assert (one.recording.kinds, two.recording.kinds) == (("cross", "encoder", "decoder"), ("cross",))
    assert np.allclose(one.tiles, two.tiles)
    rolled = replace(whole, view=View(measure="rollout"))
    assert "encoder" in without_self_attention(rolled).recording.kinds


def square(size):
    return random_stack(np.random.default_rng(0), size, size, 1, 1)


def test_maps_without_a_grid_are_rejected():
    for invalid in ([], [Attention.of(["a"], ["b"], [[1.0]])]):
        with pytest.raises(ValueError, match="image grid"):
            image_page(invalid)


def test_to_html_writes_the_image_page_for_a_grid(tmp_path):
    assert "imageNames" in example().to_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size > 10_000
    assert "imageNames" not in Attention.of(["a"], ["b"], [[1.0]]).to_html()
