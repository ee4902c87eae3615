"""The page of photos as a person uses it: words show where they looked, regions who looked there; mouse and keys."""

import re
from dataclasses import replace

import numpy
import pytest
from playwright.sync_api import expect

from maps import random_stack
from pictures import looking_at_scene, random_tiles
from softgaze.data.boxes import Box
from softgaze.gaze import Attention, Choice, View
from softgaze.gaze.photo_page import lighter, photo_page
from softgaze.gaze.tiles import DIM, darkness
from softgaze.gaze.words import END_MARK

HOSTILE = "</script><img src=x onerror=alert(1)>"
WEIGHTS = [
    [0.7, 0.1, 0.1, 0.0, 0.05, 0.05],
    [0.0, 0.0, 0.0, 0.25, 0.25, 0.5],
    [1 / 6] * 6,
]


def example(**options):
    """“a dog” over two rows of three cells."""
    return Attention.of(None, ["a", "dog", END_MARK], WEIGHTS, grid=(2, 3), **options)


def said(page):
    return page.inner_text("#sentence")


def word(page, number):
    return page.locator("#caption .word").nth(number)


def click_cell(page, row, column, rows=2, columns=3):
    box = page.locator("#stage canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows)


# A copy is read, since a browser complains of a canvas that is read again and again.
READ = """mask => {
  const [width, height] = [mask.width / DOTS, mask.height / DOTS];
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.imageSmoothingEnabled = false;
  copy.drawImage(mask, 0, 0, width, height);
  return Array.from(copy.getImageData(0, 0, width, height).data).filter((_, place) => place % 4 === 3);
}"""
SMOOTHING = "mask => getComputedStyle(mask).imageRendering"


def dots(page, selector="#stage canvas", number=0):
    """How dark each cell is, from 0 to 1."""
    return numpy.array(page.locator(selector).nth(number).evaluate(READ)) / 255


def test_it_opens_on_the_photo_as_it_is_with_a_tile_for_each_word(open_page):
    attention = looking_at_scene()
    page = open_page(photo_page([attention], ["scene.png"]))
    words = [label.text for label in attention.row_labels if label.word is not None]
    assert page.locator("#caption .word").all_inner_texts() == words
    assert said(page) == "Written of scene.png."
    assert (dots(page) == 0).all()
    assert page.locator("#tiles .tile").count() == len(words)
    for number, tile in enumerate(attention.tiles[: len(words)]):
        assert abs(dots(page, "#tiles canvas", number) - darkness(tile).ravel()).max() < 0.01
    labels = page.locator("#tiles .tile").first.inner_text()
    assert f"p {attention.probabilities[0]:.2f}" in labels
    assert page.inner_text("#shows") == attention.shows
    assert page.locator("#photos").is_hidden()


def test_a_word_shows_where_it_looked(open_page):
    page = open_page(photo_page([example(chances=[0.9, 0.25, 1.0])]))
    word(page, 1).click()
    assert (
        said(page)
        == "dog (probability 0.25) looked most at row 2, column 3 (50 %); half of its look lies in 1 of 6 cells"
    )
    assert abs(dots(page) - darkness(numpy.array(WEIGHTS[1]))).max() < 0.01
    assert word(page, 1).get_attribute("aria-pressed") == "true"
    word(page, 1).click()  # once more lets go
    page.mouse.move(0, 0)
    assert (dots(page) == 0).all()
    page.locator("#tiles .tile").nth(0).click()
    assert said(page).startswith("a (probability 0.90) looked most at row 1, column 1 (70 %)")


def test_a_region_shows_which_words_looked_there(open_page):
    page = open_page(photo_page([example()]))
    click_cell(page, 1, 2)
    assert said(page) == "Row 2, column 3 ← dog 50 %, a 5.0 %; an even look has 17 % there"
    assert page.locator("#words li").all_inner_texts() == ["dog\n50 %", "a\n5.0 %"]
    assert dots(page).round(2).tolist() == [DIM] * 5 + [0]
    assert page.locator("#stage .region").count() == 1
    click_cell(page, 0, 0)
    assert said(page).startswith("Row 1, column 1 ← a 70 %; an even look")
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert said(page) == "Written of this photo."


def test_a_box_drawn_with_the_mouse_is_a_region(open_page):
    page = open_page(photo_page([example()]))
    box = page.locator("#stage canvas").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 5)
    page.mouse.up()
    assert said(page) == "Rows 1 to 2, columns 1 to 2 ← a 85 %, dog 50 %; an even look has 67 % there"


