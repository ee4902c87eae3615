"""Every option of the Transformer, briefly trained, exported to CTranslate2 and compared with torch.

    python -m benchmarks.parity            quick: hardly trained, to check that it works
    python -m benchmarks.parity --full     the table that is kept, parity.md

Each option gets its own small model, trained on the built-in phrasebook until it ends its sentences. The table shows,
on held-out pairs and for every precision: the largest difference of any token's log-probability, the number of equal
greedy translations, and BLEU at beam 5 with the larger p-value of paired bootstrap and approximate randomisation.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import circumstances
from benchmarks.training import HERE, OUT_HELP, WORK, settled

WIDTH = {"width": 64, "feed_forward_width": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
OPTIONS: dict[str, dict[str, Any]] = {
    "pre-norm, LayerNorm, ReLU, sinusoidal, tied": {},
    "post-norm": {"residual": "post"},
    "RMSNorm": {"norm": "rms"},
    "RMSNorm, post-norm": {"norm": "rms", "residual": "post"},
    "GELU": {"feed_forward": "gelu"},
    "SwiGLU": {"feed_forward": "swiglu"},
    "learned positions": {"positions": "learned", "max_length": 128},
    "rotary positions": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "2 key heads of 4": {"key_heads": 2},
    "1 key head of 4, rotary": {"key_heads": 1, "positions": "rotary"},
    "only the output tied": {"tie": "output"},
    "nothing tied": {"tie": "none"},
}
PRECISIONS = ("float32", "int8")
BATCH = 48

Pairs = Sequence[tuple[str, str]]


def main() -> None:
    given = arguments()
    WORK.mkdir(exist_ok=True)
    rows = ["| option | " + " | ".join(f"{each}: log-prob, same, BLEU (p)" for each in PRECISIONS) + " |"]
    rows.append("|---|" + "---|" * len(PRECISIONS))
    print(*rows, sep="\n", flush=True)
    train, held_out = pairs_of(given.pairs, given.held_out)
    about = f"{len(held_out)} held-out pairs, {given.steps} updates. {circumstances('parity')}"
    for name, options in OPTIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(name, Path(folder), train, held_out, options, given.steps))
        print(rows[-1], flush=True)
        page = ["# Exported Transformers are the same models", "", about, "", *rows, ""]
        given.out.write_text("\n".join(page), encoding="utf-8")


QUICK_FORM = {"out": WORK / "parity.md", "steps": 20, "pairs": 400, "held_out": 20}
FULL_FORM = {"out": HERE / "parity.md", "steps": 400, "pairs": 4000, "held_out": 200}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="400 updates on 4,000 pairs, compared on 200")
    parser.add_argument("--steps", type=int, help="updates of each model")
    parser.add_argument("--pairs", type=int, help="sentence pairs they learn from")
    parser.add_argument("--held-out", type=int, help="sentence pairs they are compared on")
    parser.add_argument("--out", type=Path, help=OUT_HELP)
    return settled(parser.parse_args(), QUICK_FORM, FULL_FORM)


def pairs_of(count: int, held_out: int) -> tuple[Pairs, Pairs]:
    """Return training and held-out pairs of the built-in corpus."""
    from softgaze.data.corpora.phrasebook import load

    train, dev = ([(pair.source, pair.target) for pair in load(split, count)] for split in ("train", "dev"))
    return train, dev[:held_out]


def row(name: str, folder: Path, train: Pairs, held_out: Pairs, options: dict[str, Any], steps: int) -> str:
    """Return the table row of one option."""
    from softgaze.bundle import Bundle
    from softgaze.engines.export import export
    from softgaze.evaluation.export_parity import measure_parity
    from softgaze.translator import load

    bundle = Bundle.open(trained(folder / "trained", train, options, steps))
    before, cells = load(bundle.path, "cpu"), []
    for precision in PRECISIONS:
        (folder / precision).mkdir()
        export(bundle, before.model, folder / precision, "ctranslate2", precision, None)
        proof = measure_parity(
            before, load(folder / precision, "cpu", explain_with_torch=False), held_out, quantized=True
        )
        found = proof.quality
        assert found is not None
        same = f"{proof.same} of {proof.sentences}" + (f" + {proof.near} near" if proof.near else "")
        bleu = f"{found.after - found.before:+.2f} from {found.before:.1f} (p {found.p_value:.2f})"
        cells.append(f"{proof.max_log_prob_difference:.1e}, {same}, {bleu}")
    return f"| {name} | {' | '.join(cells)} |"


def trained(path: Path, pairs: Pairs, options: dict[str, Any], steps: int) -> Path:
    """Save the bundle of a briefly trained model."""
    import torch

    from softgaze.bundle import Description, Tokenizers, save_bundle
    from softgaze.data.tokenizer import train_tokenizer

    torch.manual_seed(1)
    both = train_tokenizer([text for pair in pairs for text in pair])
    tokenizers = Tokenizers(both, both)
    about = Description("transformer", "tiny", {**WIDTH, **options}, "en", "ko", 100)
    model = about.build(tokenizers)
    learn(model, [both.encode(list(pair)) for pair in pairs], steps)
    save_bundle(path, model, about, tokenizers, None, {})
    return path


def learn(model: Any, pairs: Sequence[Sequence[list[int]]], steps: int) -> None:
    import torch

    from softgaze.models import Source
    from softgaze.special_tokens import BOS, EOS, PAD

    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    model.train()
    for step in range(steps):
        batch = [pairs[(step * BATCH + each) % len(pairs)] for each in range(BATCH)]
        longest = max(len(target) for _, target in batch) + 1
        target = torch.tensor([[BOS, *ids, EOS] + [PAD] * (longest - len(ids)) for _, ids in batch])
        logits = model(Source.of([[*ids, EOS] for ids, _ in batch]), target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    model.eval()


if __name__ == "__main__":
    main()
