"""A small comparison from end to end: every form of the report shows the numbers of the JSON."""

import html
import json
import re
from copy import deepcopy
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.compare.comparisons import beyond, compared, planned, take
from softgaze.data.corpus import read_pairs
from softgaze.evaluation.compare import jobs
from softgaze.evaluation.compare.jobs import (
    TRAINED,
    TRANSLATED,
    ModelJob,
    preprocess_shared,
    read_record,
    run_jobs,
    write_record,
)
from softgaze.evaluation.compare.report import (
    conditions,
    cost_table,
    learning_chart,
    length_tables,
    pair_table,
    score_table,
    write_report,
)
from softgaze.evaluation.compare.results import collect_results, holm, list_warnings
from softgaze.evaluation.significance import TITLES
from softgaze.metrics import score
from softgaze.translator import load

CELL = re.compile(r"<t[dh]\b[^>]*>(?:<svg.*?</svg>)?([^<]*)</t[dh]>")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """`rnn` has no attention, the others have."""
    plan = beyond(planned(tmp_path_factory.mktemp("compare"), "rnn", "rnn-luong", "transformer"))
    compared(plan)
    write_report(plan)
    return plan


@pytest.fixture(scope="module")
def record(plan):
    return json.loads(plan.report("json").read_text())


def all_tables(record):
    return [score_table(record), pair_table(record), cost_table(record), *length_tables(record)]


def test_scores_are_those_of_the_models_own_translations(plan, record):
    sources, references = zip(*read_pairs(*plan.test), strict=True)
    for model in record["models"]:
        job = ModelJob(plan, model["name"])
        found = [each.text for each in load(job.path, "cpu").translate([*sources], beam_size=1)]
        expected = score(found, references, language="de", ter=False)
        assert model["scores"]["bleu"]["score"] == pytest.approx(expected.bleu)
        assert model["scores"]["chrf"]["score"] == pytest.approx(expected.chrf)
        assert model["parameters"] == sum(each.numel() for each in load(job.path, "cpu").model.parameters())


def test_all_models_share_text_tokenizer_and_budget(plan, record):
    files = [ModelJob(plan, model["name"]).path / "tokenizer.model" for model in record["models"]]
    assert len({file.read_bytes() for file in files}) == 1
    assert not any((file.parent / "encoded").exists() for file in files)
    assert {model["training"]["step"] for model in record["models"]} == {8}
    assert [each["step"] for each in record["models"][0]["learning"]] == [4, 8]
    trainings = [model["training"] for model in record["models"]]
    assert all(each["memory"] >= 0.95 * each["memory_before"] for each in trainings)  # Linux counts pages roughly


def test_every_sentence_is_in_one_bucket_inside_or_beyond(record):
    for model in record["models"]:
        for part, count in (("by_length", 40), ("beyond", 20)):
            assert sum(point["sentences"] for point in model[part]["bleu"]) == count


def test_the_page_shows_exactly_the_cells_of_the_tables(plan, record):
    cells = [html.unescape(cell) for cell in CELL.findall(plan.report("html").read_text())]
    expected = [cell for table in all_tables(record) for row in (table.header, *table.rows) for cell in row]
    assert sorted(cells) == sorted(expected)


def test_cells_are_the_numbers_of_the_json(record):
    for model, row in zip(record["models"], score_table(record).rows, strict=True):
        numbers = [float(number) for cell in row[1:3] for number in re.findall(r"[\d.]+", cell)]
        wanted = [model["scores"][score][end] for score in ("bleu", "chrf") for end in ("score", "low", "high")]
        assert numbers == pytest.approx(wanted, abs=0.051)
    for model, row in zip(record["models"], cost_table(record).rows, strict=True):
        assert row[1] == f"{model['parameters']:,}"
        least, most = model["translating"]["spread"]
        assert least <= model["translating"]["tokens_per_second"] <= most
        assert row[5] == f"{model['translating']['tokens_per_second']:,.0f} ({least:,.0f}–{most:,.0f})"
        assert row[6] == f"{model['training']['memory'] / 2**20:,.0f} MiB"
    for one, row in enumerate(pair_table(record).rows):
        for other, cell in enumerate(row[1:]):
            difference = (
                record["models"][one]["scores"]["bleu"]["score"] - record["models"][other]["scores"]["bleu"]["score"]
            )
            shown = float(cell.split(" ")[0].replace("−", "-")) if one != other else 0.0
            assert shown == pytest.approx(difference, abs=0.051)


