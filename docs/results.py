"""Write docs/results.md and the tables of other pages from the recorded result files.

    python -m docs.results

A table stands between `<!-- NAME -->` and `<!-- end of NAME -->`; `TABLES` lists the pages and names.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from docs import reference

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/results.md"
RECIPES = {
    "multi30k-en-de": ("Multi30k, English–German", "29,000 pairs, 1,000 test sentences"),
    "multi30k-en-de-augmented": (
        "Multi30k, English–German, with machine translations of it",
        "29,000 pairs and translations of either side by four models, 1,000 test sentences",
    ),
    "libreoffice-en-ko": ("LibreOffice, English–Korean", "14,558 pairs, 141 test sentences"),
}
CONTENDERS = {
    "softgaze": "softgaze",
    "torch": "softgaze, torch",
    "default": "softgaze by default, text to text",
    "float32": "softgaze, CTranslate2 float32",
    "int8": "softgaze, CTranslate2 int8",
    "direct-float32": "CTranslate2 float32, direct",
    "direct-int8": "CTranslate2 int8, direct",
    "joeynmt": "JoeyNMT",
    "sockeye": "Sockeye",
    "opennmt_py": "OpenNMT-py",
    "eole": "eole",
    "marian": "Hugging Face Marian",
    "torch_transformer": "plain nn.Transformer",
}


def page() -> str:
    """Return the page about results."""
    texts = [
        "# Results",
        "Made by `python -m docs.results` from the result files of the repository; every number is the current one. "
        "The linked pages have signatures, commands, machines and ranges.",
    ]
    for name, (title, size) in RECIPES.items():
        texts += [f"## {title}", quality(name, size)]
    texts += ["## Training speed", training_speed(), "## Decoding speed", decoding_speed()]
    texts += ["## Start from corpus statistics", starts(), "## Translation over Ray", over_ray()]
    return "\n\n".join(texts) + "\n"


NUMBER = re.compile(r"[−+]?[\d.,]+( [%M])?( [(/].*)?|–|not measured")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns of numbers are aligned to the right."""
    first, _, *rest = reference.table(header, rows).splitlines()
    rule = ["---:" if all(map(NUMBER.fullmatch, column)) else "---" for column in zip(*rows, strict=True)]
    return "\n".join([first, f"| {' | '.join(rule)} |", *rest])


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]


def quality(recipe: str, size: str) -> str:
    """Return the scores of a recipe with their 95 % confidence intervals."""
    results = json.loads((ROOT / f"recipes/{recipe}/results.json").read_text(encoding="utf-8"))
    rows = []
    for name, result in results.items():
        scores = result["lengths"]["confidence_intervals"]["scores"][name]
        ranges = [
            f"{scores[key]['score']:.2f} ({scores[key]['low']:.2f}–{scores[key]['high']:.2f})"
            for key in ("bleu", "chrf")
        ]
        facts = result["training"]
        rows.append((f"`{name}`", *ranges, f"{facts['parameters']:,}", f"{facts['step']:,}", f"{facts['minutes']:.0f}"))
    header = ("model", "BLEU (95 % confidence interval)", "chrF", "parameters", "best after updates", "minutes")
    about = f"{size}; one thread of a shared machine, so minutes do not compare speed."
    return f"{table(header, rows)}\n\n{about} [Recipe](../recipes/{recipe}/README.md)."