def test_everything_can_be_done_by_keyboard(open_page):
    page = open_page(photo_page([example()]))
    page.keyboard.press("Tab")
    assert said(page).startswith("a looked most at row 1, column 1")
    page.keyboard.press("ArrowRight")
    assert said(page).startswith("dog looked most at row 2, column 3")
    page.keyboard.press("Enter")
    assert word(page, 1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "stage"
    for key, place in [
        ("ArrowDown", "Row 1, column 1 "),
        ("ArrowRight", "Row 1, column 2 "),
        ("ArrowDown", "Row 2, column 2 "),
        ("Shift+ArrowRight", "Row 2, columns 2 to 3 "),
        ("ArrowRight", "Row 2, column 3 "),
        ("ArrowRight", "Row 2, column 3 "),
        ("Shift+ArrowUp", "Row 2, column 3 "),
    ]:
        page.keyboard.press(key)
        assert said(page).startswith(place), key
    page.keyboard.press("Escape")
    assert said(page) == "Written of this photo."
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#raw").get_attribute("aria-pressed") == "true"


def test_the_raw_grid_shows_cells_and_numbers(open_page):
    page = open_page(photo_page([example()]))
    word(page, 1).click()
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


def test_layers_and_heads_can_be_chosen(open_page):
    attention = random_tiles(layers=2, heads=3)
    choice = Choice(View(layer=1, head=2), 0.5, "a test", 3)
    chosen = Attention(attention.recording, choice.view, choice)
    page = open_page(photo_page([chosen]))
    assert "chosen by a test" in page.inner_text("#shows")
    assert abs(dots(page, "#tiles canvas", 1) - darkness(chosen.tiles[1]).ravel()).max() < 0.01
    page.locator("[data-field=layer]").select_option("0")
    page.locator("[data-field=head]").select_option("")
    other = chosen.layer(0)
    assert page.inner_text("#shows") == other.shows
    assert abs(dots(page, "#tiles canvas", 1) - darkness(other.tiles[1]).ravel()).max() < 0.01


def test_one_look_offers_no_choice(open_page):
    assert open_page(photo_page([example()])).locator("select").count() == 0


def test_several_photos_are_chosen_by_their_small_pictures(open_page):
    shots = [looking_at_scene(number) for number in range(3)]
    page = open_page(photo_page(shots, ["one.png", "둘.png", HOSTILE]))
    buttons = page.locator("#photos button")
    assert buttons.all_inner_texts() == ["one.png", "둘.png", HOSTILE]
    buttons.nth(1).click()
    words = [label.text for label in shots[1].row_labels if label.word is not None]
    assert page.locator("#caption .word").all_inner_texts() == words
    assert [each.get_attribute("aria-pressed") for each in buttons.all()] == ["false", "true", "false"]
    assert said(page) == "Written of 둘.png."
    click_cell(page, 3, 3, 8, 8)
    assert said(page).startswith("Row 4, column 4 ← ")


def test_the_photo_keeps_its_shape_and_the_mask_lies_on_what_was_seen(open_page):
    wide = looking_at_scene(crop=Box(0.25, 0.0, 0.75, 0.5))
    page = open_page(photo_page([wide]))
    photo, mask = (page.locator(f"#stage {kind}").bounding_box() for kind in ("img", "canvas"))
    assert photo["width"] == pytest.approx(photo["height"], rel=0.01)
    assert mask["x"] - photo["x"] == pytest.approx(photo["width"] / 4, abs=1.5)
    assert (mask["width"], mask["height"]) == pytest.approx((photo["width"] / 2, photo["height"] / 2), abs=1.5)
    assert "saw nothing" in page.inner_text("#how")
    word(page, 0).click()
    assert page.locator("#stage .outside").count() == 1
    page.mouse.click(photo["x"] + 5, photo["y"] + 5)  # outside of what was seen
    page.mouse.move(0, 0)
    assert said(page) == "Written of this photo."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone(open_page, scheme):
    shots = [looking_at_scene(number) for number in range(4)]
    page = open_page(photo_page(shots), viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator("#stage").bounding_box()
    assert box["width"] <= 360
    assert box["width"] == pytest.approx(box["height"], rel=0.02)
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert said(page).startswith("Row 5, column 5 ← ")
    word(page, 1).tap()
    assert "looked most at row" in said(page)


def test_hostile_words_are_only_text(open_page):
    page = open_page(
        photo_page([random_tiles([*HOSTILE.split(), "😀", "학교", END_MARK], (2, 2))], [HOSTILE], title=HOSTILE)
    )
    assert page.locator("#caption .word").all_inner_texts() == [*HOSTILE.split(), "😀", "학교"]
    assert page.inner_text("h1") == HOSTILE
    word(page, 0).click()
    page.locator("#as-text summary").click()
    page.locator("#as-text tbody tr").first.wait_for()  # it is written when the browser tells that it was opened
    assert page.locator("#as-text tbody tr").count() == len(HOSTILE.split()) + 2
    assert page.locator("img").count() == 0


def test_the_same_as_text(open_page):
    page = open_page(photo_page([example(chances=[0.9, 0.25, 1.0])]))
    page.locator("#as-text summary").click()
    expect(page.locator("#as-text tbody tr").nth(1)).to_have_text(re.compile(r"^dog0\.25row 2, column 350 %1$"))


def test_nothing_written_is_said(open_page):
    page = open_page(photo_page([random_tiles([END_MARK], (2, 2))]))
    assert said(page) == "Nothing was written, so no word looked at anything."


def test_rows_that_mean_reading_keep_the_probability_of_their_word(open_page):
    attention = example(chances=[0.9, 0.25, 1.0]).reading()
    page = open_page(photo_page([attention]))
    word(page, 1).click()
    assert said(page).startswith("dog (probability 0.25) looked most at")
    assert abs(dots(page) - darkness(attention.tiles[1]).ravel()).max() < 0.01


def test_the_first_photo_is_read_again_and_nothing_is_loaded(tmp_path):
    shots = [looking_at_scene(number) for number in range(2)]
    text = photo_page(shots)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    again = Attention.load(tmp_path / "page.html")
    assert again.recording.photo == shots[0].recording.photo
    assert "default-src 'none'" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_page_of_many_is_lighter_and_shows_the_same(tmp_path):
    cross = looking_at_scene().recording
    whole = Attention(
        replace(cross, parts=(replace(cross.parts[0], encoder=square(64), decoder=square(len(cross.target.pieces))),)),
        View(),
    )
    for name, page in {"one": photo_page([whole]), "two": photo_page([whole, whole])}.items():
        (tmp_path / name).write_text(page, encoding="utf-8")
    one, two = (Attention.load(tmp_path / name) for name in ("one", "two"))
    assert (one.recording.kinds, two.recording.kinds) == (("cross", "encoder", "decoder"), ("cross",))
    assert numpy.allclose(one.tiles, two.tiles)
    rolled = replace(whole, view=View(measure="rollout"))
    assert "encoder" in lighter(rolled).recording.kinds


def square(size):
    return random_stack(numpy.random.default_rng(0), size, size, 1, 1)


def test_what_lies_on_no_grid_is_refused():
    for attentions in ([], [Attention.of(["a"], ["b"], [[1.0]])]):
        with pytest.raises(ValueError, match="lie on grids"):
            photo_page(attentions)


def test_an_attention_makes_the_page_that_suits_it(tmp_path):
    assert "softgaze-photos" in example().to_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size > 10_000
    assert "softgaze-photos" not in Attention.of(["a"], ["b"], [[1.0]]).to_html()