def test_markdown_has_the_same_cells_and_all_translations(plan, record):
    text = plan.report("md").read_text()
    for table in all_tables(record):
        for row in table.rows:
            assert "| " + " | ".join(row) + " |" in text.replace("\\", "")
    for each in record["sentences"]["shown"]:
        assert each["source"] in text
    for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text):
        assert (plan.out / name).read_text().startswith("<svg")


def test_shown_sentences_have_a_map_of_every_model_with_attention(plan, record):
    shown = record["sentences"]["shown"]
    assert len(shown) == 5
    page = plan.report("html").read_text()
    assert page.count('<figure class="map">') == 10
    assert page.count("No attention") == 5
    for each in shown:
        assert [said["attention"] is None for said in each["translations"]] == [True, False, False]
        assert [said["model"] for said in each["translations"]] == [model["name"] for model in record["models"]]


def test_only_jobs_with_changed_inputs_run_again(plan, record):
    def no_progress(*turn):
        raise AssertionError(turn)

    run_jobs(plan, no_progress, lambda message: None)
    taken = []
    wider = replace(plan, beam_size=2)
    run_jobs(wider, lambda plan, name, kind: taken.append((name, kind)), lambda message: None)
    assert taken == [(variant.name, "translate") for variant in plan.models]
    taken.clear()
    longer = replace(plan, settings={**plan.settings, "budget": {**plan.settings["budget"], "steps": 9}})
    run_jobs(longer, lambda plan, name, kind: taken.append((name, kind)), lambda message: None)
    assert taken == [(variant.name, "train") for variant in plan.models]


def test_the_report_distinguishes_measured_from_reported(plan, record):
    def date(record):
        return dict(conditions(record))["date"]

    today = record["reported_on"]["date"]
    assert date(record) == today
    taken = [model[turn] for model in record["models"] for turn in ("training", "translating")]
    assert all(each["measured_on"]["threads"] in record["threads"] for each in taken)
    other = deepcopy(record)
    other["models"][0]["training"]["measured_on"]["date"] = "2020-01-01"
    assert date(other) == f"measured: 2020-01-01; {today} / report: {today}"
    for model in other["models"]:
        model["training"]["measured_on"] = model["translating"]["measured_on"] = None
    assert date(other) == f"report: {today}"


def test_gpu_memory_is_reported_if_there_is_any(record):
    assert "GPU" not in str(cost_table(record))
    other = deepcopy(record)
    other["models"][1]["training"] |= {"memory": 300 << 20, "device_memory": 5000 << 20}
    table = cost_table(other)
    assert table.rows[1][6] == "300 MiB, GPU 5,000 MiB"
    assert "GPU" not in str(table.rows[0])
    assert "GPU" in table.note


def test_memory_is_measured_on_the_device_of_the_job(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "peak_device_memory", lambda device: asked.append(device) or 7)
    plan = planned(tmp_path, "rnn")
    compared(plan)
    [model] = collect_results(plan)["models"]
    assert [model[turn]["device_memory"] for turn in ("training", "translating")] == [7, 7]
    assert asked == ["cpu", "cpu"]


def test_records_of_an_older_version_are_reported(tmp_path):
    plan = planned(tmp_path, "rnn")
    compared(plan)
    for name in (TRAINED, TRANSLATED):
        path = ModelJob(plan, "rnn:width=16").path / name
        found = read_record(path)
        assert found.pop("measured_on")["date"]
        del found["device_memory"]
        write_record(path, found)
    write_report(plan)
    assert "- date: report: " in plan.report("md").read_text()


def test_a_failed_job_stops_no_other_model_and_is_in_every_report(tmp_path):
    plan = planned(tmp_path, "rnn", "rnn-luong")
    plan.write()
    preprocess_shared(plan)
    said = []

    def launch(plan, name, kind):
        return 5 if name.startswith("rnn:") else take(plan, name, kind)

    failed = run_jobs(plan, launch, said.append)
    assert failed == {"rnn:width=16": {"job": "train", "exit_code": 5}}
    assert said[1] == "[1/2] rnn:width=16: train: failed"
    line = write_report(plan)[0]
    assert line.startswith("rnn:width=16 is not compared")
    record = json.loads(plan.report("json").read_text())
    assert record["failed"] == [{"name": "rnn:width=16", "job": "train", "exit_code": 5}]
    assert [model["name"] for model in record["models"]] == ["rnn-luong:width=16"]
    assert all(line in plan.report(ending).read_text() for ending in ("md", "html"))
    assert run_jobs(plan, take, said.append) == {}
    assert "not compared" not in write_report(plan)[0]