def medians(records: Iterable[dict[str, Any]], group: str, value: str) -> dict[str, dict[str, float]]:
    """Return {group: {contender: median of its rounds}}."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        found.setdefault(record[group], {}).setdefault(record["contender"], []).append(record[value])
    return {name: {each: median(values) for each, values in rows.items()} for name, rows in found.items()}


def speed_table(groups: dict[str, dict[str, float]], digits: int) -> str:
    names = [name for name in CONTENDERS if any(name in rows for rows in groups.values())]
    cells = [
        [f"{groups[group][name]:,.{digits}f}" if name in groups[group] else "–" for group in groups] for name in names
    ]
    return table(("", *groups), [(CONTENDERS[name], *row) for name, row in zip(names, cells, strict=True)])


def training_speed() -> str:
    groups = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")
    about = "Target tokens per second, median of the rounds, Multi30k, 2 CPU cores."
    return f"{speed_table(groups, 0)}\n\n{about} [Ranges and versions](../benchmarks/results.md)."


def decoding_medians() -> dict[str, dict[str, float]]:
    """Return the sentences per second of Transformer-tiny by setting and contender."""
    records = [
        each for each in lines("benchmarks/decoding.jsonl") if each["case"].startswith("transformer tiny, pre-norm")
    ]
    return medians(records, "setting", "sentences_per_second")


def decoding_speed() -> str:
    groups = decoding_medians()
    about = (
        "Sentences per second, median of the rounds, Transformer-tiny with the same weights for all, Multi30k, "
        "2 CPU cores. [Ranges and versions](../benchmarks/decoding.md)."
    )
    return f"{speed_table(groups, 1)}\n\n{about}"


def starts() -> str:
    records = json.loads((ROOT / "benchmarks/learning-starts.json").read_text(encoding="utf-8"))
    keys = ("corpus", "arch", "updates", "seed", "start")
    rows = [
        (*(str(record[key]) for key in keys), f"{record['loss']:.2f}", f"{record['bleu']:.1f}") for record in records
    ]
    header = ("corpus", "arch", "updates", "seed", "first weights", "validation loss", "validation BLEU")
    return f"{table(header, rows)}\n\nOne line per run. [How it works](warm-start.md)."


def over_ray() -> str:
    record = json.loads((ROOT / "benchmarks/over_ray.json").read_text(encoding="utf-8"))
    rows = [(name, f"{median(rates):.0f}") for name, rates in record["rates"].items()]
    about = f"{record['lines']:,} lines on one machine with 2 cores; the output is the same. [Scale](scale.md)."
    return f"{table(('', 'lines per second'), rows)}\n\n{about}"


# --- tables of other pages --------------------------------------------------------------------------------------


def filled(page: Path) -> str:
    """Return a page with its recorded tables."""
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES[page.relative_to(PAGES).as_posix()].items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = before + start + make() + "\n" + end + rest.split(end)[1]
    return text


def recorded_rows(path: str) -> list[dict[str, str]]:
    """Return the rows of the first table of a recorded Markdown page, by column."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / path).read_text(encoding="utf-8").partition("\n|")[2].partition("\n\n")[0].splitlines()
    ]
    header, _, *body = rows
    return [dict(zip(header, row, strict=True)) for row in body]


def recorded_table(path: str) -> str:
    rows = recorded_rows(path)
    return table([*rows[0]], [[*row.values()] for row in rows])


def starts_table() -> str:
    return recorded_table("benchmarks/learning-starts.md")


def quickstart_table() -> str:
    return recorded_table("benchmarks/learning-quickstart.md")


def long_table() -> str:
    return recorded_table("benchmarks/learning-long.md")


def budgets_table() -> str:
    return recorded_table("benchmarks/learning-budgets.md")


def fine_tuning() -> str:
    """Return the scores before and after fine-tuning, with and without mixed-in text."""
    runs = json.loads((ROOT / "benchmarks/fine-tuning.json").read_text(encoding="utf-8"))["runs"]
    rows = []
    for text in ("test", "general"):
        for key, metric in (("bleu", "BLEU"), ("chrf", "chrF")):
            row = [f"{text}, {metric}"]
            for name, result in runs.items():
                scores = result[text]["confidence_intervals"]["scores"]
                row += [f"{scores['before'][key]['score']:.1f}"] if name == "without --mix" else []
                tested = result[text]["against"][0]["difference"][key]
                p = max(tested["bootstrap_p"], tested["randomisation_p"])
                row += [f"{scores['after'][key]['score']:.1f}", f"{p:.4f}" if p < 0.005 else f"{p:.2f}"]
            rows.append(row)
    return table(("text, metric", "before", "without `--mix`", "p", "with `--mix`", "p"), rows)


def planted() -> str:
    """Return how well planted insertions and omissions are found."""
    found = {row[""]: row for row in recorded_rows("benchmarks/planted.md")}
    corpora = ("Multi30k en–de", "Tatoeba en–fr")
    rows = []
    titles = {
        "insertions": "inserted output words",
        "omissions": "omitted source words",
        "omissions, with a word aligner": "omitted source words, with a word aligner",
    }
    for kind, title in titles.items():
        cells = [" / ".join(found[f"{each}, {kind}"][key] for each in corpora) for key in ("precision", "recall")]
        rows.append((f"{title}, Multi30k / Tatoeba", *cells))
    return table(("", "flagged words that were planted", "planted words that were flagged"), rows)


