"""The words of the built-in English–Korean corpus, as tables; `phrasebook` is the grammar that puts them together.

A kind ("food", "fruit", "reading" …) says what may go with what, so that nobody reads soup or meets a tired bridge.
The Korean of a verb or adjective is its dictionary form and the class of its irregularity: ㅂ ㄷ 르 ㅎ 으 ㅅ ㄹ, or
"" where it is regular. A bar splits a noun from its 하다 (공부|하다), for the negation goes between: 공부 안 해요. A
space (키가 크다) does the same and is written.
"""

from typing import NamedTuple


class Person(NamedTuple):
    """Somebody who acts: a name ("Minsu"), a role ("doctor") or one of the family ("son", always mine)."""

    english: str
    korean: str


class Noun(NamedTuple):
    """A thing, an animal, a subject: what it is, and how English counts it and Korean counts it.

    `number` is "count", "mass" (bread), "plural" (shoes), "the" (always definite: the piano) or "bare" (soccer).
    """

    english: str
    korean: str
    kinds: tuple[str, ...]
    number: str
    counter: str


class Place(NamedTuple):
    """A place with its English preposition and article, and the kinds of things done there."""

    preposition: str
    article: str
    english: str
    korean: str
    kinds: tuple[str, ...]


class Verb(NamedTuple):
    """An English verb with its Korean predicate, what it may take (`objects`), where and how it is done."""

    english: str
    past: str
    korean: str
    irregular: str
    objects: tuple[str, ...]
    places: tuple[str, ...]
    manners: tuple[str, ...]


class Adjective(NamedTuple):
    """An adjective and the kinds it describes."""

    english: str
    korean: str
    irregular: str
    kinds: tuple[str, ...]


class Fixed(NamedTuple):
    """A phrase translated as a whole, with its word links in the format of the gold files."""

    english: str
    korean: str
    gold: str
    tags: tuple[str, ...]


def _nouns(kinds: str, number: str, *rows: str) -> tuple[Noun, ...]:
    """Nouns that share their kinds: each row is "english, korean, counter, further kinds", the last two optional."""
    nouns = []
    for row in rows:
        english, korean, counter, more = ([cell.strip() for cell in row.split(",")] + ["", ""])[:4]
        nouns.append(Noun(english, korean, tuple(f"{kinds} {more}".split()), number, counter))
    return tuple(nouns)


# Names end in vowels and in consonants, so that 은/는, 이/가 and 와/과 all occur.
NAMES = (
    Person("Minsu", "민수"),
    Person("Jimin", "지민"),
    Person("Sujin", "수진"),
    Person("Yuna", "유나"),
    Person("Junho", "준호"),
    Person("Seoyeon", "서연"),
    Person("Taeho", "태호"),
    Person("Donghyun", "동현"),
    Person("Boram", "보람"),
    Person("Hanbyeol", "한별"),
    Person("Mom", "엄마"),
    Person("Dad", "아빠"),
)

# Nobody here is spoken of with honorific -시- (no teacher, no grandmother): one speech level throughout.
ROLES = (
    Person("student", "학생"),
    Person("doctor", "의사"),
    Person("nurse", "간호사"),
    Person("cook", "요리사"),
    Person("farmer", "농부"),
    Person("singer", "가수"),
    Person("painter", "화가"),
    Person("writer", "작가"),
    Person("police officer", "경찰관"),
    Person("firefighter", "소방관"),
    Person("driver", "운전사"),
    Person("scientist", "과학자"),
    Person("soldier", "군인"),
    Person("actor", "배우"),
)

# People who are somebody without a profession: "the girl", never "became a girl".
OTHERS = (
    Person("child", "아이"),
    Person("boy", "남자아이"),
    Person("girl", "여자아이"),
    Person("man", "남자"),
    Person("woman", "여자"),
)

FAMILY = (
    Person("friend", "친구"),
    Person("son", "아들"),
    Person("daughter", "딸"),
    Person("cousin", "사촌"),
    Person("younger brother", "남동생"),
    Person("younger sister", "여동생"),
)

