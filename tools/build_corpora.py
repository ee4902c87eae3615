"""Write the corpora that the package ships: `python -m tools.build_corpora`."""

import io
import lzma
import tarfile
from pathlib import Path

import numpy as np

import softgaze.data.corpora
from softgaze.data.corpora.phrasebook import LENGTH_SEED, PAIRS, SEEDS
from softgaze.data.corpora.scenes import LANGUAGES, SHAPES, pack_geometry
from tools import phrasebook, scenes

SCENE_SEED = 1
CORPORA = Path(softgaze.data.corpora.__file__).parent

# Test sets of equal size per length range: the ranges of English words, and sentences per range.
LENGTH_SETS = {
    "by_length": ([range(start, start + 8) for start in range(1, 40, 8)], 100),
    "beyond": ([range(start, start + 10) for start in range(41, 80, 10)], 50),
}


def main() -> None:
    """Write every shipped file and print its size."""
    contents = {f"phrasebook-{seed}.tar.xz": lzma.compress(phrasebook_tar(seed), preset=9) for seed in SEEDS}
    contents["scenes.npz"] = scenes_npz()
    for name, content in contents.items():
        (CORPORA / name).write_bytes(content)
        print(f"{CORPORA / name}  {len(content):,} bytes")


def phrasebook_tar(seed: int) -> bytes:
    """Pack SPLIT.en, SPLIT.ko and SPLIT.gold of every split; similar files are neighbours, for compression."""
    book = phrasebook.generate(PAIRS, seed)
    splits = {split: list(getattr(book, split)) for split in phrasebook.SPLITS}
    if seed == LENGTH_SEED:
        for name, (ranges, count) in LENGTH_SETS.items():
            splits[name] = [
                one for lengths in ranges for one in phrasebook.generate_with_lengths(book.train, lengths, count, seed)
            ]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for column, attribute in (("en", "source"), ("ko", "target"), ("gold", "gold")):
            for split, sentences in splits.items():
                text = "".join(f"{getattr(sentence, attribute)}\n" for sentence in sentences).encode()
                member = tarfile.TarInfo(f"{split}.{column}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


def scenes_npz() -> bytes:
    """Pack the settings and captions of all scenes."""
    corpus = scenes.generate_all(SCENE_SEED)
    objects = [item for scene in corpus for item in scene.objects]
    palette = [colour.rgb for colour in scenes.COLOURS]
    arrays = {
        "counts": np.array([len(scene.objects) for scene in corpus], np.uint8),
        "backgrounds": np.array([scene.background for scene in corpus], np.uint8),
        "palette": np.array(palette, np.uint8),
        "kinds": np.array([(list(SHAPES).index(item.shape), palette.index(item.rgb)) for item in objects], np.uint8),
        "geometry": pack_geometry(np.array([item[2:] for item in objects])),
    }
    for language in LANGUAGES:
        text = "\n".join(scene.captions[language] for scene in corpus)
        arrays[language] = np.frombuffer(text.encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
