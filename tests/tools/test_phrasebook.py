"""The grammar of the phrasebook: properties of all sentences that it generates."""

import random
from collections import Counter
from itertools import pairwise

import pytest

from softgaze.errors import DataError
from tools.phrasebook import LIMIT, LONG, LONGEST, SPLITS, Sentence, generate, generate_with_lengths, words
from tools.phrasebook.alignment import Link
from tools.phrasebook.english import article, plural, third_person
from tools.phrasebook.held_out import SPARSE, fits_split, split_of
from tools.phrasebook.korean import final
from tools.phrasebook.lexicon.adjectives import QUALITIES
from tools.phrasebook.lexicon.nouns import FAMILY, NAMES, NOUNS, OTHERS, PLACES, ROLES
from tools.phrasebook.lexicon.verbs import TRANSITIVE
from tools.phrasebook.questions import what
from tools.phrasebook.sentence_builder import SentenceBuilder
from tools.phrasebook.sentences import KINDS, render_sentence
from tools.phrasebook.splits import word_types
from tools.phrasebook.word_order import make_sentence


@pytest.fixture(scope="session")
def book():
    return generate(20_000, seed=0)


@pytest.fixture(scope="session")
def everything(book):
    return [sentence for split in SPLITS for sentence in getattr(book, split)]


def test_the_same_seed_gives_the_same_book_and_another_seed_another():
    book = generate(100, seed=7)
    assert generate(100, seed=7) == book
    assert generate(100, seed=8).train != book.train


def test_every_word_and_construction_of_dev_and_test_is_in_train(book):
    known = {word for sentence in book.train for word in word_types(sentence.source.lower() + " " + sentence.target)}
    kinds = {sentence.kind for sentence in book.train}
    for sentence in (*book.dev, *book.test):
        assert known.issuperset(word_types(sentence.source.lower() + " " + sentence.target))
        assert sentence.kind in kinds


def test_lengths(book):
    lengths = {split: [len(sentence.source.split()) for sentence in getattr(book, split)] for split in SPLITS}
    assert set(range(3, LONGEST + 1)) <= set(lengths["train"])
    assert set(lengths["long"]) <= set(LONG)
    assert len(set(lengths["long"])) >= 15
    shares = {}
    for split in ("train", "dev", "test"):
        assert max(lengths[split]) <= LONGEST
        shares[split] = sum(length <= 12 for length in lengths[split]) / len(lengths[split])
        assert 0.72 < shares[split] < 0.92
        assert 0.06 < sum(length > 16 for length in lengths[split]) / len(lengths[split]) < 0.16
    assert max(shares.values()) - min(shares.values()) < 0.08


@pytest.mark.parametrize("lengths", [range(1, 9), range(9, 17), range(33, LONGEST + 1), range(61, 71)])
def test_length_can_be_dialled(book, lengths):
    found = generate_with_lengths(book.train, lengths, 20, seed=1)
    assert len({sentence.source for sentence in found}) == 20
    assert {len(sentence.source.split()) for sentence in found} <= set(lengths)
    assert found == generate_with_lengths(book.train, lengths, 20, seed=1)
    assert found != generate_with_lengths(book.train, lengths, 20, seed=2)
    known = {word for sentence in book.train for word in word_types(sentence.source.lower())}
    owners = {split_of(pair) for sentence in found for pair in sentence.combinations}
    assert all(known.issuperset(word_types(sentence.source.lower())) for sentence in found)
    assert owners == {"train", "test"}
    assert all(fits_split(sentence.combinations, "test") for sentence in found)  # longer ones are no easier otherwise


def test_lengths_no_sentence_has_are_refused(book):
    with pytest.raises(DataError, match="exhausted at 0 of 1 sentences of 1 to 1 words"):
        generate_with_lengths(book.train, range(1, 2), 1)


def test_small_books():
    small = generate(60, seed=3)
    assert len(small.train) == 60
    assert len(small.dev) <= 3
    assert len(generate(1).train) == 1


@pytest.mark.parametrize("pairs", [0, -5, LIMIT + 1])
def test_too_few_or_too_many_is_one_clear_line(pairs):
    with pytest.raises(DataError, match=r"phrasebook: .* pairs requested") as caught:
        generate(pairs)
    assert "\n" not in str(caught.value)


