"""Korean particles, conjugation and lexicon rows."""

import pytest

from tools.phrasebook.korean import Predicate, Syllable, attach, conjugate, final
from tools.phrasebook.lexicon.adjectives import QUALITIES, SITUATIONS, STATES, TRAITS
from tools.phrasebook.lexicon.verbs import DATIVE, GENERIC, INTRANSITIVE, MOTION, SIT, STATIC, TRANSITIVE

# dictionary form, irregular class, then present, past, future, and the form before a noun (있는, 큰; for verbs 먹은)
VERBS = [
    ("먹다", "", "먹어요", "먹었어요", "먹을 거예요", "먹은"),
    ("가다", "", "가요", "갔어요", "갈 거예요", "간"),
    ("오다", "", "와요", "왔어요", "올 거예요", "온"),
    ("보다", "", "봐요", "봤어요", "볼 거예요", "본"),
    ("마시다", "", "마셔요", "마셨어요", "마실 거예요", "마신"),
    ("배우다", "", "배워요", "배웠어요", "배울 거예요", "배운"),
    ("주다", "", "줘요", "줬어요", "줄 거예요", "준"),
    ("보내다", "", "보내요", "보냈어요", "보낼 거예요", "보낸"),
    ("켜다", "", "켜요", "켰어요", "켤 거예요", "켠"),
    ("쉬다", "", "쉬어요", "쉬었어요", "쉴 거예요", "쉰"),
    ("되다", "", "돼요", "됐어요", "될 거예요", "된"),
    ("하다", "", "해요", "했어요", "할 거예요", "한"),
    ("공부|하다", "", "공부해요", "공부했어요", "공부할 거예요", "공부한"),
    ("닫다", "", "닫아요", "닫았어요", "닫을 거예요", "닫은"),
    ("씻다", "", "씻어요", "씻었어요", "씻을 거예요", "씻은"),
    ("입다", "", "입어요", "입었어요", "입을 거예요", "입은"),
    ("쓰다", "으", "써요", "썼어요", "쓸 거예요", "쓴"),
    ("끄다", "으", "꺼요", "껐어요", "끌 거예요", "끈"),
    ("모으다", "으", "모아요", "모았어요", "모을 거예요", "모은"),
    ("듣다", "ㄷ", "들어요", "들었어요", "들을 거예요", "들은"),
    ("걷다", "ㄷ", "걸어요", "걸었어요", "걸을 거예요", "걸은"),
    ("부르다", "르", "불러요", "불렀어요", "부를 거예요", "부른"),
    ("자르다", "르", "잘라요", "잘랐어요", "자를 거예요", "자른"),
    ("머무르다", "르", "머물러요", "머물렀어요", "머무를 거예요", "머무른"),
    ("돕다", "ㅂ", "도와요", "도왔어요", "도울 거예요", "도운"),
    ("굽다", "ㅂ", "구워요", "구웠어요", "구울 거예요", "구운"),
    ("짓다", "ㅅ", "지어요", "지었어요", "지을 거예요", "지은"),
    ("만들다", "ㄹ", "만들어요", "만들었어요", "만들 거예요", "만든"),
    ("팔다", "ㄹ", "팔아요", "팔았어요", "팔 거예요", "판"),
]

