"""Korean word forms by rule: particles that fit the final sound, and verbs and adjectives in 해요체.

A Hangul syllable is lead, vowel and tail, and Unicode numbers them so: code = 0xAC00 + (lead * 21 + vowel) * 28 + tail.
All rules below are arithmetic on the last syllable of a stem. Nothing here knows any word: the classes of irregular
verbs come from the lexicon.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

IRREGULAR = ("", "ㅂ", "ㄷ", "르", "ㅎ", "으", "ㅅ", "ㄹ")

_LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_TAILS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
_FIRST = 0xAC00

# Stem vowel + 아/어 in an open syllable; a vowel not listed keeps its 어 apart (쉬어요).
_CONTRACTIONS = {
    "ㅏ": "ㅏ",
    "ㅓ": "ㅓ",
    "ㅐ": "ㅐ",
    "ㅔ": "ㅔ",
    "ㅕ": "ㅕ",
    "ㅗ": "ㅘ",
    "ㅜ": "ㅝ",
    "ㅣ": "ㅕ",
    "ㅚ": "ㅙ",
}
# ㅎ-irregulars melt the ending into the vowel: 빨갛 + 아 = 빨개, 하얗 + 아 = 하얘.
_MELTED = {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅔ", "ㅕ": "ㅖ"}
# Of the ㅂ-irregulars only these two keep a bright vowel: 도와요, 고와요.
_BRIGHT_BIEUP = ("돕", "곱")

# particle → (after a consonant, after a vowel)
PARTICLES = {
    "topic": ("은", "는"),
    "subject": ("이", "가"),
    "object": ("을", "를"),
    "with": ("과", "와"),
    "by": ("으로", "로"),
    "at": ("에", "에"),
    "in": ("에서", "에서"),
    "to": ("에게", "에게"),
    "is": ("이에요", "예요"),
    "was": ("이었어요", "였어요"),
}


class Syllable(NamedTuple):
    """One Hangul syllable taken apart; `tail` is "" where there is none."""

    lead: str
    vowel: str
    tail: str

    @classmethod
    def of(cls, character: str) -> "Syllable":
        """The parts of a Hangul character; anything else is a `ValueError`."""
        index = ord(character) - _FIRST
        if not 0 <= index < len(_LEADS) * len(_VOWELS) * len(_TAILS):
            raise ValueError(f"{character!r} is not a Hangul syllable")
        lead, rest = divmod(index, len(_VOWELS) * len(_TAILS))
        vowel, tail = divmod(rest, len(_TAILS))
        return cls(_LEADS[lead], _VOWELS[vowel], _TAILS[tail])

    def __str__(self) -> str:
        lead, vowel = _LEADS.index(self.lead), _VOWELS.index(self.vowel)
        return chr(_FIRST + (lead * len(_VOWELS) + vowel) * len(_TAILS) + _TAILS.index(self.tail))


def final(word: str) -> str:
    """The last consonant of a word, or "" where it ends in a vowel."""
    return Syllable.of(word[-1]).tail


@cache
def attach(word: str, particle: str) -> str:
    """The word with the form of the particle that fits its last sound: 책 + object = 책을, 서울 + by = 서울로."""
    closed, opened = PARTICLES[particle]
    tail = final(word)
    if particle == "by" and tail == "ㄹ":
        return word + opened
    return word + (closed if tail else opened)


def _with_tail(stem: str, tail: str) -> str:
    """The stem with another last consonant."""
    return stem[:-1] + str(Syllable.of(stem[-1])._replace(tail=tail))


def _with_vowel(stem: str, vowel: str) -> str:
    """The stem with another last vowel."""
    return stem[:-1] + str(Syllable.of(stem[-1])._replace(vowel=vowel))


def _harmony(stem: str) -> str:
    """아 after a stem whose last vowel is bright (ㅏ, ㅗ), 어 after all others."""
    return "아" if Syllable.of(stem[-1]).vowel in "ㅏㅑㅗ" else "어"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A Korean verb or adjective: its stem and irregular class, and what the negation does to it.

    `prefix` is what stands before the place of 안 (공부 in 공부하다, 키가 in 키가 크다); `spaced` says that it is
    a word of its own even without negation.
    """

    stem: str
    irregular: str = ""
    prefix: str = ""
    spaced: bool = False
    adjective: bool = False

    @classmethod
    def of(cls, dictionary: str, irregular: str = "", *, adjective: bool = False) -> "Predicate":
        """The predicate of a dictionary form, written with the marks of the lexicon: "공부|하다", "키가 크다"."""
        if not dictionary.endswith("다") or irregular not in IRREGULAR:
            raise ValueError(f"no predicate: {dictionary!r}, irregular class {irregular!r}")
        spaced = " " in dictionary
        prefix, _, stem = dictionary[:-1].rpartition(" " if spaced else "|")
        return cls(stem, irregular, prefix, spaced, adjective)

    @property
    def existential(self) -> bool:
        """Is this 있다 or built with it (맛있다, 재미있다)? Then it takes 는 and turns to 없다."""
        return self.stem.endswith(("있", "없"))

    def negated(self) -> "Predicate | None":
        """The predicate that says the opposite in one word: 있다 → 없다; None where 안 does it."""
        if not self.stem.endswith("있"):
            return None
        return Predicate(self.stem[:-1] + "없", self.irregular, self.prefix, self.spaced, self.adjective)

    def infinitive(self) -> str:
        """The stem with 아/어, contracted as it is spoken: 먹어, 가, 와, 마셔, 들어, 불러, 도와, 빨개."""
        stem = self.stem
        if stem.endswith("하"):
            return _with_vowel(stem, "ㅐ")
        if self.irregular == "ㅎ":
            return _with_tail(_with_vowel(stem, _MELTED[Syllable.of(stem[-1]).vowel]), "")
        if self.irregular == "ㅂ":
            return _with_tail(stem, "") + ("와" if stem in _BRIGHT_BIEUP else "워")
        if self.irregular == "ㄷ":
            return _with_tail(stem, "ㄹ") + _harmony(stem)
        if self.irregular == "ㅅ":
            return _with_tail(stem, "") + _harmony(stem)
        if self.irregular == "르":
            before = _with_tail(stem[:-1], "ㄹ")
            return before + ("라" if _harmony(before) == "아" else "러")
        if self.irregular == "으":
            bright = len(stem) > 1 and _harmony(stem[:-1]) == "아"
            return _with_vowel(stem, "ㅏ" if bright else "ㅓ")
        return _contracted(stem)

    def past_stem(self) -> str:
        """The stem of the past: 먹었, 갔, 했, 마셨."""
        return _with_tail(self.infinitive(), "ㅆ")

    def plain(self, ending: str) -> str:
        """The stem with an ending that changes nothing: 고, 지만, 기."""
        return self.stem + ending

    def eu(self, ending: str) -> str:
        """The stem with an ending that needs 으 after a consonant: "ㄴ", "ㄹ" or "면"."""
        stem = self.stem
        if self.irregular == "ㅂ":
            stem = _with_tail(stem, "") + "우"
        elif self.irregular == "ㅎ":
            stem = _with_tail(stem, "")
        elif self.irregular in ("ㄷ", "ㅅ"):
            # What lost its consonant still behaves as if it had one: 지은, 들은.
            stem = _with_tail(stem, "ㄹ" if self.irregular == "ㄷ" else "") + "으"
        elif self.irregular == "ㄹ":
            return stem + ending if ending == "면" else _with_tail(stem, ending)
        elif final(stem):
            stem += "으"
        return stem + ending if ending == "면" else _with_tail(stem, ending)

    def present_adnominal(self) -> str:
        """The verb before a noun, now: 먹는, 만드는, 있는."""
        return (_with_tail(self.stem, "") if self.irregular == "ㄹ" else self.stem) + "는"

    def attributive(self) -> str:
        """The adjective before its noun: 큰, 작은, 매운, 빨간, 긴, 맛있는."""
        return self.stem + "는" if self.existential else self.eu("ㄴ")


