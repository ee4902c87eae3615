"""Make a small Hugging Face MarianMTModel without a download: new weights, trained by softgaze, copied back.

    python -m benchmarks.marian_model new train.en.gz train.de.gz -o untrained
    softgaze import untrained -o start
    softgaze train --init start --train train.en.gz train.de.gz --dev val.en.gz val.de.gz --steps 2000 -o run \\
        --set training.learning_rate=2e-3 --set training.warmup=400    # the defaults are those of fine-tuning
    python -m benchmarks.marian_model fill untrained run -o marian

Needs transformers. `softgaze import marian` compares the copy with transformers.
"""

import argparse
import json
import shutil
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import load_file, save_file

from softgaze.data.corpus import read_lines
from softgaze.importers.huggingface import layer_names, read_model
from softgaze.runtime import need
from softgaze.special_tokens import BOS, PAD

VOCABULARY, WIDTH, LAYERS, HEADS = 4000, 128, 3, 4
EOS_ROW, WEIGHTS = 0, "model.safetensors"


def write_tokenizer(texts: list[str], output: Path) -> int:
    """Write one subword vocabulary for both languages as Marian's files; return its size, with padding at the end."""
    output.mkdir(parents=True, exist_ok=True)
    prefix = output / "joint"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(prefix), vocab_size=VOCABULARY, minloglevel=2
    )
    content = prefix.with_suffix(".model").read_bytes()
    pieces = sentencepiece.SentencePieceProcessor(model_proto=content)
    found = [name for name in map(pieces.id_to_piece, range(len(pieces))) if name not in ("<s>", "</s>", "<unk>")]
    names = ["</s>", "<unk>", *found, "<pad>"]
    for name in ("source.spm", "target.spm"):
        (output / name).write_bytes(content)
    (output / "vocab.json").write_text(json.dumps({name: row for row, name in enumerate(names)}), encoding="utf-8")
    settings = {"source_lang": "en", "target_lang": "de", "model_max_length": 512, "tokenizer_class": "MarianTokenizer"}
    (output / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    for suffix in (".model", ".vocab"):
        prefix.with_suffix(suffix).unlink()
    return len(names)


def write_new(files: list[Path], output: Path) -> None:
    need("transformers", "transformers")
    from transformers import MarianConfig, MarianMTModel

    size = write_tokenizer([line for path in files for line in read_lines(path)], output)
    torch.manual_seed(1)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 4 * WIDTH))
    }
    tokens = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1, "bos_token_id": 0, "eos_token_id": EOS_ROW}
    config = MarianConfig(
        vocab_size=size,
        d_model=WIDTH,
        dropout=0.0,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=512,
        init_std=WIDTH**-0.5,
        **sides,
        **tokens,
    )
    MarianMTModel(config).save_pretrained(output)


def fill(untrained: Path, run: Path, output: Path) -> None:
    """Copy the weights of a run that started from `untrained` into a copy of it."""
    shutil.copytree(untrained, output, dirs_exist_ok=True)
    order = read_model(untrained).source_order
    theirs, ours = load_file(output / WEIGHTS), load_file(run / WEIGHTS)
    copied = set()
    for side in ("encoder", "decoder"):
        for index in range(LAYERS):
            for name, their_name in layer_names(side).items():
                for kind in ("weight", "bias"):
                    own = f"{side}.{index}.{name}.{kind}"
                    theirs[f"model.{side}.layers.{index}.{their_name}.{kind}"] = ours[own].float().contiguous()
                    copied.add(own)
    embedding, bias = ours["source_embedding.weight"].float(), ours["output.bias"].float()
    for row, foreign in enumerate(order.rows):
        if row != PAD:  # the decoder starts from the row of padding: ours is that of BOS
            theirs["model.shared.weight"][foreign] = embedding[row]
            theirs["final_logits_bias"][0, foreign] = 0.0 if row == BOS else bias[row]
    copied |= {"source_embedding.weight", "output.bias"}
    left = {name for name in ours if name not in copied and "positions" not in name}
    if left:
        raise SystemExit(f"weights that the copy does not have: {', '.join(sorted(left))}")
    save_file(theirs, output / WEIGHTS, {"format": "pt"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("command", choices=("new", "fill"))
    parser.add_argument("paths", type=Path, nargs=2)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "new":
        write_new(given.paths, given.output)
    else:
        untrained, run = given.paths
        fill(untrained, run, given.output)


if __name__ == "__main__":
    main()
