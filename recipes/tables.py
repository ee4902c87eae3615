"""Insert the results of recipes into documents, so that no number is typed by hand.

    python -m recipes.tables

A document marks the position with a pair of comments, such as `<!-- results: multi30k-en-de -->` and `<!-- end of
results -->`. There are three kinds: `results`, the scores of all models; `lengths`, a chart and a table of quality by
sentence length; `differences`, each model against the baseline with p-values. Results that do not exist yet are
reported as missing.
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from docs.dark import with_dark_colours
from softgaze.evaluation.by_length import BucketScore, LengthCurve, length_chart
from softgaze.evaluation.report import difference_cells
from softgaze.evaluation.significance import Difference, Estimate

HERE = Path(__file__).parent
ROOT = HERE.parent
MARKER = re.compile(
    r"(<!-- (?P<kind>results|lengths|differences): (?P<recipe>[\w-]+) -->\n).*?(<!-- end of (?P=kind) -->)", re.DOTALL
)
BELOW_ZERO = re.compile(r"(?<!\w)-(?=\d)")
WORDS = {
    "en": {
        "missing": "Not measured yet.",
        "results": ("model", "parameters", "minutes", "BLEU", "BLEU, lower-cased", "chrF"),
        "course": "BLEU on dev after 50 %, 75 % and 100 % of the updates",
        "words": "BLEU, lower-cased, words by {name}",
        "made": "{date}, commit {commit}, {machine}",
        "signatures": "Signatures",
        "picture": "BLEU of each model against the length of the source sentence, with 95 % confidence intervals",
        "lengths": ("words", "sentences"),
        "all": "all",
        "note": "BLEU; in brackets how much more than `{baseline}`, bold where paired bootstrap and approximate "
        "randomisation both have p < 0.05.",
    },
    "ko": {
        "missing": "아직 측정하지 않았어요.",
        "results": ("모델", "매개변수", "학습 시간(분)", "BLEU", "BLEU, 대소문자 무시", "chrF"),
        "course": "업데이트의 50%, 75%, 100%를 마친 뒤의 검증 BLEU",
        "words": "BLEU, 대소문자 무시, {name} 단어",
        "made": "{date}, 커밋 {commit}, {machine}",
        "signatures": "sacreBLEU 서명",
        "picture": "원문 길이에 따른 모델별 BLEU와 95% 신뢰구간",
        "lengths": ("단어 수", "문장 수"),
        "all": "전체",
        "note": "표의 수는 BLEU이고, 괄호 안은 `{baseline}`과의 차이예요. paired bootstrap과"
        " approximate randomization에서 모두 p < 0.05인 차이는 굵게 썼어요.",
    },
}
SHARES = (0.5, 0.75, 1.0)  # of the updates
Results = dict[str, dict[str, Any]]
Words = dict[str, Any]


def read(recipe: str) -> Results:
    """Return the results of the models of a recipe, in its order."""
    path = HERE / recipe / "results.json"
    stored: Results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    models = yaml.safe_load((HERE / recipe / "recipe.yaml").read_text(encoding="utf-8"))["models"]
    return {model: stored[model] for model in models if model in stored}


def baseline(results: Results) -> str | None:
    """Return the model that the others were compared with."""
    comparisons = [other for result in results.values() for other in result.get("lengths", {}).get("against", ())]
    names = {other["name"] for other in comparisons}
    return min((name for name in names if "lengths" in results.get(name, {})), default=None)


def rows(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table with right-aligned columns and proper minus signs."""
    head = [*header]
    signed = [[BELOW_ZERO.sub("−", cell) for cell in line] for line in lines]
    return (
        "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---", *["---:"] * (len(head) - 1)], *signed]) + "\n"
    )


# --- the three kinds ----------------------------------------------------------------------------------------------


def scores(results: Results, words: Words) -> str:
    """Return the scores of all models, with their signatures."""
    has_course = any("course" in result for result in results.values())
    tokenizers = {result["words"]["name"] for result in results.values() if "words" in result}  # one name, or none
    lines = [
        (
            f"`{model}`",
            f"{result['training']['parameters']:,}",
            f"{result['training']['minutes']:.0f}",
            *(f"{score:.2f}" for score in (result["bleu"], result["lower_cased"]["bleu"], result["chrf"])),
            *(f"{result['words']['bleu']:.2f}" if "words" in result else "–" for _ in tokenizers),
            *([course(result)] if has_course else []),
        )
        for model, result in results.items()
    ]
    signatures = {f"`{signature}`" for result in results.values() for signature in every_signature(result)}
    made = {words["made"].format(**{**result, "commit": str(result["commit"])[:7]}) for result in results.values()}
    header = [*words["results"], *(words["words"].format(name=name) for name in tokenizers)]
    table = rows([*header, *([words["course"]] if has_course else [])], lines)
    return f"{table}\n{'; '.join(sorted(made))}. {words['signatures']}: {', '.join(sorted(signatures))}.\n"


