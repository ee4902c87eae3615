"""`softgaze settings`: every setting of a training run, with its type, defaults and meaning."""

from collections.abc import Collection, Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import typer

from softgaze.cli import _options as opt
from softgaze.cli._output import print_json

NOT_SET = "not set"
BOUNDS = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


class Setting(NamedTuple):
    """One setting. `defaults` holds a value per arch and size; None: not set, or chosen from the data."""

    name: str
    type: str
    meaning: str
    defaults: dict[str, dict[str, Any]]


def settings(
    arch: Annotated[opt.ArchName | None, opt.argument(f"{', '.join(get_args(opt.ArchName))}.", "ARCH", "all")] = None,
    as_json: opt.Json = False,
) -> None:
    """List every setting of a training run.

    softgaze settings transformer
    softgaze train --set training.clip=5 --set model.options.dropout=0.3 ...

    Name, type, meaning and default of each setting, for one ARCH or all.
    Defaults that depend on the size are listed for each size. Give settings
    to softgaze train with --set NAME=VALUE or in a YAML file (--config).
    """
    from softgaze.runtime import need

    need("torch", "softgaze[train]")
    from softgaze.models import MODELS

    rows = list(all_settings([arch] if arch else list(MODELS)))
    if as_json:
        print_json([row._asdict() for row in rows])
    else:
        typer.echo("\n\n".join(map(setting_text, rows)))


