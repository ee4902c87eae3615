"""Put what was measured wherever a document asks for it, so that no figure is ever typed in.

    python -m recipes.tables

A document asks with a pair of comments, such as `<!-- results: multi30k-en-de -->` and `<!-- end of results -->`. Three
things can be asked for: `results`, the scores of all models; `lengths`, quality against sentence length as picture and
table; `differences`, each model against the recipe's baseline with p-values. What is not in results.json yet is said to
be missing.
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from softgaze.evaluation.chart import length_chart
from softgaze.evaluation.lengths import Curve, Point
from softgaze.evaluation.report import cells
from softgaze.evaluation.significance import Difference, Estimate

HERE = Path(__file__).parent
ROOT = HERE.parent
ASKED = re.compile(
    r"(<!-- (?P<what>results|lengths|differences): (?P<recipe>[\w-]+) -->\n).*?(<!-- end of (?P=what) -->)", re.DOTALL
)
BELOW_ZERO = re.compile(r"(?<!\w)-(?=\d)")
WORDS = {
    "en": {
        "missing": "Not measured yet.",
        "results": ("model", "parameters", "minutes", "BLEU", "BLEU, lower-cased", "chrF"),
        "words": "BLEU, lower-cased, words by {name}",
        "made": "{date}, commit {commit}, {machine}",
        "signatures": "Signatures",
        "picture": "BLEU of each model against the length of the source sentence, with 95 % bands",
        "lengths": ("words", "sentences"),
        "all": "all",
        "note": "BLEU; in brackets how much more than `{baseline}`, bold where paired bootstrap and approximate "
        "randomisation both have p < 0.05.",
    },
    "ko": {
        "missing": "아직 재지 않았어요.",
        "results": ("모델", "매개변수", "학습 시간(분)", "BLEU", "BLEU, 대소문자 무시", "chrF"),
        "words": "BLEU, 대소문자 무시, {name} 단어",
        "made": "{date}, 커밋 {commit}, {machine}",
        "signatures": "sacreBLEU 서명",
        "picture": "원문 길이에 따른 모델별 BLEU와 95% 구간",
        "lengths": ("단어 수", "문장 수"),
        "all": "전체",
        "note": "표의 수는 BLEU이고, 괄호 안은 `{baseline}`과의 차이예요. 짝지은 부트스트랩과 근사 무작위화에서 모두"
        " p < 0.05인 차이는 굵게 썼어요.",
    },
}
Results = dict[str, dict[str, Any]]
Words = dict[str, Any]


def read(recipe: str) -> Results:
    """What is known of a recipe's models, in its own order; nothing if it was not run."""
    path = HERE / recipe / "results.json"
    found: Results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    models = yaml.safe_load((HERE / recipe / "recipe.yaml").read_text(encoding="utf-8"))["models"]
    return {model: found[model] for model in models if model in found}


def baseline(results: Results) -> str | None:
    """The model that the others were compared with, if they were."""
    names = {each["name"] for found in results.values() for each in found.get("lengths", {}).get("against", ())}
    return min((name for name in names if "lengths" in results.get(name, {})), default=None)


