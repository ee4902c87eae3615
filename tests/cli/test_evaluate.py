"""`softgaze evaluate`: scores, comparisons, reports, and the captions of files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from bundles import copier, lines, make_bundle, tiny_bundle
from commands import check_error
from commands import run as run_command
from pictures import FEATURES, feature_bundle, image_bundle, write_scenes
from softgaze.caption_metrics import score_captions
from softgaze.cli import app
from softgaze.data.corpora import scenes
from softgaze.errors import DataError, SoftgazeError, UsageError
from softgaze.evaluation.attention_metrics import caption_words
from softgaze.translator import load


@pytest.fixture
def test_set(monkeypatch, tmp_path):
    """A model that copies, and 20 pairs of which 15 are copies."""
    translator = copier(tmp_path, target_language="de")
    monkeypatch.setattr("softgaze.translator.load", lambda path, device, **_: translator)
    texts = lines("en", 20)
    (tmp_path / "test.en").write_text("\n".join(texts) + "\n")
    (tmp_path / "test.de").write_text("\n".join([*texts[:15], *("etwas ganz anderes",) * 5]) + "\n")
    return [str(tmp_path / "test.en"), str(tmp_path / "test.de")]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    if result.exception:
        raise result.exception
    return result.stdout


def evaluate(*arguments: str) -> str:
    return run("model", *arguments)


def test_scores_signatures_and_speed_are_printed(test_set):
    written = evaluate("--test", *test_set)
    assert [line.split()[0] for line in written.splitlines()] == ["BLEU", "chrF", "TER", "exact", "speed"]
    assert written.count("version:") == 3
    assert "15 of 20 sentences" in written
    assert "sentences/s" in written
    assert "tokens/s (torch, cpu, beam size 5)" in written


def test_json(test_set):
    record = json.loads(evaluate("--test", *test_set, "--json", "--beam-size", "2"))
    assert (record["exact"], record["sentences"], record["beam_size"], record["test"]) == (75, 20, 2, test_set)
    assert 0 < record["bleu"] < 100
    assert 0 < record["ter"] < 100
    assert set(record["signatures"]) == {"bleu", "chrf", "ter"}
    speed = record["speed"]
    assert speed["tokens_per_second"] > speed["sentences_per_second"] > 0


def test_a_perfect_translation_scores_full_marks(test_set):
    record = json.loads(evaluate("--test", test_set[0], test_set[0], "--json"))
    assert (round(record["bleu"], 3), round(record["chrf"], 3), record["ter"], record["exact"]) == (100, 100, 0, 100)


def test_the_translations_are_written(test_set, tmp_path):
    evaluate("--test", *test_set, "--output", str(tmp_path / "out"))
    assert (tmp_path / "out").read_text().splitlines() == lines("en", 20)


def test_the_target_language_chooses_the_tokenizer(test_set, monkeypatch, tmp_path):
    translator = copier(tmp_path, target_language="zh-Hans")
    monkeypatch.setattr("softgaze.translator.load", lambda path, device, **_: translator)
    assert "tok:zh" in evaluate("--test", *test_set)


def test_files_that_differ_in_length_are_refused(test_set, tmp_path):
    (tmp_path / "short").write_text("one\n")
    with pytest.raises(DataError, match="20 lines"):
        evaluate("--test", test_set[0], str(tmp_path / "short"))


# --- by length, against others, and where it looks


@pytest.fixture
def other(test_set, tmp_path):
    """A file of translations by somebody else, most of them wrong."""
    texts = [text.replace("the", "a").replace("dog", "cat") for text in lines("en", 20)]
    (tmp_path / "other.de").write_text("\n".join(texts) + "\n")
    return str(tmp_path / "other.de")


def test_by_length_every_sentence_is_in_a_bucket(test_set):
    record = json.loads(evaluate("--test", *test_set, "--by-length", "--json"))
    assert sum(bucket["sentences"] for bucket in record["by_length"]) == 20
    assert record["confidence_intervals"]["scores"]["model"]["bleu"]["score"] == pytest.approx(record["bleu"], abs=1e-4)
    assert "seed:12345" in record["confidence_intervals"]["signatures"]["bleu"]


def test_given_edges_are_the_buckets(test_set):
    record = json.loads(evaluate("--test", *test_set, "--edges", "3,5", "--json"))
    assert [bucket["high"] for bucket in record["by_length"]] == [3, 5, 7]


def test_against_a_file_of_translations(test_set, other):
    written = evaluate("--test", *test_set, "--against", other, "--by-length")
    assert "BLEU, model minus other.de" in written
    assert "BLEU by source length" in written
    assert "randomisation p" in written
    assert written.count("version:") == 3 + 2
    record = json.loads(evaluate("--test", *test_set, "--against", other, "--json"))
    (against,) = record["against"]
    assert against["difference"]["bleu"]["score"] > 0
    assert record["systems"] == {"model": "model", "other.de": other}


def test_against_itself_nothing_differs(test_set, tmp_path):
    evaluate("--test", *test_set, "--output", str(tmp_path / "own"))
    record = json.loads(evaluate("--test", *test_set, "--against", str(tmp_path / "own"), "--json"))
    found = record["against"][0]["difference"]["chrf"]
    assert (found["score"], found["bootstrap_p"], found["randomisation_p"]) == (0, 1, 1)


def test_against_another_model(test_set, tmp_path):
    make_bundle(tmp_path / "other", target_language="de")
    record = json.loads(evaluate("--test", *test_set, "--against", str(tmp_path / "other"), "--json"))
    assert record["against"][0]["difference"]["chrf"]["score"] == 0  # `load` gives the copier for every path


def test_reports_are_written(test_set, other, tmp_path):
    files = [tmp_path / f"report{ending}" for ending in (".html", ".svg", ".json")]
    asked = [part for file in files for part in ("--report", str(file))]
    printed = json.loads(evaluate("--test", *test_set, "--against", other, "--by-length", "--json", *asked))
    page, chart, record = (file.read_text() for file in files)
    assert "Evaluation of model" in page
    assert "other.de" in page
    assert ElementTree.fromstring(chart).tag.endswith("svg")
    assert json.loads(record) == printed
    for signature in printed["confidence_intervals"]["signatures"].values():
        assert all(signature in text for text in (page, chart))


@pytest.fixture
def real(monkeypatch, tmp_path):
    """An untrained model with attention, and a test set with gold alignments."""
    make_bundle(tmp_path / "real")
    for language in ("en", "ko"):
        (tmp_path / f"real.{language}").write_text("\n".join(lines(language, 6)) + "\n")
    (tmp_path / "gold").write_text("0-0 1-1\n" * 6)
    return [str(tmp_path / "real"), "--test", str(tmp_path / "real.en"), str(tmp_path / "real.ko"), "--beam-size", "1"]


def test_attention_metrics_with_and_without_gold(real, tmp_path):
    record = json.loads(run(*real, "--attention", "--json"))
    assert set(record["attention"]["real"]) == {"map", "sentences", "entropy", "coverage", "erasure"}
    written = run(*real, "--gold", str(tmp_path / "gold"), "--gold-base", "0", "--by-length")
    assert "Attention of real" in written
    assert "AER" in written


def test_confidence_is_measured_fitted_and_stored(real, tmp_path):
    path, flag, source, target, *rest = real
    sources = lines("en", 60)
    Path(source).write_text("\n".join(sources) + "\n")
    translator = load(path)
    outputs = [each.text for each in translator.translate(sources, beam_size=1)]
    Path(target).write_text("\n".join(text if index % 2 else "개 자요." for index, text in enumerate(outputs)) + "\n")
    command = [path, flag, source, target, *rest]
    assert "not calibrated" in run(*command, "--confidence")
    before = json.loads(run(*command, "--confidence", "--json"))["confidence"]["real"]
    after = json.loads(run(*command, "--calibrate", "--json", "--report", str(tmp_path / "chart.svg")))
    assert (before["calibrated"], after["confidence"]["real"]["calibrated"]) == (False, True)
    assert after["confidence"]["real"]["ece"] < before["ece"]
    assert "perfect calibration" in (tmp_path / "chart.svg").read_text()
    assert json.loads(run(*command, "--confidence", "--json"))["confidence"]["real"] == after["confidence"]["real"]


def test_a_model_without_attention_has_no_attention_metrics(test_set):
    with pytest.raises(UsageError, match="has no attention"):
        evaluate("--test", *test_set, "--attention")


def test_attention_metrics_of_the_other_model_suffice(test_set, tmp_path):
    make_bundle(tmp_path / "other", target_language="de")
    record = json.loads(evaluate("--test", *test_set, "--attention", "--against", str(tmp_path / "other"), "--json"))
    assert "against" in record
    assert "attention" not in record  # `load` gives the copier for every path


def test_a_warning_if_no_system_has_attention(test_set, real, tmp_path, monkeypatch):
    def noted(*arguments):
        return CliRunner().invoke(app, ["evaluate", *arguments]).stderr

    make_bundle(tmp_path / "other", target_language="de")
    command = ["model", "--test", *test_set, "--against", str(tmp_path / "other")]
    [line] = noted(*command, "--attention").splitlines()
    assert all(word in line for word in ("no system has attention", "model", "other"))
    assert noted(*command) == ""
    monkeypatch.undo()
    assert noted(*real, "--attention", "--against", real[0]) == ""


WRONG = {
    "no such other": (["--against", "nowhere"], "nowhere"),
    "edges that are no numbers": (["--edges", "a,b"], "10,20,30"),
    "edges that fall": (["--edges", "9,3"], "10,20,30"),
    "a chart of nothing": (["--report", "x.svg"], "--by-length"),
    "a report of no kind": (["--report", "x.pdf"], ".html"),
    "gold without its base": (["--gold", "x"], "--gold-base"),
}


@pytest.mark.parametrize(("flags", "fact"), WRONG.values(), ids=WRONG)
def test_mistakes_are_reported_before_a_model_is_loaded(test_set, monkeypatch, flags, fact):
    monkeypatch.setattr("softgaze.translator.load", None)
    with pytest.raises(SoftgazeError, match=fact):
        evaluate("--test", *test_set, *flags)


def test_translations_of_another_length_are_refused(test_set, tmp_path):
    (tmp_path / "short").write_text("one\n")
    with pytest.raises(DataError, match="20 lines"):
        evaluate("--test", *test_set, "--against", str(tmp_path / "short"))


def test_a_model_of_another_direction_is_refused(test_set, tmp_path):
    make_bundle(tmp_path / "back", source_language="de", target_language="en")
    with pytest.raises(UsageError, match="de → en"):
        evaluate("--test", *test_set, "--against", str(tmp_path / "back"))


# --- captions

REFERENCES = {
    f"{number}.png": [scene.captions["en"], "a red circle"] for number, scene in enumerate(scenes.load("test")[:3])
}

FOLDERS = ("--images", "scenes", "--captions", "captions.csv")


@pytest.fixture
def caption_set(tmp_path):
    """Three scenes with two captions each, as Flickr8k has them."""
    write_scenes(tmp_path / "scenes")
    rows = [f'{name},"{text}"' for name, texts in REFERENCES.items() for text in texts]
    (tmp_path / "captions.csv").write_text("\n".join(["image,caption", *rows]) + "\n", encoding="utf-8")
    return tmp_path


def evaluated(place, *arguments):
    return run_command(place, "evaluate", image_bundle(), *FOLDERS, *arguments)


def write_boxes(place, names):
    """COCO's boxes of the scenes; every thing has one of these names."""
    images, boxes = [], []
    for number in range(3):
        images.append({"id": number, "file_name": f"{number}.png", "width": 48, "height": 48})
        for box in scenes.draw(scenes.load("test")[number], 48).boxes:
            boxes.append({"image_id": number, "category_id": len(boxes) % len(names), "bbox": box.pixels((48, 48))})
    categories = [{"id": number, "name": name} for number, name in enumerate(names)]
    record = {"images": images, "categories": categories, "annotations": boxes}
    (place / "boxes.json").write_text(json.dumps(record), encoding="utf-8")