def _contracted(stem: str) -> str:
    """A regular stem with 아/어: 먹어, 가, 봐, 배워, 쉬어."""
    syllable = Syllable.of(stem[-1])
    if syllable.tail or syllable.vowel not in _CONTRACTIONS:
        return stem + _harmony(stem)
    return _with_vowel(stem, _CONTRACTIONS[syllable.vowel])


# How a clause may end. "요" ends the sentence; the others tie the clause to what follows.
Ending = Literal["요", "고", "지만", "아서", "면", "때", "동안", "전에", "후에", "관형"]
Tense = Literal["past", "present", "future", "can", "must"]


class Form(NamedTuple):
    """A word of a conjugated predicate: `role` is "verb", "negation" (안), "lexical" (때) or "auxiliary" (거예요)."""

    text: str
    role: str


@cache
def conjugate(predicate: Predicate, tense: Tense, ending: Ending = "요", *, negative: bool = False) -> tuple[Form, ...]:
    """The words of a predicate in a clause: 공부 안 했어요, 읽을 수 있어요, 왔을 때."""
    opposite = predicate.negated() if negative and tense != "can" else None
    chosen = opposite or predicate
    words = _ended(chosen, tense, ending, negative=negative)
    said = negative and opposite is None and tense != "can"
    before = [Form(chosen.prefix, "verb")] if chosen.prefix and (chosen.spaced or said) else []
    if said:
        before.append(Form("안", "negation"))
    elif chosen.prefix and not chosen.spaced:
        words[0] = Form(chosen.prefix + words[0].text, words[0].role)
    return (*before, *words)


