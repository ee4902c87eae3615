"""Pretrained networks: frozen they are a way of reading, tuned they are a part of the model. Nothing is downloaded."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import softgaze
from albums import SMALL as SMALL_ALBUM
from albums import small, write_pictures
from errors import one_line_error
from softgaze.data.captions import CaptionCorpus
from softgaze.data.images import write_image
from softgaze.data.processors import ImageProcessor, image_processor_for, load_processor
from softgaze.errors import DataError, ResourceError
from softgaze.models import Source, build_model
from softgaze.models.backbones import (
    BackboneShape,
    backbone,
    backbone_shape,
    grid_size,
    image_from_patches,
    normalize_bytes,
)
from softgaze.training.train import train

SMALL = {"width": 16, "layers": 1, "encoder_layers": 1, "heads": 2, "dropout": 0.0}


def test_patches_make_the_picture_again():
    pixels = torch.arange(8 * 8 * 3).remainder(256).to(torch.uint8).view(8, 8, 3)
    patches = torch.from_numpy(ImageProcessor(8, 2).patches(pixels.numpy()))
    assert torch.equal(image_from_patches(patches[None])[0], pixels.permute(2, 0, 1))
    assert normalize_bytes(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="square grid of patches, got 12"):
        grid_size(12)


# --- EfficientNet -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photo") / "a.png"
    write_image(path, np.random.default_rng(1).integers(0, 256, (240, 300, 3), dtype=np.uint8))
    return str(path)


@pytest.fixture(scope="module")
def network():
    return backbone("efficientnet")


def test_frozen_features_are_what_the_network_sees(photo, network):
    reader = image_processor_for("efficientnet", True, None)
    [items] = reader.encode([photo])
    assert np.asarray(items).shape == (49, 1280)
    assert np.asarray(items).dtype == np.float32
    pixels = torch.from_numpy(reader.load(photo).pixels.copy()).permute(2, 0, 1)[None]
    with torch.no_grad():
        expected = network.eval().network.extract_features(pixels / 127.5 - 1)[0].flatten(1).T
    assert np.allclose(np.asarray(items), expected.numpy(), atol=1e-4)


def test_a_network_keeps_its_statistics_while_it_learns(network):
    buffers = {name: part.clone() for name, part in network.named_buffers()}
    network.train()
    network.encode_patches(torch.randint(0, 256, (2, 4, 3 * 32**2), dtype=torch.uint8))
    assert not any(module.training for module in network.modules())
    assert all(torch.equal(part, buffers[name]) for name, part in network.named_buffers())


def test_a_tuned_network_is_a_part_of_the_model_and_a_frozen_one_is_not(photo):
    tuned = image_processor_for("efficientnet", False, None)
    assert (type(tuned), tuned.settings()) == (ImageProcessor, {"side": 224, "patch": 32})
    sides = {"target_vocabulary": 9, **SMALL}
    model = build_model("captioner", source_vocabulary=len(tuned), encoder="efficientnet", frozen=False, **sides)
    source = Source.of(tuned.encode([photo]))
    model(source, torch.tensor([[2, 5]])).sum().backward()
    learning = [name for name, part in model.named_parameters() if part.grad is not None and part.grad.any()]
    assert any("network" in name for name in learning)
    frozen = build_model("captioner", source_vocabulary=1280, encoder="efficientnet", frozen=True, **sides)
    assert not any("network" in name for name, _ in frozen.named_parameters())


# --- Hugging Face -----------------------------------------------------------------------------------------------

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
VISION = {**SIZES, "image_size": 16, "patch_size": 4}
TEXT = {**SIZES, "vocab_size": 9, "max_position_embeddings": 4, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def vision(kind: str):
    """A real network with random weights."""
    import transformers

    torch.manual_seed(1)
    settings = {"text_config": TEXT, "vision_config": VISION} if kind == "CLIP" else VISION
    return getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**settings)).eval()


@pytest.fixture(scope="module", params=["ViT", "Dinov2", "CLIP"])
def hugging_face(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    network = vision(request.param)
    network.save_pretrained(place)
    return str(place), getattr(network, "vision_model", network)


@torch.no_grad()
def test_a_vision_transformer_is_read_from_its_directory(hugging_face):
    path, network = hugging_face
    assert backbone_shape(path) == BackboneShape(16, 4, 8)
    patches = torch.randint(0, 256, (2, 16, 48), dtype=torch.uint8)
    states = network(pixel_values=image_from_patches(normalize_bytes(patches))).last_hidden_state
    assert torch.equal(backbone(path).encode_patches(patches), states[:, 1:])  # without the token of the class


@torch.no_grad()
def test_it_sees_colours_as_it_was_trained_to(hugging_face, tmp_path):
    path, network = hugging_face
    shutil.copytree(path, tmp_path / "copy")
    means = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}
    (tmp_path / "copy" / "preprocessor_config.json").write_text(json.dumps(means))
    patches = torch.randint(0, 256, (2, 16, 48), dtype=torch.uint8)
    mean, deviation = (torch.tensor(each)[:, None, None] for each in means.values())
    states = network(pixel_values=(image_from_patches(patches) / 255 - mean) / deviation).last_hidden_state
    torch.testing.assert_close(backbone(str(tmp_path / "copy")).encode_patches(patches), states[:, 1:])


@pytest.mark.parametrize("said", ["no JSON", "[]", "{}", '{"image_mean": 1, "image_std": 1}'])
def test_settings_of_colours_that_cannot_be_read_are_one_line(tmp_path, said):
    vision("ViT").save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(said)
    with one_line_error(DataError, "has no image_mean and image_std"):
        backbone(str(tmp_path))


def test_weights_are_never_read_from_a_pickle(tmp_path):
    network = vision("ViT")
    network.config.save_pretrained(tmp_path)
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    with one_line_error(DataError, "cannot be read as a Hugging Face model"):
        backbone(str(tmp_path))


def test_its_reader_comes_back_without_reading_the_network(tmp_path):
    vision("ViT").save_pretrained(tmp_path / "network")
    reader = image_processor_for(str(tmp_path / "network"), frozen=True, side=None)
    (tmp_path / reader.file).write_bytes(reader.model)
    shutil.rmtree(tmp_path / "network")
    assert len(load_processor(tmp_path / reader.file)) == 8


def test_a_captioner_learns_from_what_it_sees(tmp_path):
    """From pictures to captions, frozen and tuned."""
    vision("ViT").save_pretrained(tmp_path / "network")
    for frozen in (True, False):
        options = {"encoder": str(tmp_path / "network"), "frozen": frozen}
        reader = image_processor_for(options["encoder"], frozen, None)
        folder = tmp_path / f"frozen-{frozen}"
        album = CaptionCorpus.of(folder / "images", write_pictures(folder, 6), reader, lambda error: None)
        train(small(model={"options": {**SMALL_ALBUM, **options}}), album, None, folder / "run")
        found = softgaze.load(folder / "run").translate(str(folder / "images" / "000.png"), max_length=4)
        assert found.attention is None or found.attention.grid == (4, 4)


def test_models_that_are_no_vision_transformers_are_rejected(tmp_path):
    import transformers

    transformers.BertConfig().save_pretrained(tmp_path)
    with one_line_error(DataError, "expected a vision Transformer"):
        backbone_shape(str(tmp_path))
    with one_line_error(DataError, "resnet: expected an encoder"):
        image_processor_for("resnet", True, None)


# --- timm -------------------------------------------------------------------------------------------------------


def test_a_torchvision_of_another_torch_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text('raise RuntimeError("operator torchvision::nms\\ndoes not exist")')
    (tmp_path / "network").mkdir()
    (tmp_path / "network/config.json").write_text(json.dumps({"architecture": "resnet18"}))
    monkeypatch.syspath_prepend(tmp_path)
    with one_line_error(ResourceError, "torchvision built for torch", "nms does not exist"):
        backbone(str(tmp_path / "network"))


FAKE_TIMM = """
import torch
from torch import nn

