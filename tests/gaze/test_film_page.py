"""The page of a film, as a person uses it: the slider, the keys, play and pause, another head; and hostile words."""

import numpy
import pytest
from playwright.sync_api import expect

from bundles import make_bundle
from maps import random_recording
from softgaze.bundle import ATTENTION, add_facts
from softgaze.errors import DataError
from softgaze.gaze import Attention, Choice, View
from softgaze.gaze.film import NAME, Frame
from softgaze.gaze.film_page import film_page, page_of_run

HOSTILE = "</script><img src=x onerror=alert(1)> 😀"


def frames(count=4, text="개가 자요", view=None):
    """A film in which every frame looks elsewhere."""
    return [
        Frame(
            60 * number,
            number / 2,
            {"loss": 5.0 - number, "bleu": 10.0 * number} if number else {},
            f"{text} {number}",
            Attention(random_recording(seed=number), view or View(layer=1)),
        )
        for number in range(count)
    ]


def shown(page):
    return page.locator("#moment").inner_text()


def numbers(page):
    """The weights that are written into the heat map."""
    return page.locator("#heat text").all_text_contents()


def expected(frame, **view):
    weights = frame.attention.seen(**view).weights
    return [f"{weight:.2f}" for row in weights for weight in row if weight >= 0.1]


def test_it_opens_on_the_last_frame(open_page):
    film = frames()
    page = open_page(film_page(film))
    assert shown(page) == "step 180, 1.5 minutes"
    assert page.locator("#text").inner_text() == "개가 자요 3"
    assert page.locator("#text .new").all_inner_texts() == ["3"]
    assert page.locator("#source").inner_text() == " ".join(film[0].attention.recording.source.words)
    assert page.locator("#curve p").inner_text().split("\n")[0].startswith("dev loss 2.00")
    assert page.locator("#shows").inner_text() == film[3].attention.shows


def test_the_heat_map_is_that_of_the_moment(open_page):
    film = frames()
    page = open_page(film_page(film))
    for place in (3, 0, 2):
        page.locator("#slider").fill(str(place))
        assert shown(page).startswith(f"step {60 * place},")
        close(numbers(page), expected(film[place]))


def close(found, wanted):
    """Packed weights may round the other way."""
    assert len(found) == len(wanted)
    assert numpy.allclose([float(each) for each in found], [float(each) for each in wanted], atol=0.0101)


def test_keys_step_and_play(open_page):
    page = open_page(film_page(frames()))
    for key, moment in (("Home", 0), ("ArrowRight", 60), ("ArrowRight", 120), ("ArrowLeft", 60), ("End", 180)):
        page.keyboard.press(key)
        assert shown(page).startswith(f"step {moment},")
    page.keyboard.press("Space")  # from the end it begins again
    assert page.locator("#play").inner_text() == "Pause"
    expect(page.locator("#moment")).to_have_text("step 180, 1.5 minutes")
    expect(page.locator("#play")).to_have_text("Play")


def test_the_slider_and_the_button_work_by_keyboard(open_page):
    page = open_page(film_page(frames()))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "play"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert shown(page).startswith("step 120,")
    assert page.locator("#slider").get_attribute("aria-valuetext") == "step 120, 1.0 minutes"


def test_the_curve_leads_to_its_moment(open_page):
    page = open_page(film_page(frames()))
    box = page.locator("#curve svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 3 + 5, box["y"] + 20)
    assert shown(page).startswith("step 60,")


def test_another_head_of_all_frames(open_page):
    film = frames()
    page = open_page(film_page(film))
    page.locator("[data-field=layer]").select_option("2")
    page.locator("[data-field=head]").select_option("1")
    close(numbers(page), expected(film[3], layer=2, head=1))
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("Home")
    close(numbers(page), expected(film[0], layer=2, head=1))


@pytest.mark.parametrize("count", [1, 2])
def test_a_short_film(open_page, count):
    page = open_page(film_page(frames(count)))
    page.locator("#play").click()
    page.keyboard.press("ArrowRight")
    assert shown(page).startswith("step ")


def test_hostile_words_are_only_text(open_page):
    film = [
        Frame(0, 0.0, {}, HOSTILE, Attention.of([*HOSTILE.split(), "⏎"], ["x", "⏎"], numpy.full((2, 5), 0.2))),
        Frame(1, 0.1, {"loss": 1.0}, "", Attention.of([*HOSTILE.split(), "⏎"], ["x", "⏎"], numpy.full((2, 5), 0.2))),
    ]
    page = open_page(film_page(film))
    assert page.locator("#text").inner_text() == "nothing"
    page.keyboard.press("Home")
    assert page.locator("#text").inner_text() == HOSTILE
    assert page.locator("img").count() == 0


def test_it_fits_a_telephone(open_page):
    page = open_page(film_page(frames()), viewport={"width": 360, "height": 740}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_no_frames_is_said():
    with pytest.raises(DataError, match="no frame yet"):
        film_page([])


def test_a_run_is_seen_the_way_that_was_measured(tmp_path):
    run = make_bundle(tmp_path / "run")
    (run / NAME).write_text("".join(f"{frame.to_line()}\n" for frame in frames()), encoding="utf-8")
    assert '"choice":null' in page_of_run(run)
    add_facts(run, {ATTENTION: Choice(View(layer=2, head=0), 0.5, "a test", 3).to_dict()})
    assert "chosen by a test: 0.50 on 3 sentences" in page_of_run(run)


@pytest.mark.parametrize("count", [1, 3])
def test_the_curve_has_a_dot_for_each_validation(open_page, count):
    page = open_page(film_page(frames(count + 1)[1:]))
    for name in ("loss", "bleu"):
        assert page.locator(f"#curve .dot.{name}").get_attribute("d").count("M") == count