def reliability() -> str:
    """Return the stated and the measured share of right links."""
    titles = {
        "phrasebook en–ko, long": "phrasebook en–ko, long sentences",
        "Tatoeba en–fr on Hansards": "Tatoeba en–fr model on Hansards (another domain)",
        "LibreOffice help en–fr, Eflomal's links": "Tatoeba en–fr model on LibreOffice help (Eflomal's links)",
    }
    rows = [
        (titles.get(row[""], row[""]), row["right"], row["stated"], row["error"])
        for row in recorded_rows("benchmarks/reliability.md")
    ]
    return table(("test set with alignments", "right links", "stated", "calibration error"), rows)


def beam_speeds() -> str:
    """Return sentences per second at beam 5, in batches and one by one."""
    groups = decoding_medians()
    settings = ("beam 5, all at once", "beam 5, one by one")
    names = ("default", "torch", "float32", "int8", "eole", "marian", "joeynmt")
    rows = [
        (CONTENDERS[name], *(f"{groups[each][name]:.0f}" if name in groups[each] else "–" for each in settings))
        for name in names
    ]
    return table(("", "sentences/s", "one by one"), rows)


def sizes() -> str:
    """Return pairs, settings, minutes and BLEU of every recorded run."""
    rows = []
    for recipe, (title, size) in RECIPES.items():
        results = json.loads((ROOT / f"recipes/{recipe}/results.json").read_text(encoding="utf-8"))
        if "augmented" in yaml.safe_load((ROOT / f"recipes/{recipe}/recipe.yaml").read_text(encoding="utf-8")):
            continue  # its text is not that of the corpus alone
        for name, result in results.items():
            facts = result["training"]
            model = yaml.safe_load((ROOT / f"recipes/{recipe}/{name}.yaml").read_text(encoding="utf-8"))["model"]
            options = [f" --set model.options.{key}={value}".lower() for key, value in model.get("options", {}).items()]
            settings = f"`--arch {model['arch']}{''.join(options)}`, best after {facts['step']:,} updates"
            rows.append(
                (size.partition(" ")[0], title, settings, f"{facts['minutes']:.0f}", f"{result['bleu']:.1f}", "test")
            )
    pairs = {
        "Multi30k en-de": "29,000",
        "LibreOffice en-ko": "14,558",
        "Tatoeba en-fr": "163,948",
        "phrasebook en-ko, quickstart model": "20,000",
    }
    for record in json.loads((ROOT / "benchmarks/learning-starts.json").read_text(encoding="utf-8")):
        if (
            record["start"] == "statistics"
            and record["seed"] == 1
            and record["bleu"] > 10
            and record["corpus"] in pairs
        ):
            settings = f"`--arch {record['arch']}`, {record['updates']:,} updates"
            minutes = f"{record['cpu_seconds'] / 60:.1f}"
            rows.append(
                (pairs[record["corpus"]], record["corpus"], settings, minutes, f"{record['bleu']:.1f}", "validation")
            )
    rows.sort(key=lambda row: (int(row[0].replace(",", "")), float(row[3])))
    return table(("pairs", "corpus", "settings", "minutes", "BLEU", "measured on"), rows)


def speeds() -> str:
    """Return the parameters of each size, and its recorded training speed."""
    import torch

    from softgaze.models import build_model

    groups = medians(lines("benchmarks/results.jsonl"), "case", "tokens_per_second")
    rows = []
    for arch, size in [("transformer", each) for each in ("tiny", "small", "base", "big")] + [("rnn-luong", "tiny")]:
        with torch.device("meta"):
            model = build_model(arch, size, source_vocabulary=8_000)
        case = f"{arch} {size}" if arch == "transformer" else arch
        speed = f"{groups[case]['softgaze']:,.0f}" if case in groups else "not measured"
        rows.append(
            (f"`{arch}`", f"`{size}`", f"{sum(each.numel() for each in model.parameters()) / 1e6:.1f} M", speed)
        )
    return table(("arch", "size", "parameters", "target tokens/s"), rows)


PAGES = ROOT / "docs"
TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "howto/choose-arch-and-size.md": {"sizes": sizes, "speeds": speeds},
    "howto/fine-tune.md": {"effect": fine_tuning},
    "howto/find-dropped-words.md": {"planted": planted},
    "attention-maps.md": {"reliability": reliability},
    "warm-start.md": {
        "starts": starts_table,
        "budgets": budgets_table,
        "long": long_table,
        "quickstart": quickstart_table,
    },
    "engines.md": {"speeds": beam_speeds},
}


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    for name in TABLES:
        (PAGES / name).write_text(filled(PAGES / name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