ANIMALS = _nouns(
    "animal",
    "count",
    "dog, 개, 마리, pet runner",
    "puppy, 강아지, 마리, pet runner",
    "cat, 고양이, 마리, pet runner",
    "rabbit, 토끼, 마리, pet runner",
    "horse, 말, 마리, runner",
    "cow, 소, 마리",
    "bird, 새, 마리, pet",
    "tiger, 호랑이, 마리",
    "bear, 곰, 마리",
    "duck, 오리, 마리, pet",
)

THINGS = (
    *_nouns(
        "food fruit washable cuttable fresh",
        "count",
        "apple, 사과, 개, red sour",
        "peach, 복숭아, 개",
        "orange, 오렌지, 개, sour",
        "watermelon, 수박, 개, big",
        "banana, 바나나, 개, yellow",
    ),
    *_nouns(
        "food vegetable washable cuttable fresh",
        "count",
        "tomato, 토마토, 개, red plantable",
        "potato, 감자, 개, baked plantable",
        "carrot, 당근, 개, plantable",
        "cucumber, 오이, 개, plantable",
    ),
    *_nouns(
        "food dish",
        "mass",
        "rice, 밥, , warm",
        "soup, 국, , handmade warm hot salty",
        "meat, 고기, , cooked grocery fresh baked cuttable salty",
        "kimchi, 김치, , grocery handmade spicy cuttable salty sour",
        "ramen, 라면, , grocery spicy warm salty hot",
        "bibimbap, 비빔밥, , handmade spicy",
        "fish, 생선, , cooked grocery fresh baked",
    ),
    *_nouns(
        "food made cuttable",
        "mass",
        "bread, 빵, , baked dessert",
    ),
    *_nouns(
        "food made",
        "count",
        "cake, 케이크, 개, baked dessert cuttable",
        "cookie, 과자, 개, baked dessert",
        "sandwich, 샌드위치, 개, cuttable",
        "pizza, 피자, , baked cuttable",
        "salad, 샐러드, , fresh",
    ),
    *_nouns("meal", "bare", "breakfast, 아침밥", "lunch, 점심", "dinner, 저녁밥"),
    *_nouns(
        "drink",
        "mass",
        "water, 물, 잔, cold",
        "milk, 우유, 잔, warm cold fresh",
        "coffee, 커피, 잔, warm cold hot",
        "tea, 차, 잔, warm hot",
        "juice, 주스, 잔, cold sweet",
    ),
    *_nouns(
        "reading buyable",
        "count",
        "book, 책, 권, thick small lost gift owned famous difficult important",
        "magazine, 잡지, 권, gift owned",
        "novel, 소설, , written famous story difficult",
        "poem, 시, , written story difficult",
        "dictionary, 사전, 권, thick owned",
    ),
    *_nouns(
        "reading",
        "count",
        "newspaper, 신문, , buyable",
        "letter, 편지, 통, written gift lost short important",
        "report, 보고서, , written important",
    ),
    *_nouns(
        "clothes buyable owned gift colour",
        "count",
        "shirt, 셔츠, 벌",
        "coat, 코트, 벌, thick warm",
        "dress, 원피스, 벌, pretty",
        "skirt, 치마, 벌, pretty long",
        "sweater, 스웨터, 벌, thick warm",
    ),
    *_nouns("clothes buyable owned gift colour", "plural", "pants, 바지, , long"),
    *_nouns(
        "footwear buyable owned gift colour",
        "plural",
        "shoes, 신발, 켤레,",
        "socks, 양말, 켤레",
    ),
    *_nouns("headwear buyable owned gift colour lost", "count", "hat, 모자, 개, pretty", "mask, 마스크, 개"),
    *_nouns("headwear buyable owned lost", "plural", "glasses, 안경"),
    *_nouns(
        "thing buyable owned",
        "count",
        "bag, 가방, 개, heavy gift colour lost big",
        "umbrella, 우산, 개, gift colour lost long",
        "phone, 전화기, 대, lost",
        "camera, 카메라, 대, lost gift fixed",
        "computer, 컴퓨터, 대, fixed switched",
        "clock, 시계, 개, fixed gift lost",
        "cup, 컵, 개, washable tableware gift small colour",
        "bowl, 그릇, 개, washable tableware small",
        "knife, 칼, 개, long",
        "pencil, 연필, 자루, lost long small",
        "pen, 펜, 자루, lost gift small",
        "box, 상자, 개, heavy openable big",
        "ball, 공, 개, gift lost colour",
        "doll, 인형, 개, gift cute lost",
        "map, 지도, 장, lost",
        "ring, 반지, 개, lost gift pretty",
    ),
    *_nouns(
        "thing small lost pickable", "count", "key, 열쇠, 개, owned", "wallet, 지갑, 개, owned gift buyable colour"
    ),
    *_nouns(
        "pickable small pretty",
        "count",
        "coin, 동전, 개,",
        "stone, 돌, 개,",
        "leaf, 나뭇잎, 장, colour",
    ),
    *_nouns("gift lost gifted", "mass", "money, 돈, , owned"),
    *_nouns(
        "furniture buyable big",
        "count",
        "desk, 책상, 개, surface",
        "table, 탁자, 개, surface",
        "chair, 의자, 개, surface fixed seat",
        "bed, 침대, 개, surface owned seat lying",
        "sofa, 소파, 개, surface owned seat lying",
    ),
    *_nouns(
        "device switched fixed buyable owned", "count", "radio, 라디오, 대, small", "television, 텔레비전, 대, big"
    ),
    *_nouns("switched", "the", "light, 불"),
    *_nouns("openable big", "the", "door, 문", "window, 창문"),
    *_nouns(
        "vehicle fixed buyable owned colour fast", "count", "car, 자동차, 대, big", "bicycle, 자전거, 대, borrowed"
    ),
    *_nouns("awaited", "the", "bus, 버스", "train, 기차", "taxi, 택시"),
    *_nouns(
        "plant pretty drawn",
        "count",
        "tree, 나무, 그루, big plantable",
        "flower, 꽃, 송이, buyable gift plantable colour small",
        "rose, 장미, 송이, buyable gift plantable colour",
    ),
    *_nouns("building drawn big owned", "count", "house, 집, , roomy"),
    *_nouns("building big", "count", "hotel, 호텔, , famous roomy"),
    *_nouns(
        "room",
        "the",
        "room, 방",
        "kitchen, 부엌",
        "living room, 거실",
        "classroom, 교실",
    ),
    *_nouns("show famous", "count", "movie, 영화, 편, story"),
    *_nouns("heard", "count", "song, 노래, 곡, sung famous story tune"),
    *_nouns("heard", "mass", "music, 음악, , famous tune"),
    *_nouns("heard", "the", "news, 뉴스"),
    *_nouns("picture pretty", "count", "picture, 그림, 장, gift drawn famous buyable"),
    *_nouns(
        "subject",
        "bare",
        "Korean, 한국어",
        "English, 영어",
        "math, 수학",
        "history, 역사",
        "science, 과학",
    ),
    *_nouns("instrument", "the", "piano, 피아노", "guitar, 기타", "violin, 바이올린"),
    *_nouns("sport", "bare", "soccer, 축구", "baseball, 야구", "basketball, 농구", "tennis, 테니스"),
    *_nouns("chore", "bare", "homework, 숙제", "housework, 집안일"),
    *_nouns("sky pretty", "the", "moon, 달", "sea, 바다"),
)