def test_the_scores_are_those_of_the_captions(caption_set):
    result = evaluated(caption_set, "--json", "-o", "out.tsv", "--beam-size", 2)
    record = json.loads(result.stdout)
    names = [str(caption_set / "scenes" / name) for name in REFERENCES]
    found = [each.text for each in load(image_bundle()).translate(names, beam_size=2)]
    wanted = score_captions(found, list(REFERENCES.values()), language="en").to_dict()
    assert {name: record[name] for name in wanted} == wanted
    assert (record["images"], record["references"], record["pointing"]) == (3, 6, None)
    written = (caption_set / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert written == [f"{name}\t{text}" for name, text in zip(REFERENCES, found, strict=True)]


def test_for_people_every_score_has_a_line(caption_set):
    lines = evaluated(caption_set).stdout.splitlines()
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "CIDEr-D", "ROUGE-L", "exact", "speed"]
    assert [line.split()[0] for line in lines] == names
    assert "nrefs:2|" in lines[0]
    assert "tok:ptb|punctuation:no" in lines[0]


def test_boxes_give_the_pointing_score(caption_set):
    fact = load(image_bundle()).translate(str(caption_set / "scenes/0.png"), beam_size=5).text
    write_boxes(caption_set, [caption_words(fact)[-1]])
    result = evaluated(caption_set, "--boxes", "boxes.json", "--json")
    pointing = json.loads(result.stdout)["pointing"]
    assert pointing["nouns"] >= 1
    assert 0 < pointing["mass"] < 1
    assert 0 < pointing["chance"] < 0.5
    line = next(
        line for line in evaluated(caption_set, "--boxes", "boxes.json").stdout.splitlines() if "pointing" in line
    )
    assert f"(chance {pointing['chance']:.1%}, mean map {pointing['mean_map']:.1%})" in line