def all_settings(archs: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings of all sections, then the options of the architectures."""
    from softgaze.config import Config
    from softgaze.models import MODELS, model_options

    defaults = {arch: {size: default_values(arch, size) for size in MODELS[arch].sizes} for arch in archs}

    def defaults_of(name: str, archs: Sequence[str]) -> dict[str, dict[str, Any]]:
        return {arch: {size: values.get(name) for size, values in defaults[arch].items()} for arch in archs}

    for section, group in Config.model_fields.items():
        for key, field in group.annotation.model_fields.items():  # type: ignore[union-attr]
            if (section, key) != ("model", "options"):
                name = f"{section}.{key}"
                limits = [
                    text.format(f"{getattr(constraint, bound):g}")
                    for constraint in field.metadata
                    for bound, text in BOUNDS.items()
                    if hasattr(constraint, bound)
                ]
                type_name = ", ".join([type_text(field.annotation), *limits])
                yield Setting(name, type_name, field.description or "", defaults_of(name, archs))
    parameters = {arch: model_options(MODELS[arch]) for arch in archs}
    for option in sorted({name for known in parameters.values() for name in known}):
        users = [arch for arch in archs if option in parameters[arch]]
        choices = option_choices().get(option)
        type_name = "|".join(choices) if choices else type_text(parameters[users[0]][option].annotation)
        name = f"model.options.{option}"
        yield Setting(name, type_name, OPTION_HELP[option], defaults_of(name, users))


def default_values(arch: str, size: str) -> dict[str, Any]:
    """Return the value of every setting of a run for which only arch and size are given, by full name."""
    from softgaze.config import ModelSettings, parse_config, resolve
    from softgaze.models import MODELS, model_options

    sections = resolve(parse_config({"model": {"arch": arch, "size": size}})).model_dump()
    given = {**MODELS[arch].sizes[size], **sections["model"]["options"]}
    sections["model"] = ModelSettings().model_dump(exclude={"options"})
    options = {name: given.get(name, option.default) for name, option in model_options(MODELS[arch]).items()}
    values = {f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()}
    return values | {f"model.options.{name}": value for name, value in options.items()}


def type_text(annotation: Any) -> str:
    """Return a type as users write its values: int, true|false, bleu|chrf|loss."""
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(type_text(part) for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    return {bool: "true|false", str: "text"}.get(annotation, getattr(annotation, "__name__", str(annotation)))


def setting_text(setting: Setting) -> str:
    lines = [f"{setting.name}  ({setting.type})", f"    {setting.meaning}"]
    if setting.name.startswith("model.options."):
        lines += [f"    of: {', '.join(setting.defaults)}"]
    if text := default_text(setting.defaults):
        lines += [f"    default: {text}"]
    return "\n".join(lines)


def default_text(defaults: dict[str, dict[str, Any]]) -> str:
    """Return one value, or values by size, or either by arch; empty if nothing is set."""
    texts: dict[str, list[str]] = {}  # defaults -> architectures that share them
    for arch, sizes in defaults.items():
        values = {size: value_text(value) for size, value in sizes.items()}
        same = len(set(values.values())) == 1
        text = next(iter(values.values())) if same else ", ".join(f"{size} {value}" for size, value in values.items())
        texts.setdefault(text, []).append(arch)
    if len(texts) == 1:
        return next(iter(texts)).removeprefix(NOT_SET)
    return "; ".join(f"{', '.join(archs)}: {text}" for text, archs in texts.items())


def value_text(value: Any) -> str:
    """Return a value as YAML and `--set` accept it."""
    if value is None:
        return NOT_SET
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- options of the model classes; a test compares them with the classes

OPTION_HELP = {
    "attention_dropout": "Dropout of the attention weights.",
    "cell": "Recurrent cell.",
    "decoder": "Decoder that writes the caption.",
    "decoder_layers": "Number of decoder layers.",
    "decoder_self": "Layer over the target: self-attention, or a recurrent SSRU (Kim 2019).",
    "dilation": "Factor by which the dilation grows from layer to layer.",
    "dropout": "Dropout probability.",
    "embedding_norm": "Normalize the embeddings.",
    "encoder": "Image encoder: cnn, patches, frames (of --features), efficientnet, or a Hugging Face directory.",
    "encoder_layers": "Number of encoder layers. If not set: as many as layers.",
    "feed_forward": "Activation of the feed-forward layer.",
    "feed_forward_width": "Inner width of the feed-forward layer (d_ff).",
    "frozen": "Keep the weights of a pretrained image encoder fixed.",
    "heads": "Number of attention heads.",
    "input_feeding": "Also feed the attentional state of the previous step to the decoder (Luong 2015, section 3.3).",
    "kernel": "Kernel size of the convolutions, in tokens.",
    "key_heads": "Number of key and value heads, shared by groups of query heads. Default: as many as heads.",
    "layers": "Number of layers.",
    "max_length": "Number of learned positions.",
    "norm": "Normalization layer.",
    "norm_eps": "Epsilon of the normalization. Default: that of the norm.",
    "output_bias": "Bias of the output layer.",
    "pooling": "mean: give the decoder the mean of all regions, without attention; none: attend to them.",
    "positions": "Position encoding.",
    "residual": "Normalize before (pre) or after (post) each residual connection.",
    "scale_embeddings": "Multiply embeddings by the square root of the width.",
    "score": "Attention score function.",
    "self_attention": "Add self-attention layers among the regions of a pretrained image encoder.",
    "shortcut": "Add the source embeddings to the encoder output.",
    "tie": "Embedding matrices that share their weights.",
    "width": "Width of the hidden vectors (d_model).",
    "window": "Source positions that a step attends to.",
    "window_size": "Positions on each side of a local attention window. If not set: global attention.",
}


def option_choices() -> dict[str, Collection[str]]:
    """Return the choices of the options of the model classes."""
    from softgaze.models.captioner import DECODERS
    from softgaze.models.embeddings import TIES
    from softgaze.models.rnn import CELLS
    from softgaze.models.transformer import FEED_FORWARDS, NORMS, RESIDUALS
    from softgaze.positions import POSITIONS
    from softgaze.scores import SCORES, WINDOWS

    return {
        "cell": CELLS,
        "decoder": DECODERS,
        "decoder_self": ("attention", "ssru"),
        "feed_forward": FEED_FORWARDS,
        "norm": NORMS,
        "pooling": ("none", "mean"),
        "positions": POSITIONS,
        "residual": RESIDUALS,
        "score": SCORES,
        "tie": TIES,
        "window": WINDOWS,
    }