NOUNS = (*ANIMALS, *THINGS)

PLACES = (
    Place("at", "", "home", "집", ("home", "house")),
    Place("in", "the", "room", "방", ("home", "room")),
    Place("in", "the", "living room", "거실", ("home", "room")),
    Place("in", "the", "kitchen", "부엌", ("kitchen", "room")),
    Place("in", "the", "garden", "정원", ("outdoors", "garden")),
    Place("at", "", "school", "학교", ("study", "goal")),
    Place("at", "the", "library", "도서관", ("study", "goal", "visited")),
    Place("in", "the", "classroom", "교실", ("study", "room")),
    Place("at", "the", "university", "대학교", ("study", "goal", "visited")),
    Place("in", "the", "park", "공원", ("outdoors", "sports", "goal")),
    Place("at", "the", "playground", "놀이터", ("outdoors", "goal")),
    Place("at", "the", "beach", "바닷가", ("outdoors", "water", "goal")),
    Place("at", "the", "lake", "호수", ("outdoors", "water", "goal")),
    Place("in", "the", "river", "강", ("water",)),
    Place("at", "the", "pool", "수영장", ("water", "goal")),
    Place("at", "the", "gym", "체육관", ("sports", "goal")),
    Place("in", "the", "forest", "숲", ("outdoors", "goal")),
    Place("on", "the", "mountain", "산", ("outdoors", "goal")),
    Place("at", "the", "market", "시장", ("shop", "goal")),
    Place("at", "the", "store", "가게", ("shop", "goal")),
    Place("at", "the", "supermarket", "슈퍼마켓", ("shop", "goal")),
    Place("at", "the", "department store", "백화점", ("shop", "goal")),
    Place("at", "the", "restaurant", "식당", ("eating", "goal")),
    Place("at", "the", "cafe", "카페", ("eating", "cafe", "goal")),
    Place("at", "the", "bakery", "빵집", ("goal",)),
    Place("at", "the", "hospital", "병원", ("work", "goal", "visited")),
    Place("at", "the", "bank", "은행", ("work", "goal")),
    Place("at", "the", "office", "사무실", ("work", "goal", "room")),
    Place("at", "the", "factory", "공장", ("work", "goal", "visited")),
    Place("on", "the", "farm", "농장", ("work", "goal", "visited")),
    Place("at", "the", "station", "역", ("meeting", "goal")),
    Place("at", "the", "airport", "공항", ("meeting", "goal")),
    Place("at", "the", "museum", "박물관", ("meeting", "goal", "visited")),
    Place("at", "the", "theater", "극장", ("theater", "meeting", "goal")),
    Place("at", "the", "zoo", "동물원", ("meeting", "goal", "visited")),
    Place("in", "the", "village", "마을", ("lived", "goal", "visited")),
    Place("in", "", "Seoul", "서울", ("lived", "city", "goal", "visited")),
    Place("in", "", "Busan", "부산", ("lived", "city", "goal", "visited")),
    Place("in", "", "Daegu", "대구", ("lived", "city", "goal", "visited")),
    Place("in", "", "Japan", "일본", ("lived", "city", "goal", "visited")),
    Place("in", "", "Canada", "캐나다", ("lived", "city", "goal", "visited")),
)


