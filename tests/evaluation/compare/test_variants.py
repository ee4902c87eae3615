import pytest

from checks import TEXT
from softgaze.config import Config, resolve
from softgaze.errors import UsageError
from softgaze.evaluation.compare.variants import ARCHS, BUILT_IN_ARCHS, parse_variants


def test_the_usual_models_are_all_families_with_their_own_defaults():
    assert set(ARCHS.split(",")) == set(TEXT)
    for variant in parse_variants(ARCHS, {}):
        expected = resolve(Config.model_validate({"model": {"arch": variant.name}}))
        assert variant.config({}) == expected


def test_the_built_in_text_also_has_the_positions_of_the_paper():
    last = parse_variants(BUILT_IN_ARCHS, {})[-1]
    assert last.config({}).model.options["positions"] == "sinusoidal"


def test_options_follow_colons_and_are_typed():
    one, other = parse_variants("rnn-luong:score=dot, transformer:heads=2:dropout=1e-1", {})
    assert one.config({}).model.options["score"] == "dot"
    assert other.config({}).model.options["heads"] == 2
    assert other.config({}).model.options["dropout"] == 0.1
    assert other.config({}).model.options["positions"] == "rotary"


def test_what_all_share_stays_and_what_a_variant_says_wins():
    shared = {"model": {"size": "small", "options": {"dropout": 0.3}}, "training": {"seed": 7}}
    one, other = parse_variants("rnn,rnn:dropout=0.1", shared)
    assert one.config(shared).model.options["dropout"] == 0.3
    assert other.config(shared).model.options["dropout"] == 0.1
    assert {each.config(shared).model.size for each in (one, other)} == {"small"}
    assert {each.config(shared).training.seed for each in (one, other)} == {7}


def test_what_all_share_may_make_two_names_one_model():
    with pytest.raises(UsageError, match="must differ"):
        parse_variants("rnn,rnn:dropout=0.3", {"model": {"options": {"dropout": 0.3}}})


def test_directories_are_distinct_and_safe():
    names = [each.directory for each in parse_variants("rnn,rnn:width=16,rnn:width=32:layers=1", {})]
    assert len(set(names)) == 3
    assert not any(set(name) & set('/\\:*?"<>|') for name in names)


@pytest.mark.parametrize(
    ("archs", "said"),
    [
        ("rnn,captioner", "--archs captioner: it reads pictures or features, and `compare` trains on text"),
        ("rnn-loung", "--archs rnn-loung: unknown arch 'rnn-loung'; did you mean rnn-luong"),
        ("rnn-luong:scor=dot", "rnn-luong has no option 'scor'; did you mean score"),
        ("rnn-luong:score=dto", "unknown score 'dto'; did you mean dot?"),
        ("rnn-luong:score", "options are NAME=VALUE after a colon"),
        ("rnn-luong:=dot", "options are NAME=VALUE after a colon"),
        ("rnn-luong:score=", "options are NAME=VALUE after a colon"),
        ("rnn,,conv", "one of 'rnn,,conv' is empty"),
        ("", "one of '' is empty"),
        ("conv, conv", "names conv twice"),
        ("rnn,transformer,transformer:positions=rotary", "transformer and transformer:positions=rotary are the same"),
        ("rnn:dropout=0.1,rnn:dropout=1e-1", "rnn:dropout=0.1 and rnn:dropout=1e-1 are the same model"),
        ("transformer:heads=3", "a width of 128 cannot be divided among 3 heads"),
        ("transformer:dropout=much", "the option dropout of transformer takes float, not 'much'"),
        ("transformer:layers.x=1", "transformer has no option 'layers'"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_model(archs, said):
    with pytest.raises(UsageError) as error:
        parse_variants(archs, {})
    assert said in str(error.value)
    assert "\n" not in str(error.value)