def rows(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table; all but its first column on the right, and what is below zero with a minus sign."""
    head = [*header]
    signed = [[BELOW_ZERO.sub("−", cell) for cell in line] for line in lines]
    return (
        "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---", *["---:"] * (len(head) - 1)], *signed]) + "\n"
    )


# --- what can be asked for --------------------------------------------------------------------------------------


def scores(results: Results, words: Words) -> str:
    """All models of a recipe, with what makes the scores comparable."""
    cut = {found["words"]["name"] for found in results.values() if "words" in found}  # one name, where there is any
    lines = [
        (
            f"`{model}`",
            f"{found['training']['parameters']:,}",
            f"{found['training']['minutes']:.0f}",
            *(f"{score:.2f}" for score in (found["bleu"], found["lower_cased"]["bleu"], found["chrf"])),
            *(f"{found['words']['bleu']:.2f}" if "words" in found else "–" for _ in cut),
        )
        for model, found in results.items()
    ]
    signatures = {f"`{signature}`" for found in results.values() for signature in every_signature(found)}
    made = {words["made"].format(**{**found, "commit": str(found["commit"])[:7]}) for found in results.values()}
    table = rows([*words["results"], *(words["words"].format(name=name) for name in cut)], lines)
    return f"{table}\n{'; '.join(sorted(made))}. {words['signatures']}: {', '.join(sorted(signatures))}.\n"


def every_signature(found: dict[str, Any]) -> list[str]:
    """Of each score that is shown."""
    own = (found["signatures"]["bleu"], found["lower_cased"]["signature"], found["signatures"]["chrf"])
    return [*own, *([found["words"]["signature"]] if "words" in found else [])]


def by_length(results: Results, words: Words, picture: str) -> str:
    """The picture of a recipe, and its numbers."""
    name = baseline(results)
    known = {model: found["lengths"] for model, found in results.items() if "lengths" in found}
    buckets = known[str(name)]["by_length"]
    lines = [
        (label(each), f"{each['sentences']:,}", *(length_cell(model, own, number) for model, own in known.items()))
        for number, each in enumerate(buckets)
    ]
    total = f"{sum(each['sentences'] for each in buckets):,}"
    lines.append((words["all"], total, *(length_cell(model, own, None) for model, own in known.items())))
    table = rows([*words["lengths"], *(f"`{model}`" for model in known)], lines)
    note = words["note"].format(baseline=name)
    return f"![{words['picture']}]({picture})\n\n{table}\n{note} `{signature(known)}`\n"


def label(bucket: dict[str, Any]) -> str:
    """Its lengths."""
    return f"{bucket['low']}–{bucket['high']}" if bucket["high"] > bucket["low"] else f"{bucket['low']}"


def length_cell(model: str, lengths: dict[str, Any], number: int | None) -> str:
    """BLEU of one model in a bucket, or over all sentences, and how much more than the baseline's that is."""
    own = (lengths["bands"] if number is None else lengths["by_length"][number])["scores"][model]["bleu"]["score"]
    if "against" not in lengths:
        return f"{own:.2f}"
    [other] = lengths["against"]
    found = Difference(**(other["difference"] if number is None else other["by_length"][number])["bleu"])
    mark = "**" if found.is_significant else ""
    return f"{own:.2f} ({mark}{found.score:+.2f}{mark})"


def differences(results: Results) -> str:
    """Each model less the baseline over all sentences, by both scores."""
    lines = [
        (f"`{model}` − `{other['name']}`", title, *cells(Difference(**other["difference"][score])))
        for model, found in results.items()
        for other in found.get("lengths", {}).get("against", ())
        for score, title in (("bleu", "BLEU"), ("chrf", "chrF"))
    ]
    header = ("", "score", "difference", "95 % band", "bootstrap p", "randomisation p")
    return rows(header, [[each.replace("*", "").strip() for each in line] for line in lines])


# --- documents --------------------------------------------------------------------------------------------------


def filled(text: str, path: Path) -> str:
    """A document with what it asks for as it is now; `path` says where it stands and in which language it is."""
    words = WORDS["ko" if path.name.endswith(".ko.md") or path.parent.name == "ko" else "en"]

    def answer(asked: re.Match[str]) -> str:
        results = read(asked["recipe"])
        if not (results if asked["what"] == "results" else baseline(results)):
            return f"{words['missing']}\n"
        if asked["what"] == "results":
            return scores(results, words)
        if asked["what"] == "differences":
            return differences(results)
        return by_length(results, words, os.path.relpath(picture_path(asked["recipe"]), path.parent))

    return ASKED.sub(lambda asked: asked[1] + answer(asked) + asked[4], text)


def picture_path(recipe: str) -> Path:
    """Where the picture of a recipe is kept."""
    return ROOT / f"docs/pictures/{recipe}-by-length.svg"


def picture(recipe: str) -> str | None:
    """BLEU against length, a line for each model."""
    known = {model: found["lengths"] for model, found in read(recipe).items() if "lengths" in found}
    curves = [
        Curve(model, tuple(point(model, each) for each in lengths["by_length"])) for model, lengths in known.items()
    ]
    signatures = {"bleu": signature(known)} if known else {}
    return length_chart({"bleu": curves}, signatures=signatures) + "\n" if known else None


def signature(known: Results) -> str:
    """Of BLEU; where systems were compared, it says how often was drawn."""
    every: list[str] = [own["bands"]["signatures"]["bleu"] for own in known.values()]
    return max(every, key=len)


def point(model: str, bucket: dict[str, Any]) -> Point:
    """One bucket of a curve."""
    own = Estimate(**bucket["scores"][model]["bleu"])
    return Point(bucket["low"], bucket["high"], bucket["median_length"], bucket["sentences"], own)


def documents() -> list[Path]:
    """Everything that may ask."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *HERE.rglob("*.md")]


def recipes() -> list[str]:
    """All of them."""
    return sorted(path.parent.name for path in HERE.glob("*/recipe.yaml"))


def main() -> None:
    """All pictures and documents."""
    wanted = {picture_path(recipe): drawn for recipe in recipes() if (drawn := picture(recipe))}
    wanted |= {path: filled(path.read_text(encoding="utf-8"), path) for path in documents()}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
