"""The page of an attention history: slider, keys, play and pause, another head; hostile words."""

import numpy as np
import pytest
from playwright.sync_api import expect

from bundles import make_bundle
from maps import random_recording
from softgaze.bundle import ATTENTION, add_facts
from softgaze.errors import DataError
from softgaze.explain import Attention, SelectedMap, View
from softgaze.explain.render.pages import history_page, run_history_page
from softgaze.explain.serialization import HISTORY_FILE, Snapshot

HOSTILE = "</script><img src=x onerror=alert(1)> 😀"


def make_snapshots(count=4, text="개가 자요", view=None):
    return [
        Snapshot(
            60 * index,
            index / 2,
            {"loss": 5.0 - index, "bleu": 10.0 * index} if index else {},
            f"{text} {index}",
            Attention(random_recording(seed=index), view or View(layer=1)),
        )
        for index in range(count)
    ]


def shown(page):
    return page.locator("#moment").inner_text()


def numbers(page):
    """The numbers in the heat map."""
    return page.locator("#heat text").all_text_contents()


def expected(snapshot, **view):
    weights = snapshot.attention.with_view(**view).weights
    return [f"{weight:.2f}" for row in weights for weight in row if weight >= 0.1]


def test_opens_with_the_last_snapshot(open_page):
    snapshots = make_snapshots()
    page = open_page(history_page(snapshots))
    assert shown(page) == "step 180, 1.5 minutes"
    assert page.locator("#text").inner_text() == "개가 자요 3"
    assert page.locator("#text .new").all_inner_texts() == ["3"]
    assert page.locator("#source").inner_text() == " ".join(snapshots[0].attention.recording.source.words)
    assert page.locator("#chart p").inner_text().split("\n")[0].startswith("dev loss 2.00")
    assert page.locator("#description").inner_text() == snapshots[3].attention.description


def test_heat_map_follows_the_slider(open_page):
    snapshots = make_snapshots()
    page = open_page(history_page(snapshots))
    for index in (3, 0, 2):
        page.locator("#slider").fill(str(index))
        assert shown(page).startswith(f"step {60 * index},")
        close(numbers(page), expected(snapshots[index]))


def close(numbers, wanted):
    """Compare numbers; packed weights may round differently."""
    assert len(numbers) == len(wanted)
    assert np.allclose([float(text) for text in numbers], [float(text) for text in wanted], atol=0.0101)


def test_keys_step_and_play(open_page):
    page = open_page(history_page(make_snapshots()))
    for key, moment in (("Home", 0), ("ArrowRight", 60), ("ArrowRight", 120), ("ArrowLeft", 60), ("End", 180)):
        page.keyboard.press(key)
        assert shown(page).startswith(f"step {moment},")
    page.keyboard.press("Space")  # restarts at the end
    assert page.locator("#play").inner_text() == "Pause"
    expect(page.locator("#moment")).to_have_text("step 180, 1.5 minutes")
    expect(page.locator("#play")).to_have_text("Play")


def test_slider_and_button_work_by_keyboard(open_page):
    page = open_page(history_page(make_snapshots()))
    page.locator("#page-language").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "play"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert shown(page).startswith("step 120,")
    assert page.locator("#slider").get_attribute("aria-valuetext") == "step 120, 1.0 minutes"


def test_click_on_the_chart_selects_a_snapshot(open_page):
    page = open_page(history_page(make_snapshots()))
    box = page.locator("#chart svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 3 + 5, box["y"] + 20)
    assert shown(page).startswith("step 60,")


def test_selected_head_applies_to_all_snapshots(open_page):
    snapshots = make_snapshots()
    page = open_page(history_page(snapshots))
    page.locator("[data-field=layer]").select_option("2")
    page.locator("[data-field=head]").select_option("1")
    close(numbers(page), expected(snapshots[3], layer=2, head=1))
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("Home")
    close(numbers(page), expected(snapshots[0], layer=2, head=1))


@pytest.mark.parametrize("count", [1, 2])
def test_short_history(open_page, count):
    page = open_page(history_page(make_snapshots(count)))
    page.locator("#play").click()
    page.keyboard.press("ArrowRight")
    assert shown(page).startswith("step ")


def test_hostile_words_are_only_text(open_page):
    snapshots = [
        Snapshot(0, 0.0, {}, HOSTILE, Attention.of([*HOSTILE.split(), "⏎"], ["x", "⏎"], np.full((2, 5), 0.2))),
        Snapshot(1, 0.1, {"loss": 1.0}, "", Attention.of([*HOSTILE.split(), "⏎"], ["x", "⏎"], np.full((2, 5), 0.2))),
    ]
    page = open_page(history_page(snapshots))
    assert page.locator("#text .faint").count() == 1
    page.keyboard.press("Home")
    assert page.locator("#text").inner_text() == HOSTILE
    assert page.locator("img").count() == 0


def test_fits_a_phone(open_page):
    page = open_page(history_page(make_snapshots()), viewport={"width": 360, "height": 740}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_empty_history_is_rejected():
    with pytest.raises(DataError, match="no snapshot yet"):
        history_page([])


def test_run_page_uses_the_selected_map(tmp_path):
    run = make_bundle(tmp_path / "run")
    (run / HISTORY_FILE).write_text(
        "".join(f"{snapshot.to_line()}\n" for snapshot in make_snapshots()), encoding="utf-8"
    )
    assert '"selected":null' in run_history_page(run)
    add_facts(run, {ATTENTION: SelectedMap(View(layer=2, head=0), 0.5, "a test", 3).to_dict()})
    assert "a test: 0.50 on 3 sentences" in run_history_page(run)


@pytest.mark.parametrize("count", [1, 3])
def test_chart_has_a_dot_for_each_validation(open_page, count):
    page = open_page(history_page(make_snapshots(count + 1)[1:]))
    for name in ("loss", "bleu"):
        assert page.locator(f"#chart .dot.{name}").get_attribute("d").count("M") == count