def test_dev_and_test_hold_combinations_train_never_has(book):
    trained = {pair for sentence in (*book.train, *book.long) for pair in sentence.combinations}
    assert {split_of(pair) for pair in trained} == {"train"}
    for split in ("dev", "test"):
        for sentence in getattr(book, split):
            sides = {split_of(pair) for pair in sentence.combinations}
            assert split in sides
            assert sides <= {split, "train"}
            assert set(sentence.combinations) - trained


def test_held_out_pairs_are_not_in_the_text_of_train(book):
    """Read from the words themselves, whatever the sentences say about their combinations."""
    verbs = {form: verb for verb in TRANSITIVE for form in (verb.english, third_person(verb.english), verb.past)}
    nouns = {noun.english for noun in NOUNS}
    determiners = {"a", "an", "the", "my", "our", "this", "that"}
    adjectives = {adjective.english for adjective in QUALITIES}
    found = Counter()
    for split in ("train", "dev", "test"):
        for sentence in getattr(book, split):
            tokens = [word for word in word_types(sentence.source.lower()) if word not in determiners]
            for first, following in pairwise(tokens):
                base = verbs[first].english if first in verbs else first
                if following in nouns and base not in SPARSE and (first in verbs or first in adjectives):
                    found[split, split_of(f"{base} {following}")] += 1
    assert found["train", "train"] > 5_000
    assert found["train", "dev"] == found["train", "test"] == found["dev", "test"] == found["test", "dev"] == 0
    assert min(found["dev", "dev"], found["test", "test"]) > 100


FUNCTION_WORDS = {
    *("a", "an", "the", "it", "you", "of", "to", "at", "in", "on", "by", "with", "there"),
    *("and", "but", "because", "if", "that", "do", "does", "did"),
    *("am", "is", "are", "was", "were", "will", "can", "must"),
}


def test_links_are_in_range_and_cover(everything):
    for sentence in everything:
        english, korean = sentence.source.split(), sentence.target.split()
        assert all(link.source < len(english) and link.target < len(korean) for link in sentence.links)
        assert {link.target for link in sentence.links} == set(range(len(korean))), sentence
        linked = {link.source for link in sentence.links}
        assert linked == set(range(len(english))), sentence
        sure = {link.source for link in sentence.links if link.sure}
        meaning = {
            index for index, word in enumerate(word_types(sentence.source.lower())) if word not in FUNCTION_WORDS
        }
        loose = {word_types(sentence.source.lower())[index] for index in meaning - sure}
        # the second half of "listen to", "wake up", "next to", "in front of" is no word of its own
        assert loose <= {"up", "for", "off"}, (sentence, loose)


def test_a_known_sentence_is_aligned_as_by_hand(book):
    """Whatever the grammar draws, "not", numbers and verbs of these sentences must be linked so."""
    for sentence in book.train:
        english, korean = word_types(sentence.source), word_types(sentence.target)
        links = {(english[link.source], korean[link.target]): link.sure for link in sentence.links}
        if "안" in korean:
            assert links.get(("not", "안")), sentence
        if "때" in korean:
            assert links.get(("when", "때")) or links.get(("When", "때")), sentence
        for source, target in (("yesterday", "어제"), ("tomorrow", "내일"), ("my", "제")):
            if target in korean:
                assert links.get((source, target)) or links.get((source.title(), target)), sentence


def test_particles_fit_the_last_sound(everything):
    """Judged from the words of the lexicon alone: noun + particle, wherever it is written."""
    nouns = {row.korean for row in (*NOUNS, *PLACES, *NAMES, *ROLES, *OTHERS)}
    nouns |= {row.korean for row in FAMILY} | {noun.counter for noun in NOUNS if noun.counter}
    closed, opened = {"은", "이", "을", "과", "으로", "이에요", "이었어요"}, {"는", "가", "를", "와", "예요", "였어요"}
    seen = Counter()
    for token in (token for sentence in everything for token in word_types(sentence.target)):
        for size in range(1, 5):
            noun, particle = token[:-size], token[-size:]
            if noun in nouns and particle in closed | opened | {"로"}:
                tail = final(noun)
                seen[particle] += 1
                assert (particle == "로" and tail in ("", "ㄹ")) or (particle in (closed if tail else opened)), token
                assert not (particle == "으로" and tail == "ㄹ"), token
    assert min(seen[particle] for particle in closed | opened | {"로"}) > 10


