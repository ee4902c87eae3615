"""Choices for a budget: only for settings that are open, from budget and corpus alone."""

import pytest

from albums import write_pictures
from corpora import corpus
from softgaze.config import parse_config, resolve
from softgaze.data.captions import CaptionCorpus
from softgaze.data.corpus import Corpus, write_lines
from softgaze.data.processors import BackboneProcessor, ImageProcessor
from softgaze.training.budget_choices import (
    BYTES_PER_TOKEN,
    PHOTO_UPDATES_PER_MINUTE,
    choose_for_budget,
    corpus_tokens,
    expected_updates,
)

LAYERS = {"model.options.encoder_layers", "model.options.decoder_layers"}
OPEN = {"training.warmup", "training.warm_start", "training.batch_tokens", "model.options.dropout", "validation.every"}
OPEN |= LAYERS


@pytest.fixture
def text(tmp_path):
    return corpus(tmp_path)


def config(**sections):
    return parse_config(sections)


def chosen(text, **sections):
    return {choice.setting: choice.value for choice in choose_for_budget(config(**sections), text)[1]}


@pytest.mark.parametrize("sections", [{}, {"budget": {"epochs": 3}}, {"budget": {"patience": 2}}])
def test_without_steps_or_minutes_there_is_nothing_to_choose(text, sections):
    assert choose_for_budget(config(**sections), text) == (config(**sections), [])


@pytest.mark.parametrize("minutes", [2, 5, 10, 30, 60])
def test_choices_are_applied_and_every_one_has_a_reason(text, minutes):
    result, choices = choose_for_budget(config(budget={"minutes": minutes}), text)
    assert result.validation.every == {choice.setting: choice.value for choice in choices}["validation.every"]
    assert all(choice.reason for choice in choices)
    assert {choice.setting for choice in choices} <= OPEN
    resolve(result)


def test_few_minutes_train_few_layers_unless_layers_or_size_are_given(text):
    assert set(chosen(text, budget={"minutes": 2})) >= LAYERS
    for model in ({"options": {"encoder_layers": 3}}, {"size": "small"}, {"arch": "rnn-luong"}):
        assert not LAYERS & set(chosen(text, budget={"minutes": 2}, model=model))
    for budget in ({"minutes": 5}, {"steps": 100}):
        assert not LAYERS & set(chosen(text, budget=budget))


def test_more_minutes_never_shrink_the_batch(text):
    batches = [chosen(text, budget={"minutes": minutes}).get("training.batch_tokens", 1024) for minutes in range(1, 90)]
    assert batches == sorted(batches)
    assert batches[0] == 1024 < batches[-1]


@pytest.mark.parametrize(
    "sections",
    [
        {"budget": {"minutes": 60, "steps": 900}},
        {"training": {"batch_tokens": 1500}},
        {"training": {"accumulate": 2}},
        {"model": {"size": "small"}},
        {"model": {"arch": "rnn-luong"}},
    ],
)
def test_the_batch_is_chosen_for_minutes_of_a_tiny_transformer_alone(text, sections):
    assert "training.batch_tokens" not in chosen(text, **{"budget": {"minutes": 60}, **sections})


def test_larger_batches_leave_fewer_updates_and_more_tokens():
    configs = [config(budget={"minutes": 10}, training={"batch_tokens": tokens}) for tokens in (512, 1024, 4096)]
    updates = [expected_updates(each) for each in configs]
    assert updates == sorted(updates, reverse=True)
    tokens = [count * each.training.batch_tokens for count, each in zip(updates, configs, strict=True)]
    assert tokens == sorted(tokens)


def test_many_epochs_have_more_dropout(text):
    per_epoch = corpus_tokens(text) / 1024
    few, many = (int(epochs * per_epoch) + 1 for epochs in (10, 30))
    assert "model.options.dropout" not in chosen(text, budget={"steps": few})
    for size in ("tiny", "small", "big"):
        default = resolve(config(model={"size": size})).model.options["dropout"]
        options = {"budget": {"steps": 1000 * many}, "model": {"size": size}}
        assert chosen(text, **options).get("model.options.dropout", default) >= default
    assert chosen(text, budget={"steps": many})["model.options.dropout"] > 0.1
    assert "model.options.dropout" not in chosen(text, budget={"steps": many}, model={"arch": "rnn-luong"})


def test_many_epochs_start_from_random_weights(text):
    per_epoch = corpus_tokens(text) / 1024
    few, many = (int(epochs * per_epoch) + 1 for epochs in (10, 30))
    assert "training.warm_start" not in chosen(text, budget={"steps": few})
    assert chosen(text, budget={"steps": many})["training.warm_start"] == "none"
    for kept in ({"training": {"warm_start": "statistics"}}, {"model": {"arch": "rnn"}}):
        assert "training.warm_start" not in chosen(text, budget={"steps": many}, **kept)


def test_given_settings_are_kept(text):
    given = {
        "training": {"warmup": 7, "warm_start": "statistics"},
        "model": {"options": {"dropout": 0.4}},
        "validation": {"every": 9},
    }
    assert chosen(text, budget={"steps": 100}, **given) == {}


