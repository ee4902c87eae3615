"""One hue, the darker the more, on which numbers can always be read."""

import math
import re
from itertools import combinations, pairwise

import numpy
import pytest

from softgaze.gaze.colours import BLACK, FAINT, GOLD, HUE, INK, LINE, SERIES, WHITE, contrast, ink_on, luminance, shade
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


# Linear RGB as people see it who lack one kind of cone (Machado, Oliveira & Fernandes 2009).
EYES = {
    "all": numpy.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]]  # white is (1, 1, 1)


def seen(colour, eye):
    """The colour's place in CIELAB, where 1 is about the least difference that is seen."""
    shares = numpy.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = numpy.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    x, y, z = numpy.cbrt(TO_XYZ @ (EYES[eye] @ linear).clip(0, 1))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def dark_series():
    return re.findall(r"--series: (#\w+);", asset("evaluation.css"))


@pytest.mark.parametrize("eye", EYES)
def test_any_eye_tells_the_lines_of_a_chart_apart(eye):
    for colours in (SERIES, dark_series()):
        apart = [math.dist(seen(one, eye), seen(other, eye)) for one, other in combinations(colours, 2)]
        assert min(apart) > 20


def test_names_of_lines_can_be_read_on_light_and_on_dark():
    dark = re.search(r"--paper: (#\w+);", asset("style.css").split("@media")[1])[1]
    assert min(contrast(colour, WHITE) for colour in SERIES) >= 4.5
    assert min(contrast(colour, dark) for colour in dark_series()) >= 4.5
    assert len(dark_series()) == len(SERIES)
