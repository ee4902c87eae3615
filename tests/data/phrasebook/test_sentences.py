"""Sentences: one Korean for one English, and both written as they should be."""

import random
import re

from data.phrasebook.lines import types
from softgaze.data.phrasebook import Link, Sentence, generate
from softgaze.data.phrasebook.draft import Draft
from softgaze.data.phrasebook.questions import what
from softgaze.data.phrasebook.sentences import KINDS, written_down
from softgaze.data.phrasebook.word_order import spoken


def test_one_english_sentence_has_one_korean_sentence(everything):
    """Also across seeds: the same English drawn elsewhere must mean the same, with the same links."""
    known = {}
    for sentence in (*everything, *generate(3_000, seed=1).train, *generate(3_000, seed=2).train):
        seen = known.setdefault(sentence.source, sentence)
        assert (seen.target, seen.links) == (sentence.target, sentence.links), sentence.source


class NarrowDice(random.Random):
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
        dice = NarrowDice(batch)
        drawn = [make for _, _, make in KINDS for _ in range(30)] + [
            lambda draft: spoken(what(draft), question=True)
        ] * 60
        for make in drawn:
            draft = Draft(dice)
            said = make(draft)
            if said:
                sentence = written_down(draft, said, "")
                repeated += sentence.source in known
                assert known.setdefault(sentence.source, sentence.target) == sentence.target, sentence.source
    assert repeated > 1_000


def test_gold_is_sorted_zero_based_and_sure_or_possible(everything):
    sentence = Sentence("The dog runs.", "개는 달려요.", (Link(0, 0, False), Link(1, 0, True), Link(2, 1, True)))
    assert sentence.gold == "0p0 1-0 2-1"
    for one in everything[:2000]:
        assert re.fullmatch(r"\d+[-p]\d+( \d+[-p]\d+)*", one.gold)
        assert list(one.links) == sorted(set(one.links))


def test_no_e_after_today_and_no_dangshin(everything):
    for sentence in everything:
        tokens = set(types(sentence.target))
        assert not tokens & {"오늘에", "어제에", "내일에", "지금에", "매일에", "당신", "당신은", "당신이"}
        assert sentence.target[-1] == sentence.source[-1]
        assert sentence.target[-2] == "요", sentence.target