def course(result: dict[str, Any]) -> str:
    """Return greedy BLEU on dev at the validations nearest to some shares of the updates."""
    validations = result.get("course")
    if not validations:
        return "–"
    nearest = (min(validations, key=lambda at: abs(at[0] - share * validations[-1][0])) for share in SHARES)
    return ", ".join(f"{bleu:.1f}" for _, _, bleu in nearest)


def every_signature(result: dict[str, Any]) -> list[str]:
    """Return the signatures of the scores in the table."""
    signatures = (result["signatures"]["bleu"], result["lower_cased"]["signature"], result["signatures"]["chrf"])
    return [*signatures, *([result["words"]["signature"]] if "words" in result else [])]


def by_length(results: Results, words: Words, picture: str) -> str:
    """Return the chart and the table of quality by length."""
    name = baseline(results)
    known = {model: result["lengths"] for model, result in results.items() if "lengths" in result}
    buckets = known[str(name)]["by_length"]
    lines = [
        (label(bucket), f"{bucket['sentences']:,}", *(length_cell(*item, index) for item in known.items()))
        for index, bucket in enumerate(buckets)
    ]
    total = f"{sum(bucket['sentences'] for bucket in buckets):,}"
    lines.append((words["all"], total, *(length_cell(*item, None) for item in known.items())))
    table = rows([*words["lengths"], *(f"`{model}`" for model in known)], lines)
    note = words["note"].format(baseline=name)
    return f"![{words['picture']}]({picture})\n\n{table}\n{note} `{signature(known)}`\n"


def label(bucket: dict[str, Any]) -> str:
    return f"{bucket['low']}–{bucket['high']}" if bucket["high"] > bucket["low"] else f"{bucket['low']}"


def length_cell(model: str, lengths: dict[str, Any], index: int | None) -> str:
    """Return BLEU of one model in a bucket (None: all sentences), and its difference from the baseline."""
    part = lengths["confidence_intervals"] if index is None else lengths["by_length"][index]
    bleu = part["scores"][model]["bleu"]["score"]
    if "against" not in lengths:
        return f"{bleu:.2f}"
    [other] = lengths["against"]
    difference = Difference(**(other["difference"] if index is None else other["by_length"][index])["bleu"])
    mark = "**" if difference.is_significant else ""
    return f"{bleu:.2f} ({mark}{difference.score:+.2f}{mark})"


def differences(results: Results) -> str:
    """Return the difference of each model from the baseline over all sentences, for both scores."""
    lines = [
        (f"`{model}` − `{other['name']}`", title, *difference_cells(Difference(**other["difference"][score])))
        for model, result in results.items()
        for other in result.get("lengths", {}).get("against", ())
        for score, title in (("bleu", "BLEU"), ("chrf", "chrF"))
    ]
    header = ("", "score", "difference", "95 % confidence interval", "bootstrap p", "randomisation p")
    return rows(header, [[cell.replace("*", "").strip() for cell in line] for line in lines])


# --- documents --------------------------------------------------------------------------------------------------


def filled(text: str, path: Path) -> str:
    """Return a document with current results; `path` determines its language and relative links."""
    words = WORDS["ko" if path.name.endswith(".ko.md") or path.parent.name == "ko" else "en"]

    def content(marker: re.Match[str]) -> str:
        results = read(marker["recipe"])
        if not (results if marker["kind"] == "results" else baseline(results)):
            return f"{words['missing']}\n"
        if marker["kind"] == "results":
            return scores(results, words)
        if marker["kind"] == "differences":
            return differences(results)
        return by_length(results, words, os.path.relpath(picture_path(marker["recipe"]), path.parent))

    return MARKER.sub(lambda marker: marker[1] + content(marker) + marker[4], text)


def picture_path(recipe: str) -> Path:
    return ROOT / f"docs/pictures/{recipe}-by-length.svg"


def picture(recipe: str) -> str | None:
    """Return the chart of BLEU by length, one line per model."""
    known = {model: result["lengths"] for model, result in read(recipe).items() if "lengths" in result}
    curves = [
        LengthCurve(model, tuple(point(model, bucket) for bucket in lengths["by_length"]))
        for model, lengths in known.items()
    ]
    signatures = {"bleu": signature(known)} if known else {}
    return with_dark_colours(length_chart({"bleu": curves}, signatures=signatures)) + "\n" if known else None


def signature(known: Results) -> str:
    """Return the signature of BLEU; of compared systems it includes the number of resamplings."""
    signatures: list[str] = [lengths["confidence_intervals"]["signatures"]["bleu"] for lengths in known.values()]
    return max(signatures, key=len)


def point(model: str, bucket: dict[str, Any]) -> BucketScore:
    estimate = Estimate(**bucket["scores"][model]["bleu"])
    return BucketScore(bucket["low"], bucket["high"], bucket["median_length"], bucket["sentences"], estimate)


def documents() -> list[Path]:
    """Return all Markdown files that may contain markers."""
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *HERE.rglob("*.md")]


def recipes() -> list[str]:
    return sorted(path.parent.name for path in HERE.glob("*/recipe.yaml"))


def main() -> None:
    wanted = {picture_path(recipe): drawn for recipe in recipes() if (drawn := picture(recipe))}
    wanted |= {path: filled(path.read_text(encoding="utf-8"), path) for path in documents()}
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
