import base64
from types import SimpleNamespace

import pytest

from serving import awaited
from softgaze.errors import DataError
from softgaze.search.settings import Search
from softgaze.serve.captions import Caption, picture_of, unnamed
from softgaze.serve.errors import Refused
from softgaze.translator import Translation


class Captioner:
    """Writes what is in the file; what is in no file of its own is another picture."""

    def __init__(self):
        self.paths = []

    def translate_block(self, paths, search):
        self.paths += paths
        for path in paths:
            with open(path, "rb") as file:
                content = file.read()
            if content == b"bad":
                raise DataError(f"{path}: not an image")
            yield Translation(path, content.decode(), -0.5, ())


@pytest.fixture
def work(tmp_path):
    captioner = Captioner()
    model = SimpleNamespace(ready_to_look=lambda: captioner, looks=True, translator=captioner)
    return Caption(model, Search(), False, tmp_path)


def test_each_picture_gets_its_caption_and_no_file_is_left(work):
    found = work.run([b"one", b"two", b"one"])
    assert [each["text"] for each in found] == ["one", "two", "one"]
    assert len({*work.model.translator.paths}) == 3
    assert [*work.directory.iterdir()] == []


def test_a_picture_that_is_none_is_refused_without_the_names_of_our_files(work):
    with pytest.raises(Refused, match=r"^the picture: not an image$"):
        work.run([b"bad"])
    assert [*work.directory.iterdir()] == []


def test_names_are_taken_out():
    assert unnamed("/a/b: is\nbad", ["/a/b"]) == "the picture: is bad"


def test_pictures_in_json():
    assert awaited(picture_of({"image": base64.b64encode(b"x").decode()})) == b"x"


@pytest.mark.parametrize(
    ("image", "error"), [(None, "missing image"), ("", "missing image"), ("!", "not base64"), (3, "missing image")]
)
def test_what_is_no_picture(image, error):
    with pytest.raises(Refused, match=error):
        awaited(picture_of({"image": image}))