# dictionary form, irregular class, then present, past, attributive, negated
ADJECTIVES = [
    ("작다", "", "작아요", "작았어요", "작은", "안 작아요"),
    ("좋다", "", "좋아요", "좋았어요", "좋은", "안 좋아요"),
    ("좁다", "", "좁아요", "좁았어요", "좁은", "안 좁아요"),
    ("넓다", "", "넓어요", "넓었어요", "넓은", "안 넓어요"),
    ("비싸다", "", "비싸요", "비쌌어요", "비싼", "안 비싸요"),
    ("시다", "", "셔요", "셨어요", "신", "안 셔요"),
    ("느리다", "", "느려요", "느렸어요", "느린", "안 느려요"),
    ("깨끗하다", "", "깨끗해요", "깨끗했어요", "깨끗한", "안 깨끗해요"),
    ("맛있다", "", "맛있어요", "맛있었어요", "맛있는", "맛없어요"),
    ("재미있다", "", "재미있어요", "재미있었어요", "재미있는", "재미없어요"),
    ("크다", "으", "커요", "컸어요", "큰", "안 커요"),
    ("바쁘다", "으", "바빠요", "바빴어요", "바쁜", "안 바빠요"),
    ("예쁘다", "으", "예뻐요", "예뻤어요", "예쁜", "안 예뻐요"),
    ("길다", "ㄹ", "길어요", "길었어요", "긴", "안 길어요"),
    ("달다", "ㄹ", "달아요", "달았어요", "단", "안 달아요"),
    ("맵다", "ㅂ", "매워요", "매웠어요", "매운", "안 매워요"),
    ("무겁다", "ㅂ", "무거워요", "무거웠어요", "무거운", "안 무거워요"),
    ("빠르다", "르", "빨라요", "빨랐어요", "빠른", "안 빨라요"),
    ("게으르다", "르", "게을러요", "게을렀어요", "게으른", "안 게을러요"),
    ("빨갛다", "ㅎ", "빨개요", "빨갰어요", "빨간", "안 빨개요"),
    ("하얗다", "ㅎ", "하얘요", "하얬어요", "하얀", "안 하얘요"),
    ("퍼렇다", "ㅎ", "퍼레요", "퍼렜어요", "퍼런", "안 퍼레요"),
]

# the connecting endings, one row a class
CONNECTED = [
    ("먹다", "", "past", "고", "먹었고"),
    ("먹다", "", "future", "고", "먹고"),
    ("사다", "", "past", "지만", "샀지만"),
    ("오다", "", "past", "아서", "와서"),
    ("바쁘다", "으", "present", "아서", "바빠서"),
    ("돕다", "ㅂ", "present", "면", "도우면"),
    ("듣다", "ㄷ", "present", "면", "들으면"),
    ("놀다", "ㄹ", "present", "면", "놀면"),
    ("짓다", "ㅅ", "present", "면", "지으면"),
    ("하얗다", "ㅎ", "present", "면", "하야면"),
    ("오다", "", "past", "때", "왔을 때"),
    ("살다", "ㄹ", "present", "때", "살 때"),
    ("춥다", "ㅂ", "present", "때", "추울 때"),
    ("만들다", "ㄹ", "past", "동안", "만드는 동안"),
    ("읽다", "", "past", "동안", "읽는 동안"),
    ("걷다", "ㄷ", "past", "전에", "걷기 전에"),
    ("걷다", "ㄷ", "past", "후에", "걸은 후에"),
    ("열다", "ㄹ", "past", "후에", "연 후에"),
    ("굽다", "ㅂ", "past", "관형", "구운"),
    ("사다", "", "past", "관형", "산"),
]


def said(predicate, tense, ending="요", negative=False):
    return " ".join(form.text for form in conjugate(predicate, tense, ending, negative=negative))


@pytest.mark.parametrize("row", VERBS, ids=lambda row: row[0])
def test_verbs(row):
    dictionary, irregular, present, past, future, adnominal = row
    verb = Predicate.of(dictionary, irregular)
    assert (said(verb, "present"), said(verb, "past"), said(verb, "future")) == (present, past, future)
    assert said(verb, "past", "관형") == adnominal


@pytest.mark.parametrize("row", ADJECTIVES, ids=lambda row: row[0])
def test_adjectives(row):
    dictionary, irregular, present, past, attributive, negated = row
    adjective = Predicate.of(dictionary, irregular, adjective=True)
    assert (said(adjective, "present"), said(adjective, "past")) == (present, past)
    assert (adjective.attributive(), said(adjective, "present", negative=True)) == (attributive, negated)


@pytest.mark.parametrize("row", CONNECTED, ids=lambda row: f"{row[0]}-{row[3]}")
def test_connected(row):
    dictionary, irregular, tense, ending, expected = row
    assert said(Predicate.of(dictionary, irregular), tense, ending) == expected