def test_the_warmup_is_a_small_part_of_the_budget_and_never_above_the_default(text):
    default = resolve(config()).training.warmup
    warmups = [
        chosen(text, budget={"steps": steps}).get("training.warmup", default) for steps in (10, 300, 1200, 10**5)
    ]
    assert warmups == sorted(warmups)
    assert warmups[0] <= 2
    assert warmups[-1] == default


def test_a_few_epochs_need_no_dropout(tmp_path):
    few, many = (corpus(tmp_path, name=name, pairs=pairs) for name, pairs in (("few", 20), ("many", 2000)))
    per_update = 1024 / (corpus_tokens(many) / 2000)  # pairs
    steps = int(2 * 2000 / per_update)  # two epochs of the larger corpus
    assert chosen(many, budget={"steps": steps})["model.options.dropout"] == 0.0
    assert chosen(few, budget={"steps": steps})["model.options.dropout"] > 0
    assert "model.options.dropout" not in chosen(many, budget={"steps": steps}, training={"r_drop": 5.0})  # needs it


def test_the_tokens_of_a_sorted_corpus_are_not_those_of_its_shortest_pairs(tmp_path):
    lines = sorted(("wort " * (number % 20 + 1) for number in range(3000)), key=len)
    paths = tmp_path / "sorted.en", tmp_path / "sorted.de"
    for path in paths:
        write_lines(path, lines)
    exact = sum(map(len, lines)) / BYTES_PER_TOKEN
    assert corpus_tokens(Corpus.of([paths])) == pytest.approx(exact, rel=0.02)


# --- photos -----------------------------------------------------------------------------------------------------

PHOTOS = {"arch": "captioner", "options": {"encoder": "efficientnet"}}


def photos(folder, processor=None, **options):
    processor = processor or BackboneProcessor("efficientnet", 224, 32, 1280)
    return CaptionCorpus.of(folder / "images", write_pictures(folder, **options), processor, lambda error: None)


@pytest.mark.parametrize("minutes", [1, 5, 15, 60])
def test_a_captioner_of_photos_gets_a_size_and_validations_for_its_minutes(tmp_path, minutes):
    result, choices = choose_for_budget(config(model=PHOTOS, budget={"minutes": minutes}), photos(tmp_path))
    values = {choice.setting: choice.value for choice in choices}
    assert all(choice.reason for choice in choices)
    assert result.model.size == values["model.size"] == ("tiny" if minutes < 3 else "small")
    assert result.validation.every == values["validation.every"]
    assert result.budget.epochs == values["budget.epochs"]
    assert result.budget.minutes == minutes
    resolve(result)


def test_every_photo_is_seen_equally_often_however_many_captions_it_has(tmp_path):
    views = [
        chosen(photos(tmp_path / str(captions), captions=captions), model=PHOTOS, budget={"minutes": 9})[
            "budget.epochs"
        ]
        * captions
        for captions in (1, 5, 25)
    ]
    assert len({*views}) == 1


def test_more_photos_need_rarer_validations(tmp_path):
    few, many = photos(tmp_path / "few"), photos(tmp_path / "many", count=450)
    intervals = [chosen(each, model=PHOTOS, budget={"minutes": 60})["validation.every"] for each in (few, many)]
    assert intervals[0] < intervals[1]


def test_a_budget_too_short_to_overfit_has_fewer_validations(tmp_path):
    album, validations = photos(tmp_path, count=450), []
    for minutes in (2, 240):
        model = {**PHOTOS, "size": "small"}
        result, _ = choose_for_budget(config(model=model, budget={"minutes": minutes}), album)
        updates = min(PHOTO_UPDATES_PER_MINUTE["small"] * minutes, result.budget.epochs * 900 * 49 / 2048)
        validations.append(updates / result.validation.every)
    assert validations[0] < 0.6 * validations[1]


def test_given_settings_of_a_captioner_are_kept(tmp_path):
    given = {"model": {**PHOTOS, "size": "base"}, "training": {"warmup": 7}, "validation": {"every": 9}}
    assert chosen(photos(tmp_path), budget={"minutes": 30, "epochs": 3}, **given) == {}


def test_without_a_budget_or_a_backbone_nothing_is_chosen_for_images(tmp_path):
    assert chosen(photos(tmp_path), model=PHOTOS) == {}
    drawn = photos(tmp_path, ImageProcessor(32, 4))
    assert chosen(drawn, model={"arch": "captioner"}, budget={"minutes": 5}) == {}


def test_more_minutes_never_shorten_the_warmup_or_the_time_between_validations(tmp_path):
    album = photos(tmp_path, captions=400)
    configs = [
        choose_for_budget(config(model={**PHOTOS, "size": "small"}, budget={"minutes": each}), album)[0]
        for each in (0.2, 1, 3, 10, 30, 120)
    ]
    warmups = [resolve(each).training.warmup for each in configs]
    assert warmups == sorted(warmups)
    assert warmups[-1] > warmups[0]
    intervals = [each.validation.every for each in configs]
    assert intervals == sorted(intervals)