def _ended(predicate: Predicate, tense: Tense, ending: Ending, *, negative: bool) -> list[Form]:
    """The conjugated stem with what follows it, without prefix and 안."""
    if ending == "요":
        return _finished(predicate, tense, negative=negative)
    if tense == "can" and ending in ("고", "지만"):
        return [Form(predicate.eu("ㄹ"), "verb"), Form("수", "auxiliary"), Form(_able(negative) + ending, "auxiliary")]
    past = tense == "past"
    single = {
        "고": predicate.past_stem() + "고" if past else predicate.plain("고"),
        "지만": predicate.past_stem() + "지만" if past else predicate.plain("지만"),
        "아서": predicate.infinitive() + "서",
        "면": predicate.eu("면"),
        "관형": predicate.eu("ㄴ"),
        "때": predicate.past_stem() + "을" if past else predicate.eu("ㄹ"),
        "동안": predicate.present_adnominal(),
        "전에": predicate.plain("기"),
        "후에": predicate.eu("ㄴ"),
    }[ending]
    follows = [Form(ending, "lexical")] if ending in ("때", "동안", "전에", "후에") else []
    return [Form(single, "verb"), *follows]


def _able(negative: bool) -> str:
    """The stem of "can" and "cannot"."""
    return "없" if negative else "있"


def _finished(predicate: Predicate, tense: Tense, *, negative: bool) -> list[Form]:
    """The end of a sentence: 먹었어요, 먹어요, 먹을 거예요, 먹을 수 있어요, 먹어야 해요."""
    if tense == "past":
        return [Form(predicate.past_stem() + "어요", "verb")]
    if tense == "future":
        return [Form(predicate.eu("ㄹ"), "verb"), Form("거예요", "auxiliary")]
    if tense == "can":
        return [Form(predicate.eu("ㄹ"), "verb"), Form("수", "auxiliary"), Form(_able(negative) + "어요", "auxiliary")]
    if tense == "must":
        return [Form(predicate.infinitive() + "야", "verb"), Form("해요", "auxiliary")]
    return [Form(predicate.infinitive() + "요", "verb")]