def test_boxes_of_unnamed_objects_give_no_pointing_score(caption_set):
    write_boxes(caption_set, ["zebra crossing"])
    assert "no noun" in evaluated(caption_set, "--boxes", "boxes.json").stdout
    assert json.loads(evaluated(caption_set, "--boxes", "boxes.json", "--json").stdout)["pointing"] is None


def test_unreadable_files_are_skipped_and_reported(caption_set):
    (caption_set / "scenes" / "1.png").write_bytes(b"no picture")
    with (caption_set / "captions.csv").open("a", encoding="utf-8") as file:
        file.write("gone.png,a dog\n")
    result = evaluated(caption_set, "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["images"] == 2
    assert [line.split(":")[1].split("/")[-1] for line in result.stderr.splitlines()] == [
        "captions.csv, line 8",
        "1.png",
    ] or ("gone.png" in result.stderr and "1.png" in result.stderr)


def test_nothing_that_can_be_read_is_an_error(caption_set):
    for name in REFERENCES:
        (caption_set / "scenes" / name).write_bytes(b"no picture")
    check_error(evaluated(caption_set), 3, "none of the 3 files")


def test_arrays_are_scored_alike(tmp_path):
    (tmp_path / "arrays").mkdir()
    for name in ("a", "b"):
        np.save(tmp_path / "arrays" / f"{name}.npy", np.ones((4, len(FEATURES)), dtype="f4"))
    (tmp_path / "captions.csv").write_text("image,caption\na.npy,a dog\nb.npy,a cat\n", encoding="utf-8")
    folders = ("--captions", "captions.csv", "--json")
    result = run_command(tmp_path, "evaluate", feature_bundle(), "--features", "arrays", *folders)
    assert json.loads(result.stdout)["images"] == 2
    check_error(
        run_command(tmp_path, "evaluate", feature_bundle(), "--images", "arrays", *folders),
        2,
        "was trained on --features DIR",
    )


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ((), "no test set"),
        (("--images", "scenes"), "--captions FILE"),
        (("--captions", "captions.csv"), "--images DIR"),
        (("--boxes", "boxes.json"), "--images DIR"),
        ((*FOLDERS, "--by-length"), "--by-length"),
        ((*FOLDERS, "--test", "a", "b"), "--test"),
        ((*FOLDERS, "--report", "a.html"), "--report"),
    ],
)
def test_options_without_effect_are_rejected(caption_set, arguments, fact):
    check_error(run_command(caption_set, "evaluate", image_bundle(), *arguments), 2, fact)


def test_a_model_of_text_captions_no_files(caption_set):
    check_error(run_command(caption_set, "evaluate", tiny_bundle(), *FOLDERS), 2, "translates text")