@pytest.mark.parametrize(
    ("dictionary", "tense", "negative", "expected"),
    [
        ("공부|하다", "present", True, "공부 안 해요"),
        ("공부|하다", "future", True, "공부 안 할 거예요"),
        ("좋아하다", "present", True, "안 좋아해요"),
        ("춤을 추다", "present", False, "춤을 춰요"),
        ("춤을 추다", "past", True, "춤을 안 췄어요"),
        ("있다", "present", True, "없어요"),
        ("있다", "past", True, "없었어요"),
        ("있다", "future", True, "없을 거예요"),
        ("읽다", "can", False, "읽을 수 있어요"),
        ("읽다", "can", True, "읽을 수 없어요"),
        ("공부|하다", "can", True, "공부할 수 없어요"),
        ("읽다", "must", False, "읽어야 해요"),
        ("오다", "must", False, "와야 해요"),
    ],
)
def test_negation_and_modals(dictionary, tense, negative, expected):
    assert said(Predicate.of(dictionary), tense, negative=negative) == expected


@pytest.mark.parametrize(
    ("word", "particle", "expected"),
    [
        ("책", "topic", "책은"),
        ("개", "topic", "개는"),
        ("책", "subject", "책이"),
        ("개", "subject", "개가"),
        ("물", "object", "물을"),
        ("우유", "object", "우유를"),
        ("빵", "with", "빵과"),
        ("우유", "with", "우유와"),
        ("버스", "by", "버스로"),
        ("지하철", "by", "지하철로"),
        ("서울", "by", "서울로"),
        ("부산", "by", "부산으로"),
        ("숟가락", "by", "숟가락으로"),
        ("학생", "is", "학생이에요"),
        ("의사", "is", "의사예요"),
        ("학생", "was", "학생이었어요"),
        ("의사", "was", "의사였어요"),
        ("집", "at", "집에"),
        ("집", "in", "집에서"),
        ("지민", "to", "지민에게"),
    ],
)
def test_particles(word, particle, expected):
    assert attach(word, particle) == expected


def test_syllables_come_apart_and_together():
    assert Syllable.of("값") == ("ㄱ", "ㅏ", "ㅄ")
    for code in range(0xAC00, 0xD7A4):
        assert str(Syllable.of(chr(code))) == chr(code)
    assert final("닭") == "ㄺ"
    assert final("개") == ""
    with pytest.raises(ValueError, match="not a Hangul syllable"):
        Syllable.of("a")


def test_a_predicate_needs_a_dictionary_form_and_a_known_class():
    with pytest.raises(ValueError, match="no predicate"):
        Predicate.of("먹어")
    with pytest.raises(ValueError, match="no predicate"):
        Predicate.of("먹다", "ㄱ")


LEXICON_VERBS = (*TRANSITIVE, *GENERIC, *DATIVE, *INTRANSITIVE, *STATIC, *MOTION, *SIT)
LEXICON_ADJECTIVES = (*TRAITS, *STATES, *QUALITIES, *SITUATIONS)


@pytest.mark.parametrize("row", [*LEXICON_VERBS, *LEXICON_ADJECTIVES], ids=lambda row: f"{row.english}-{row.korean}")
def test_the_lexicon_marks_the_class_its_stem_shows(row):
    """ㄹ, 르 and ㅡ can be seen; of ㅂ ㄷ ㅅ ㅎ only that a marked stem ends so."""
    stem = Predicate.of(row.korean, row.irregular).stem
    last = Syllable.of(stem[-1])
    visible = "ㄹ" if last.tail == "ㄹ" else "르" if stem[-1] == "르" else "으" if (last[1:] == ("ㅡ", "")) else None
    if visible:
        assert row.irregular == visible
    else:
        assert row.irregular in ("", last.tail)
        assert row.irregular in ("", "ㅂ", "ㄷ", "ㅅ", "ㅎ")