FORMS = {
    third_person: "go goes, carry carries, play plays, watch watches, listen_to listens_to, have has",
    plural: "dog dogs, puppy puppies, leaf leaves, tomato tomatoes, child children, comic_book comic_books",
    article: "apple an, useful a, umbrella an, house a",
}


@pytest.mark.parametrize("rule", FORMS)
def test_english_forms(rule):
    for word, form in (pair.split() for pair in FORMS[rule].split(", ")):
        assert rule(word.replace("_", " ")) == form.replace("_", " ")


def test_a_and_an(everything):
    for sentence in everything:
        tokens = word_types(sentence.source.lower())
        for first, following in pairwise(tokens):
            if first in ("a", "an"):
                assert first == ("an" if following[0] in "aeiou" and following != "useful" else "a"), sentence.source


def test_words_are_many_and_all_of_them(everything, book):
    vocabulary = set(words())
    assert len(vocabulary) >= 300
    assert {word for sentence in everything for word in word_types(sentence.source.lower())} <= vocabulary
    trained = {word for sentence in book.train for word in word_types(sentence.source.lower())}
    assert len(vocabulary - trained) <= 10


def test_a_verb_that_looks_past_is_past(everything):
    """ "I read a book" would be both 읽어요 and 읽었어요; only "reads" and "do … read" are present."""
    checked = 0
    for sentence in everything:
        if sentence.kind == "transitive" and sentence.source.endswith("."):
            english, korean = word_types(sentence.source), word_types(sentence.target)
            for base, present in (("read", "읽어요"), ("cut", "잘라요")):
                if present in korean:
                    checked += 1
                    assert base not in english or "not" in english, sentence
    assert checked > 20


def test_e_and_eseo_by_verb(everything):
    """One sleeps 집에서 and goes 집에; the short sentences show it without another clause in the way."""
    for sentence in everything:
        tokens = word_types(sentence.target)
        if sentence.kind in ("motion", "static", "seated", "located", "existing"):
            assert not any(token.endswith("에서") for token in tokens), sentence
        if sentence.kind == "intransitive":
            places = {row.korean + "에" for row in PLACES}
            assert not places & set(tokens), sentence


def test_one_english_sentence_has_one_korean_sentence(everything):
    """Also across seeds: the same English drawn elsewhere must mean the same, with the same links."""
    known = {}
    for sentence in (*everything, *generate(3_000, seed=1).train, *generate(3_000, seed=2).train):
        seen = known.setdefault(sentence.source, sentence)
        assert (seen.target, seen.links) == (sentence.target, sentence.links), sentence.source


class NarrowRandom(random.Random):
    """Dice that take every long list down to three of its items, so that the same sentences come up again and again."""

    def __init__(self, batch):
        super().__init__(batch)
        self.batch = batch

    def choice(self, items):
        if len(items) <= 20:
            return super().choice(items)
        return items[(self.batch * 7 + self.randrange(3)) % len(items)]


def test_one_korean_sentence_however_often_it_is_said():
    """A few words at a time, every construction is drawn until English sentences repeat: their Korean must, too."""
    known, repeated = {}, 0
    for batch in range(20):
        rng = NarrowRandom(batch)
        drawn = [make for _, _, make in KINDS for _ in range(30)] + [
            lambda builder: make_sentence(what(builder), question=True)
        ] * 60
        for make in drawn:
            builder = SentenceBuilder(rng)
            said = make(builder)
            if said:
                sentence = render_sentence(builder, said, "")
                repeated += sentence.source in known
                assert known.setdefault(sentence.source, sentence.target) == sentence.target, sentence.source
    assert repeated > 1_000


def test_gold_is_sorted_zero_based_and_sure_or_possible(everything):
    sentence = Sentence("The dog runs.", "개는 달려요.", (Link(0, 0, False), Link(1, 0, True), Link(2, 1, True)))
    assert sentence.gold == "0p0 1-0 2-1"
    assert all(list(one.links) == sorted(set(one.links)) for one in everything[:2000])


def test_no_e_after_today_and_no_dangshin(everything):
    for sentence in everything:
        tokens = set(word_types(sentence.target))
        assert not tokens & {"오늘에", "어제에", "내일에", "지금에", "매일에", "당신", "당신은", "당신이"}
        assert sentence.target[-1] == sentence.source[-1]
        assert sentence.target[-2] == "요", sentence.target
