"""The shipped files are what the generators write."""

import io
import lzma

import numpy as np
import pytest

from softgaze.data.corpora import scenes
from softgaze.data.corpora.phrasebook import SEEDS
from tools.build_corpora import CORPORA, SCENE_SEED, phrasebook_tar, scenes_npz
from tools.scenes import generate


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shipped_phrasebook_is_regenerated(seed):
    # The archives are compared, not the compressed bytes: these depend on the version of liblzma.
    assert lzma.decompress((CORPORA / f"phrasebook-{seed}.tar.xz").read_bytes()) == phrasebook_tar(seed)


def test_the_shipped_scenes_are_regenerated():
    with np.load(CORPORA / "scenes.npz") as shipped, np.load(io.BytesIO(scenes_npz())) as regenerated:
        assert set(shipped) == set(regenerated)
        for name in shipped:
            assert np.array_equal(shipped[name], regenerated[name]), name


def test_rounded_geometry_draws_the_same_pixels():
    for split in scenes.SPLITS:
        shipped = scenes.load(split)[:300]
        for one, exact in zip(shipped, generate(split, len(shipped), SCENE_SEED), strict=True):
            drawing, expected = scenes.draw(one), scenes.draw(exact)
            assert np.array_equal(drawing.pixels, expected.pixels)
            assert drawing.boxes == expected.boxes
            assert one.captions == exact.captions