def _verb(english: str, past: str, korean: str, objects: str = "", places: str = "", manners: str = "") -> Verb:
    """A row of a verb table; the irregular class stands after the Korean verb: "듣다 ㄷ"."""
    stem, _, irregular = korean.rpartition(" ") if korean[-1] in "ㅂㄷ르ㅎ으ㅅㄹ" else (korean, "", "")
    return Verb(english, past, stem, irregular, tuple(objects.split()), tuple(places.split()), tuple(manners.split()))


TRANSITIVE = (
    _verb("eat", "ate", "먹다", "food meal", "eating home outdoors", "speed alone"),
    _verb("drink", "drank", "마시다", "drink", "eating home outdoors", "speed alone"),
    _verb("buy", "bought", "사다", "fruit vegetable made grocery drink buyable", "shop", "again"),
    _verb("sell", "sold", "팔다 ㄹ", "fruit vegetable made grocery buyable", "shop"),
    _verb("make", "made", "만들다 ㄹ", "made handmade furniture", "house kitchen", "speed care alone"),
    _verb("cook", "cooked", "요리|하다", "cooked", "house kitchen", "care alone"),
    _verb("bake", "baked", "굽다 ㅂ", "baked", "house kitchen", "care alone"),
    _verb("wash", "washed", "씻다", "washable", "kitchen", "speed care"),
    _verb("cut", "cut", "자르다 르", "cuttable", "kitchen", "speed care"),
    _verb("read", "read", "읽다", "reading", "study home cafe outdoors", "speed alone quiet"),
    _verb("write", "wrote", "쓰다 으", "written", "study home cafe", "speed care alone"),
    _verb("do", "did", "하다", "chore", "home", "speed hard alone"),
    _verb("watch", "watched", "보다", "show sport", "home", "alone quiet"),
    _verb("see", "saw", "보다", "animal sky", "outdoors", "again"),
    _verb("listen to", "listened to", "듣다 ㄷ", "heard", "home cafe outdoors", "alone quiet"),
    _verb("sing", "sang", "부르다 르", "sung", "home outdoors", "well alone"),
    _verb("study", "studied", "공부|하다", "subject", "study home cafe", "hard alone"),
    _verb("learn", "learned", "배우다", "subject instrument sport", "study", "speed hard"),
    _verb("practice", "practiced", "연습|하다", "instrument sport", "study", "hard alone"),
    _verb("choose", "chose", "고르다 르", "clothes footwear headwear reading", "shop", "speed care"),
    _verb("borrow", "borrowed", "빌리다", "reading borrowed", "study", "again"),
    _verb("look for", "looked for", "찾다", "lost", "home study meeting", "hard again"),
    _verb("fix", "fixed", "고치다", "fixed", "home", "speed care alone"),
    _verb("open", "opened", "열다 ㄹ", "openable", "home", "quiet speed"),
    _verb("close", "closed", "닫다", "openable", "home", "quiet speed"),
    _verb("turn on", "turned on", "켜다", "switched", "home", "speed"),
    _verb("turn off", "turned off", "끄다 으", "switched", "home", "speed"),
    _verb("clean", "cleaned", "청소|하다", "room", "", "speed hard alone"),
    _verb("build", "built", "짓다 ㅅ", "roomy", "lived city", "speed"),
    _verb("draw", "drew", "그리다", "drawn animal", "home study outdoors", "well care"),
    _verb("pick up", "picked up", "줍다 ㅂ", "pickable", "outdoors meeting", "speed"),
    _verb("plant", "planted", "심다", "plantable", "garden work", "care"),
    _verb("raise", "raised", "기르다 르", "pet plantable", "home garden", "care alone"),
    _verb("wear", "wore", "입다", "clothes"),
    _verb("wear", "wore", "신다", "footwear"),
    _verb("wear", "wore", "쓰다 으", "headwear"),
    _verb("meet", "met", "만나다", "person", "meeting eating outdoors study", "again"),
    _verb("help", "helped", "돕다 ㅂ", "person", "home study work shop", "again"),
    _verb("invite", "invited", "초대|하다", "person", "", "again"),
    _verb("wait for", "waited for", "기다리다", "person awaited", "meeting outdoors", "quiet alone"),
)

