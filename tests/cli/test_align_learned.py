"""`softgaze align` without a model: learned from the pairs, saved, and combined with attention."""

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bundles import lines, make_bundle
from commands import check_error, run
from softgaze.alignment import CombinedAligner, train_aligner
from softgaze.alignment.combined import part_factors
from softgaze.alignment.words import split_words
from softgaze.bundle import ALIGNER, Bundle, add_aligner, seal
from softgaze.cli._output import interruption
from softgaze.documents.inline import AlignedSegment
from softgaze.errors import DataError
from softgaze.explain import Alignment, Attention
from softgaze.translator import load

COUNT = 300


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A text, its word-by-word translation in another order, an empty pair in the middle, and gold links."""
    directory = tmp_path_factory.mktemp("learned")
    dice = random.Random(2)
    sources, targets, gold = [], [], []
    for line in lines("en", COUNT):
        words = line.rstrip(".").split()
        order = sorted(range(len(words)), key=lambda position: position + dice.uniform(0, 1.5))
        sources.append(" ".join(words) + ".")
        targets.append(" ".join(words[position][::-1] for position in order) + " .")
        gold.append(" ".join(f"{position}-{place}" for place, position in enumerate(order)))
    for rows in (sources, targets, gold):
        rows[COUNT // 2] = ""
    for name, rows in {"a.en": sources, "a.xx": targets, "gold": gold}.items():
        (directory / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    for name in ("a.en", "a.xx"):
        half = (directory / name).read_text(encoding="utf-8").splitlines(keepends=True)[-50:]
        (directory / name.replace("a", "test")).write_text("".join(half), encoding="utf-8")
    return directory


def test_pairs_alone_give_good_links_for_every_line(directory):
    result = run(directory, "align", "a.en", "a.xx", "--gold", "gold", "--gold-base", 0, "-o", "links")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split("%")[0].split()[-1]) < 10
    links = (directory / "links").read_text().splitlines()
    assert len(links) == COUNT
    assert links[COUNT // 2] == ""
    assert "iteration" in result.stderr, "a log shows progress"


def test_a_saved_aligner_gives_the_same_links_and_serves_unseen_text(directory):
    learned = run(directory, "align", "a.en", "a.xx", "--save", "a.npz")
    again = run(directory, "align", "a.npz", "a.en", "a.xx")
    assert (learned.returncode, again.returncode) == (0, 0), learned.stderr + again.stderr
    assert again.stdout == learned.stdout
    unseen = run(directory, "align", "a.npz", "test.en", "test.xx")
    assert unseen.stdout.count("\n") == 50


def test_more_text_to_learn_from_gives_better_links(directory, tmp_path):
    for name, count in {"en": 3, "xx": 3}.items():
        text = (directory / f"test.{name}").read_text(encoding="utf-8").splitlines(keepends=True)[:count]
        (tmp_path / f"few.{name}").write_text("".join(text), encoding="utf-8")
    more = run(tmp_path, "align", "few.en", "few.xx", "--train", directory / "a.en", directory / "a.xx")
    alone = run(tmp_path, "align", "few.en", "few.xx")
    whole = run(directory, "align", "a.en", "a.xx").stdout.splitlines()
    assert more.stdout.splitlines() == whole[-50:-47]
    assert alone.stdout.count("\n") == 3


def test_a_threshold_trades_recall_for_precision(directory):
    run(directory, "align", "a.en", "a.xx", "--save", "a.npz")
    low, high = (run(directory, "align", "a.npz", "a.en", "a.xx", "--threshold", x).stdout.split() for x in (0.01, 0.9))
    assert len(low) > len(high) > 0


WRONG = {
    "four files": (["a.en"] * 4, 2, "SRC TGT"),
    "one side": (["a.en"], 3, "a.en, line 1: no ' ||| '"),
    "a directory of something else": (["a.en", "a.xx", "--minutes", 1, "--save", "."], 3, "not a model"),
    "negative minutes": (["a.en", "a.xx", "--minutes", -1], 2, "at least 0"),
    "minutes with a model": (["a.npz", "a.en", "a.xx", "--minutes", 1], 2, "leave MODEL out"),
    "a model option": (["a.en", "a.xx", "--reverse", "m"], 2, "needs a MODEL"),
    "to learn with a model": (["a.npz", "a.en", "a.xx", "--train", "a.en", "a.xx"], 2, "leave MODEL out"),
    "to save with a model": (["a.npz", "a.en", "a.xx", "--save", "b.npz"], 2, "leave MODEL out"),
    "half a pair": (["a.en", "a.xx", "--train", "a.en"], 2, "two files"),
    "no aligner": (["gold", "a.en", "a.xx"], 3, "gold: is not a word aligner"),
    "nothing to learn": (["empty", "empty"], 3, "no sentence pairs"),
    "a missing text": (["a.en", "none"], 3, "none does not exist"),
}


@pytest.mark.parametrize(("arguments", "code", "fact"), WRONG.values(), ids=WRONG)
def test_mistakes_are_one_line(directory, arguments, code, fact):
    (directory / "empty").write_text("\n")
    if not (directory / "a.npz").exists():
        run(directory, "align", "a.en", "a.xx", "--save", "a.npz")
    check_error(run(directory, "align", *arguments), code, fact)


def test_ctrl_c_is_reported_on_one_line(capsys):
    with pytest.raises(KeyboardInterrupt), interruption("links was not written"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err.splitlines() == ["softgaze: stopped; links was not written"]


def test_a_file_of_fast_align_gives_the_same_links(directory, tmp_path):
    sides = ((directory / name).read_text(encoding="utf-8").splitlines() for name in ("a.en", "a.xx"))
    joined = "".join(f"{source} ||| {target}\n" for source, target in zip(*sides, strict=True))
    (tmp_path / "both").write_text(joined, encoding="utf-8")
    expected = run(directory, "align", "a.en", "a.xx", "--save", tmp_path / "a.npz")
    for arguments in (["both"], ["a.npz", "both"]):
        result = run(tmp_path, "align", *arguments)
        assert (result.returncode, result.stdout) == (0, expected.stdout), result.stderr


def test_a_neural_aligner_gives_good_links_and_is_saved_in_a_file_or_a_model(directory, tmp_path):
    text = [directory / "a.en", directory / "a.xx"]
    gold = ["--gold", directory / "gold", "--gold-base", 0]
    result = run(tmp_path, "align", *text, "--minutes", 0.05, "--save", "a.npz", "-o", "links", *gold)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split("%")[0].split()[-1]) < 10
    assert "network" in result.stdout
    assert "update" in result.stderr, "a log shows progress"
    assert not list(tmp_path.glob("*.training"))
    links = (tmp_path / "links").read_text()
    assert links.count("\n") == COUNT
    again = run(tmp_path, "align", "a.npz", *text)
    assert (again.returncode, again.stdout) == (0, links), again.stderr
    model = make_bundle(tmp_path / "model", source_language="en", target_language="xx")
    add_aligner(model, (tmp_path / "a.npz").read_bytes())
    assert run(tmp_path, "align", model, *text, "--by", "lexicon").stdout == links
    assert run(tmp_path, "align", model, *text).stdout.count("\n") == COUNT


# --- in a bundle ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(directory):
    path = make_bundle(directory / "model", source_language="en", target_language="xx")
    pairs = list(zip(*((directory / name).read_text().splitlines() for name in ("a.en", "a.xx")), strict=True))
    train_aligner(pairs).save(path / ALIGNER)
    seal(path, [*listed_files(path), ALIGNER], {})
    return path


def listed_files(path):
    return json.loads((path / "manifest.json").read_text())["files"]


def test_a_bundle_carries_an_aligner_that_is_verified(bundle, tmp_path):
    assert ALIGNER in Bundle.open(bundle).files
    for damage in (b"x", b""):
        copy = tmp_path / f"copy{len(damage)}"
        shutil.copytree(bundle, copy)
        content = (copy / ALIGNER).read_bytes()
        (copy / ALIGNER).write_bytes(content[:-1] + damage)
        with pytest.raises(DataError, match=ALIGNER):
            Bundle.open(copy)
    plain = make_bundle(tmp_path / "plain")
    (plain / ALIGNER).write_bytes(b"unlisted")
    with pytest.raises(DataError, match="not listed"):
        Bundle.open(plain)


def test_the_lexicon_of_a_bundle_aligns_alone_with_attention_or_not_at_all(directory, bundle):
    gold = ["--gold", "gold", "--gold-base", 0, "-o", "l", "--json"]
    rates = {}
    for by in ("lexicon", "both", "attention"):
        result = run(directory, "align", bundle, "a.en", "a.xx", "--by", by, *gold)
        assert result.returncode == 0, result.stderr
        rates[by] = json.loads(result.stdout)["aer"]
    assert rates["lexicon"] < 0.1
    assert rates["both"] < rates["attention"], "this model is not trained"
    default = run(directory, "align", bundle, "a.en", "a.xx", *gold)
    assert json.loads(default.stdout)["aer"] == rates["both"]


def test_attention_raises_the_score_of_the_words_it_attends_to(bundle):
    """The lexicon cannot tell equal words apart."""
    translator = load(bundle)
    statistics = translator.statistical_aligner
    pair = ("dog cat dog", "god tac god")
    words = tuple(map(split_words, pair))
    straight, crossed = np.eye(3) * 0.85 + 0.05, np.eye(3)[::-1] * 0.85 + 0.05
    one, other = (
        statistics.scores([pair], [part_factors(*words, (weights, weights))])[0] for weights in (straight, crossed)
    )
    assert one[0, 0] > other[0, 0]
    assert one[0, 2] < other[0, 2]
    combined = CombinedAligner(translator.aligner(), statistics)
    assert combined.align([pair, ("", ""), pair])[1:] == [Alignment(), *combined.align([pair])]


def test_an_aligner_is_added_to_a_model_and_stays_when_the_model_is_saved_again(directory, tmp_path):
    path = make_bundle(tmp_path / "model", source_language="en", target_language="xx")
    result = run(directory, "align", "a.en", "a.xx", "--save", path, "-o", "links")
    assert result.returncode == 0, result.stderr
    lexicon = run(directory, "align", path, "a.en", "a.xx", "--by", "lexicon")
    assert lexicon.stdout == (directory / "links").read_text()
    make_bundle(path, source_language="en", target_language="xx")
    assert ALIGNER in Bundle.open(path).files
    check_error(run(directory, "align", "a.en", "a.xx", "--save", tmp_path), 3, "not a model")


def test_the_library_uses_the_lexicon_of_a_bundle(directory, bundle):
    translator = load(bundle)
    sources, targets = ((directory / name).read_text().splitlines()[:40] for name in ("a.en", "a.xx"))
    combined = CombinedAligner(
        translator.aligner().with_selected_maps(list(zip(sources, targets, strict=True))),
        translator.statistical_aligner,
    )
    assert translator.align(sources, targets) == combined.align(list(zip(sources, targets, strict=True)))


def test_tags_follow_the_lexicon_where_attention_says_nothing(bundle):
    statistics = load(bundle).statistical_aligner
    source, target = "old dog cat runs", "dlo tac god snur"
    flat = Attention.of(source.split(), target.split(), np.full((4, 4), 0.25))
    known = ("dog", "god"), ("cat", "tac")
    by_attention, both = (AlignedSegment.of(source, target, flat, each).links for each in (None, statistics))
    expected = {(source.split().index(one), target.split().index(other)) for one, other in known}
    assert expected <= both
    assert not expected <= by_attention


def test_a_bundle_without_a_lexicon_says_so(directory, tmp_path):
    check_error(run(directory, "align", make_bundle(tmp_path / "m"), "a.en", "a.xx", "--by", "lexicon"), 2, "lexicon")


def test_learning_needs_no_torch(directory):
    code = (
        "import sys; sys.modules['torch'] = None; from softgaze.alignment import train_aligner; "
        "print(len(train_aligner([('a b', 'c d')] * 9).align([('a', 'c')])))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "1\n", ran.stderr
