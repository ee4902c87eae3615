"""Pretrained networks: frozen they are a way of reading, tuned they are a part of the model. Nothing is downloaded."""

import sys
from types import ModuleType, SimpleNamespace

import numpy
import pytest
import torch
from torch import nn

from softgaze.backbones import Shape, backbone, bright, shape_of, side_of, whole
from softgaze.data.images import write_image
from softgaze.data.readers import Pictures, Seen, load_reader, picture_reader
from softgaze.errors import DataError
from softgaze.models import Source, build

SMALL = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2, "dropout": 0.0}


def test_patches_make_the_picture_again():
    pixels = torch.arange(8 * 8 * 3).remainder(256).to(torch.uint8).view(8, 8, 3)
    patches = torch.from_numpy(Pictures(8, 2).patches(pixels.numpy()))
    assert torch.equal(whole(patches[None])[0], pixels.permute(2, 0, 1))
    assert bright(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="12 make no square"):
        side_of(12)


# --- EfficientNet -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "a.png"
    write_image(path, numpy.random.default_rng(1).integers(0, 256, (240, 300, 3), dtype=numpy.uint8))
    return str(path)


@pytest.fixture(scope="module")
def network():
    return backbone("efficientnet")


def test_frozen_features_are_what_the_network_sees(photo, network):
    reader = picture_reader("efficientnet", True, None)
    [items] = reader.encode([photo])
    assert numpy.asarray(items).shape == (49, 1280)
    assert numpy.asarray(items).dtype == numpy.float32
    pixels = torch.from_numpy(reader.picture(photo).pixels.copy()).permute(2, 0, 1)[None]
    with torch.no_grad():
        expected = network.eval().network.extract_features(pixels / 127.5 - 1)[0].flatten(1).T
    assert numpy.allclose(numpy.asarray(items), expected.numpy(), atol=1e-4)


def test_a_network_keeps_its_statistics_while_it_learns(network):
    buffers = {name: part.clone() for name, part in network.named_buffers()}
    network.train()
    network.of_patches(torch.randint(0, 256, (2, 4, 3 * 32**2), dtype=torch.uint8))
    assert not any(module.training for module in network.modules())
    assert all(torch.equal(part, buffers[name]) for name, part in network.named_buffers())


def test_a_tuned_network_is_a_part_of_the_model_and_a_frozen_one_is_not(photo):
    tuned = picture_reader("efficientnet", False, None)
    assert (type(tuned), tuned.settings()) == (Pictures, {"side": 224, "patch": 32})
    sides = {"target_vocabulary": 9, **SMALL}
    model = build("captioner", source_vocabulary=len(tuned), encoder="efficientnet", frozen=False, **sides)
    source = Source.of(tuned.encode([photo]))
    model(source, torch.tensor([[2, 5]])).sum().backward()
    learning = [name for name, part in model.named_parameters() if part.grad is not None and part.grad.any()]
    assert any("network" in name for name in learning)
    frozen = build("captioner", source_vocabulary=1280, encoder="efficientnet", frozen=True, **sides)
    assert not any("network" in name for name, _ in frozen.named_parameters())


# --- Hugging Face, by a stand-in --------------------------------------------------------------------------------


class Vision(nn.Module):
    """A vision Transformer's outside: a class token, then a vector for each patch."""

    config = SimpleNamespace(image_size=8, patch_size=4, hidden_size=3)

    def forward(self, pixel_values):
        patches = nn.functional.avg_pool2d(pixel_values, 4).flatten(2).transpose(1, 2)
        return SimpleNamespace(last_hidden_state=torch.cat([torch.full_like(patches[:, :1], 99.0), patches], 1))


@pytest.fixture
def hugging_face(tmp_path, monkeypatch):
    module, asked = ModuleType("transformers"), []

    def opener(found):
        def from_pretrained(path, **options):
            asked.append((path, options))
            return found

        return SimpleNamespace(from_pretrained=from_pretrained)

    module.AutoModel, module.AutoConfig = opener(Vision()), opener(Vision.config)
    module.__spec__ = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "transformers", module)
    return str(tmp_path), asked


def test_a_vision_transformer_is_read_from_its_directory(hugging_face):
    path, asked = hugging_face
    assert shape_of(path) == Shape(8, 4, 3)
    found = backbone(path).of_patches(torch.full((1, 4, 48), 255, dtype=torch.uint8))
    assert found.tolist() == [[[1.0] * 3] * 4]  # without the token of the class
    assert all(options["local_files_only"] for _, options in asked)
    assert asked[-1][1]["use_safetensors"]


def test_its_reader_comes_back_without_asking_the_network(hugging_face, tmp_path):
    path, asked = hugging_face
    reader = Seen.by(path)
    (tmp_path / reader.file).write_bytes(reader.model)
    asked.clear()
    assert len(load_reader(tmp_path / reader.file)) == 3
    assert not asked


def test_a_model_that_does_not_say_its_shape_is_refused(hugging_face, monkeypatch):
    monkeypatch.setattr(Vision, "config", SimpleNamespace(hidden_size=3))
    sys.modules["transformers"].AutoConfig = SimpleNamespace(from_pretrained=lambda path, **options: Vision.config)
    with pytest.raises(DataError, match="is it a vision Transformer"):
        shape_of(hugging_face[0])


def test_a_name_that_is_nothing_is_one_line():
    with pytest.raises(DataError, match="resnet: is neither an encoder we know") as caught:
        picture_reader("resnet", True, None)
    assert "\n" not in str(caught.value)