# English likes and hates things in general: "likes dogs", "likes bread", never "likes a dog".
GENERIC = (
    _verb("like", "liked", "좋아하다", "food drink pet show heard subject sport plant reading"),
    _verb("hate", "hated", "싫어하다", "vegetable dish subject sport chore"),
)

DATIVE = (
    _verb("give", "gave", "주다", "gift", "home meeting study"),
    _verb("send", "sent", "보내다", "gift"),
    _verb("show", "showed", "보여주다", "gift picture", "home meeting study"),
    _verb("lend", "lent", "빌려주다", "reading borrowed gifted", "study"),
    _verb("teach", "taught", "가르치다", "subject instrument sport", "study", "care"),
)

INTRANSITIVE = (
    _verb("sleep", "slept", "자다", "", "home", "well early alone quiet"),
    _verb("run", "ran", "달리다", "", "outdoors sports", "fast hard"),
    _verb("walk", "walked", "걷다 ㄷ", "", "outdoors", "fast quiet alone"),
    _verb("swim", "swam", "수영|하다", "", "water", "fast well"),
    _verb("dance", "danced", "춤을 추다", "", "outdoors theater home", "alone"),
    _verb("cry", "cried", "울다 ㄹ", "", "home outdoors theater", "alone"),
    _verb("laugh", "laughed", "웃다", "", "home cafe theater"),
    _verb("rest", "rested", "쉬다", "", "home outdoors cafe", "alone quiet"),
    _verb("work", "worked", "일|하다", "", "work shop eating", "hard alone"),
    _verb("play", "played", "놀다 ㄹ", "", "outdoors home", "well alone"),
    _verb("exercise", "exercised", "운동|하다", "", "sports outdoors", "hard alone"),
    _verb("talk", "talked", "이야기|하다", "", "eating home meeting", "quiet"),
)

# Where one comes to be stands with 에, as the goal of a movement does.
STATIC = (_verb("live", "lived", "살다 ㄹ", "", "lived", "alone"),)