def test_every_score_has_its_signature_in_the_record_and_in_chart_files(plan, record):
    signatures = record["signatures"]
    for name, own in signatures["scores"].items():
        assert f"{TITLES[name]} {own}" in plan.report("lengths.svg").read_text()
    assert f"BLEU {signatures['learning']['bleu']}" in plan.report("learning.svg").read_text()
    assert signatures["learning"] == score(["a"], ["a"], language="de", ter=False).signatures


def test_the_built_in_text_reports_how_rare_each_length_is(plan, record):
    built_in = collect_results(replace(plan, built_in=True))
    trained = built_in["text"]["trained_lengths"]
    assert sum(part["pairs"] for part in trained) == plan.corpus.count()
    rows = [row for table in length_tables(built_in, ("bleu",)) for row in table.rows if row[0] == "training pairs"]
    assert [cell for row in rows for cell in row[1:]] == [f"{part['pairs']:,}" for part in trained]
    assert not any(row[0] == "training pairs" for table in length_tables(record) for row in table.rows)


@pytest.mark.parametrize(("low", "high", "mark"), [(1, 2, "↓"), (1, 10, ""), (14, 20, ""), (16, 20, "↑")])
def test_a_change_beyond_the_trained_lengths_is_marked_where_the_intervals_do_not_overlap(record, low, high, mark):
    other = deepcopy(record)
    model = other["models"][0]
    model["by_length"]["bleu"][-1]["estimate"] = {"score": 12, "low": 10, "high": 15}
    model["beyond"]["bleu"][0]["estimate"] = {"score": low, "low": low, "high": high}
    table = next(table for table in length_tables(other, ("bleu",)) if "beyond" in table.title)
    assert table.rows[1][1].partition(")")[2].strip() == mark


def test_models_beyond_the_budget_and_scores_too_low_to_compare_are_reported(record):
    other = deepcopy(record)
    other["models"][0]["training"]["step"] = 12
    assert [warning for warning in list_warnings(other) if other["models"][0]["name"] in warning]
    for model, bleu in zip(other["models"], (0.5, 0.9, 0.2), strict=True):
        model["scores"]["bleu"]["score"] = bleu
    assert "0.9" in list_warnings(other)[-1]
    assert len(list_warnings(other)) == 2


def test_sentence_scores_match_their_signatures(record):
    said = record["sentences"]["shown"][0]
    metrics = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}
    for name, metric in metrics.items():
        found = metric.sentence_score(said["translations"][0]["text"], [said["reference"]])
        assert said["translations"][0][name] == pytest.approx(found.score, abs=0.01)
        assert record["signatures"]["sentences"][name] == str(metric.get_signature())


def test_a_comparison_with_other_text_is_rejected(plan, tmp_path):
    other = planned(tmp_path, "rnn", data={"held_out": 3})
    with pytest.raises(ValueError, match=r"other settings|not those this run began with"):
        compared(replace(other, out=plan.out))


def test_the_page_fits_any_width_in_light_and_dark(plan, open_page):
    for width in (360, 1280):
        for scheme in ("light", "dark"):
            page = open_page(
                plan.report("html").read_text(), viewport={"width": width, "height": 800}, color_scheme=scheme
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("article").count() == 15


def test_corrected_p_values_grow_and_keep_their_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


# --- learning curves

SVG = "{http://www.w3.org/2000/svg}"
values = st.lists(st.floats(0, 100), min_size=1, max_size=6)


def model(name, scores):
    validations = [{"minutes": 0.5 * (place + 1), "bleu": score, "loss": score} for place, score in enumerate(scores)]
    return {"name": name, "learning": validations}


@given(st.lists(values, min_size=1, max_size=7), st.text(max_size=40))
def test_every_validation_of_every_model_is_in_both_panels(scores, name):
    lines = [model(f"{number} {name}", each) for number, each in enumerate(scores)]
    drawing = ElementTree.fromstring(learning_chart(lines))
    curves = [each.get("points").split() for each in drawing.iter(f"{SVG}polyline")]
    assert [len(curve) for curve in curves] == 2 * [len(each) for each in scores]
    for curve in curves:
        across = [float(point.split(",")[0]) for point in curve]
        assert across == sorted(across)
    for curve, each in zip(curves, scores, strict=False):
        down = [float(point.split(",")[1]) for point in curve]
        assert each.index(max(each)) == down.index(min(down)) or max(each) - each[down.index(min(down))] < 0.5