class Network(nn.Module):
    num_features, num_prefix_tokens = 6, 1
    def __init__(self, layout):
        super().__init__()
        self.layout, self.conv = layout, nn.Conv2d(3, 6, 8, stride=8)
    def forward_features(self, images):
        grid = self.conv(images)
        if self.layout == "channels_last":
            return grid.permute(0, 2, 3, 1)
        tokens = grid.flatten(2).transpose(1, 2)
        return torch.cat([tokens[:, :1], tokens], 1) if self.layout == "tokens" else grid

def create_model(name, pretrained, num_classes):
    assert not pretrained and num_classes == 0
    return Network(name)
"""


@pytest.mark.parametrize("layout", ["grid", "channels_last", "tokens"])
def test_a_timm_directory_gives_one_vector_per_patch(tmp_path, monkeypatch, layout):
    """With a module in the place of timm, which cannot be imported beside every torch."""
    (tmp_path / "timm.py").write_text(FAKE_TIMM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    place = tmp_path / layout
    place.mkdir()
    conv = torch.nn.Conv2d(3, 6, 8, stride=8)
    save_file({f"conv.{name}": part.detach() for name, part in conv.named_parameters()}, place / "model.safetensors")
    facts = {"input_size": [3, 32, 32], "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3]}
    (place / "config.json").write_text(json.dumps({"architecture": layout, "pretrained_cfg": facts}))
    network = backbone(str(place))
    assert network.shape == BackboneShape(32, 8, 6)
    patches = torch.randint(0, 256, (2, 16, 3 * 64), dtype=torch.uint8)
    mean, deviation = (torch.tensor(facts[name])[:, None, None] for name in ("mean", "std"))
    with torch.no_grad():
        expected = conv((image_from_patches(patches) / 255 - mean) / deviation).flatten(2).transpose(1, 2)
        torch.testing.assert_close(network.encode_patches(patches), expected)
    monkeypatch.delitem(sys.modules, "timm")