MOTION = (
    _verb("go", "went", "가다", "", "goal house", "again alone early late fast"),
    _verb("come", "came", "오다", "", "goal house", "again alone early late fast"),
    _verb("return", "returned", "돌아가다", "", "goal house", "alone early late fast"),
    _verb("arrive", "arrived", "도착|하다", "", "goal", "early late"),
    _verb("move", "moved", "이사|하다", "", "lived", ""),
    _verb("visit", "visited", "방문|하다", "", "visited", "again alone"),
)

# Only what an animal does too.
ANIMAL_VERBS = ("sleep", "run", "play", "walk", "rest")

SURFACES = tuple(noun for noun in THINGS if "surface" in noun.kinds)
SIT = (
    _verb("sit", "sat", "앉다", "seat", "", "quiet alone"),
    _verb("lie", "lay", "눕다 ㅂ", "lying", "", "quiet alone"),
)


def _adjective(english: str, korean: str, kinds: str) -> Adjective:
    """A row of an adjective table; the irregular class stands after the Korean adjective: "무겁다 ㅂ"."""
    stem, _, irregular = korean.rpartition(" ") if korean[-1] in "ㅂㄷ르ㅎ으ㅅㄹ" else (korean, "", "")
    return Adjective(english, stem, irregular, tuple(kinds.split()))


# What a person is for long stands before the noun and after "is"; what a person is for now only after "is".
TRAITS = (
    _adjective("kind", "친절하다", "person"),
    _adjective("brave", "용감하다", "person"),
    _adjective("lazy", "게으르다 르", "person"),
    _adjective("smart", "똑똑하다", "person"),
    _adjective("healthy", "건강하다", "person"),
    _adjective("tall", "키가 크다 으", "person"),
    _adjective("strong", "힘이 세다", "person"),
)

STATES = (
    _adjective("tired", "피곤하다", "person"),
    _adjective("busy", "바쁘다 으", "person"),
    _adjective("sick", "아프다 으", "person"),
    _adjective("happy", "행복하다", "person"),
    _adjective("hungry", "배고프다 으", "person"),
    _adjective("thirsty", "목마르다 르", "person"),
)

QUALITIES = (
    _adjective("big", "크다 으", "animal big"),
    _adjective("small", "작다", "pet small thing"),
    _adjective("long", "길다 ㄹ", "long"),
    _adjective("short", "짧다", "long short story"),
    _adjective("heavy", "무겁다 ㅂ", "heavy furniture thick"),
    _adjective("expensive", "비싸다", "buyable"),
    _adjective("cheap", "싸다", "buyable fruit vegetable"),
    _adjective("clean", "깨끗하다", "clothes footwear room tableware"),
    _adjective("dirty", "더럽다 ㅂ", "clothes footwear room"),
    _adjective("good", "좋다", "reading show buyable"),
    _adjective("pretty", "예쁘다 으", "pretty clothes footwear headwear"),
    _adjective("beautiful", "아름답다 ㅂ", "plant picture sky tune"),
    _adjective("cute", "귀엽다 ㅂ", "pet cute"),
    _adjective("red", "빨갛다 ㅎ", "colour red"),
    _adjective("yellow", "노랗다 ㅎ", "colour yellow"),
    _adjective("blue", "파랗다 ㅎ", "colour"),
    _adjective("white", "하얗다 ㅎ", "colour pet"),
    _adjective("black", "까맣다 ㅎ", "colour pet"),
    _adjective("warm", "따뜻하다", "warm"),
    _adjective("cold", "차갑다 ㅂ", "cold"),
    _adjective("hot", "뜨겁다 ㅂ", "hot"),
    _adjective("delicious", "맛있다", "food meal drink"),
    _adjective("sweet", "달다 ㄹ", "fruit dessert sweet"),
    _adjective("sour", "시다", "sour"),
    _adjective("salty", "짜다", "salty"),
    _adjective("spicy", "맵다 ㅂ", "spicy"),
    _adjective("fresh", "신선하다", "fresh"),
    _adjective("thick", "두껍다 ㅂ", "thick"),
    _adjective("easy", "쉽다 ㅂ", "subject instrument sport chore"),
    _adjective("difficult", "어렵다 ㅂ", "subject instrument sport chore difficult"),
    _adjective("important", "중요하다", "subject important"),
    _adjective("interesting", "재미있다", "reading show sport subject"),
    _adjective("boring", "지루하다", "reading show"),
    _adjective("sad", "슬프다 으", "story"),
    _adjective("famous", "유명하다", "famous"),
    _adjective("fast", "빠르다 르", "fast awaited"),
    _adjective("dark", "어둡다 ㅂ", "room"),
    _adjective("wide", "넓다", "room roomy"),
)

