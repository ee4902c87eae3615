"""One hue, the darker the more, on which numbers can always be read."""

from itertools import pairwise

from softgaze.gaze.colours import BLACK, FAINT, GOLD, HUE, INK, LINE, WHITE, contrast, ink_on, luminance, shade
from softgaze.gaze.shell import asset

STEPS = [step / 100 for step in range(101)]


def test_more_weight_is_darker_also_in_grey():
    assert all(luminance(shade(one)) > luminance(shade(other)) for one, other in pairwise(STEPS))
    assert shade(0) == WHITE


def test_numbers_can_be_read_on_every_shade():
    assert min(contrast(ink_on(step), shade(step)) for step in STEPS) >= 4.5


def test_contrast_is_known_at_its_ends():
    assert contrast(BLACK, WHITE) == contrast(WHITE, BLACK) == 21
    assert contrast(GOLD, GOLD) == 1


def test_pictures_have_the_colours_of_the_pages():
    light = asset("style.css").split("@media")[0]
    assert f"--hue: {' '.join(map(str, HUE))};" in light
    for name, colour in (("ink", INK), ("faint", FAINT), ("line", LINE), ("gold", GOLD)):
        assert f"--{name}: {colour};" in light