# Places are far, near, quiet; a place is described only after "is".
SITUATIONS = (
    _adjective("far", "멀다 ㄹ", "goal"),
    _adjective("near", "가깝다 ㅂ", "goal"),
    _adjective("quiet", "조용하다", "goal home study"),
    _adjective("noisy", "시끄럽다 ㅂ", "goal"),
    _adjective("clean", "깨끗하다", "goal"),
    _adjective("dirty", "더럽다 ㅂ", "work"),
    _adjective("famous", "유명하다", "visited eating"),
)

# 새 is no verb in Korean, so "new" stands only before its noun.
NEW = ("new", "새")
NEW_KINDS = ("buyable", "building")

# tags: which tenses a time may go with
TIMES = (
    Fixed("yesterday", "어제", "0-0", ("past",)),
    Fixed("last night", "어젯밤에", "0-0 1-0", ("past",)),
    Fixed("last week", "지난주에", "0-0 1-0", ("past",)),
    Fixed("last year", "작년에", "0-0 1-0", ("past", "long")),
    Fixed("this morning", "오늘 아침에", "0-0 1-1", ("past",)),
    Fixed("today", "오늘", "0-0", ("past", "future")),
    Fixed("tomorrow", "내일", "0-0", ("future",)),
    Fixed("tonight", "오늘 밤에", "0-0 0-1", ("future",)),
    Fixed("next week", "다음 주에", "0-0 1-1", ("future",)),
    Fixed("next year", "내년에", "0-0 1-0", ("future", "long")),
    Fixed("on Monday", "월요일에", "0p0 1-0", ("past", "future")),
    Fixed("on Wednesday", "수요일에", "0p0 1-0", ("past", "future")),
    Fixed("on Friday", "금요일에", "0p0 1-0", ("past", "future")),
    Fixed("on Saturday", "토요일에", "0p0 1-0", ("past", "future")),
    Fixed("on Sunday", "일요일에", "0p0 1-0", ("past", "future")),
    Fixed("every day", "매일", "0-0 1-0", ("present",)),
    Fixed("every morning", "매일 아침", "0-0 1-1", ("present",)),
    Fixed("on weekends", "주말에", "0p0 1-0", ("present",)),
    Fixed("in the morning", "아침에", "0p0 1p0 2-0", ("present", "past")),
    Fixed("in the afternoon", "오후에", "0p0 1p0 2-0", ("present", "past", "future")),
    Fixed("in the evening", "저녁에", "0p0 1p0 2-0", ("present", "past", "future")),
    Fixed("at night", "밤에", "0p0 1-0", ("present",)),
    Fixed("in winter", "겨울에", "0p0 1-0", ("present", "long")),
)

# For somebody's state, and for where a thing is.
STATE_TIMES = (
    Fixed("now", "지금", "0-0", ("present",)),
    Fixed("today", "오늘", "0-0", ("present", "past")),
    Fixed("yesterday", "어제", "0-0", ("past",)),
    Fixed("last night", "어젯밤에", "0-0 1-0", ("past",)),
)

FREQUENCIES = (
    Fixed("often", "자주", "0-0", ()),
    Fixed("always", "항상", "0-0", ()),
    Fixed("sometimes", "가끔", "0-0", ()),
    Fixed("usually", "보통", "0-0", ()),
)

# tags: the manners a verb row names
MANNERS = (
    Fixed("quickly", "빨리", "0-0", ("speed", "fast")),
    Fixed("slowly", "천천히", "0-0", ("speed", "fast")),
    Fixed("carefully", "조심스럽게", "0-0", ("care",)),
    Fixed("alone", "혼자", "0-0", ("alone",)),
    Fixed("again", "다시", "0-0", ("again",)),
    Fixed("quietly", "조용히", "0-0", ("quiet",)),
    Fixed("diligently", "열심히", "0-0", ("hard",)),
    Fixed("well", "잘", "0-0", ("well",)),
    Fixed("early", "일찍", "0-0", ("early",)),
    Fixed("late", "늦게", "0-0", ("late",)),
)

DEGREES = (
    Fixed("very", "아주", "0-0", ("attributive",)),
    Fixed("really", "정말", "0-0", ("attributive",)),
    Fixed("too", "너무", "0-0", ()),
)

VEHICLES = (
    ("bus", "버스"),
    ("train", "기차"),
    ("subway", "지하철"),
    ("taxi", "택시"),
    ("car", "자동차"),
    ("bicycle", "자전거"),
)

# What is done with what: verb, tool, and whether English gives it an article.
TOOLS = (
    ("eat", "a", "spoon", "숟가락"),
    ("eat", "a", "fork", "포크"),
    ("eat", "", "chopsticks", "젓가락"),
    ("cut", "a", "knife", "칼"),
    ("write", "a", "pencil", "연필"),
    ("write", "a", "pen", "펜"),
    ("draw", "a", "pencil", "연필"),
    ("draw", "a", "brush", "붓"),
)

# English words, which of them carry the meaning, and the Korean noun of position with its particle.
POSITIONS = (
    ("on", "on", "위에"),
    ("under", "under", "아래에"),
    ("next to", "next", "옆에"),
    ("behind", "behind", "뒤에"),
    ("in front of", "front", "앞에"),
)

NUMBERS = (("two", "두"), ("three", "세"), ("four", "네"))

# English verb and past (none: an adjective), Korean subject (or none), Korean predicate, irregular class.
WEATHER = (
    ("rain", "rained", "비가", "오다", ""),
    ("snow", "snowed", "눈이", "오다", ""),
    ("cold", "", "", "춥다", "ㅂ"),
    ("hot", "", "", "덥다", "ㅂ"),
)

PLURALS = {"child": "children", "man": "men", "woman": "women", "leaf": "leaves", "knife": "knives"}

# Which goals take another particle than 에.
GOAL_PARTICLES = {"move": "by", "return": "by", "visit": "object"}

# Where something is put stands with 에: 정원에 심어요.
PLACE_PARTICLES = {"plant": "at"}

# What is done in company.
SOCIAL = (
    *("eat", "drink", "make", "cook", "watch", "listen to", "study", "practice", "sing", "build", "clean", "go"),
    *("come", "walk", "run", "swim", "dance", "rest", "work", "play", "exercise", "talk", "return", "visit", "live"),
)

# Which verbs a relative clause may be made of: "the book that Jimin bought".
RELATIVE = ("buy", "sell", "make", "cook", "bake", "write", "borrow", "choose", "draw", "fix", "plant", "wash")

# What is only being made has no history: nobody writes the report that Minsu borrowed.
CREATING = ("make", "cook", "bake", "write", "draw", "build")

# What takes long enough for "while".
LASTING = (
    "eat",
    "read",
    "write",
    "watch",
    "study",
    "cook",
    "clean",
    "practice",
    "make",
    "fix",
    "wait for",
    "listen to",
)

# Why somebody else does something, and what makes a difference to it; thirst is not one of them.
CAUSES = ("tired", "busy", "sick")

# 안 before a long adjective sounds clumsy (안 아름다워요), so these are not negated.
UNNEGATED = ("beautiful", "brave", "lazy", "sad", "dark", "healthy")

# Nobody plants a delicious potato: what is not yet there is not described.
UNDESCRIBED = ("plant",)

# What may be mine or ours: no news, no sea.
POSSESSED = ("owned", "pet", "gift", "food", "drink", "reading", "furniture", "written", "device")

# Nobody does these every day.
RARE = ("build", "move")

# What may take, or be done within, months and years.
LONG_TERM = (
    *("build", "move", "visit", "learn", "study", "raise", "plant", "teach", "practice", "write"),
    *("go", "come", "buy", "sell", "swim", "work"),
)

# The sense of these depends on the object (wear: 입다, 신다, 쓰다): nothing to hold out.
UNSPLIT = ("wear",)
