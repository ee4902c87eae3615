"""Adjectives of people, things and locations."""

from tools.phrasebook.lexicon.types import adjective

# What a person is for long stands before the noun and after "is"; what a person is for now only after "is".
TRAITS = (
    adjective("kind", "친절하다", "person"),
    adjective("brave", "용감하다", "person"),
    adjective("lazy", "게으르다 르", "person"),
    adjective("smart", "똑똑하다", "person"),
    adjective("healthy", "건강하다", "person"),
    adjective("tall", "키가 크다 으", "person"),
    adjective("strong", "힘이 세다", "person"),
)

STATES = (
    adjective("tired", "피곤하다", "person"),
    adjective("busy", "바쁘다 으", "person"),
    adjective("sick", "아프다 으", "person"),
    adjective("happy", "행복하다", "person"),
    adjective("hungry", "배고프다 으", "person"),
    adjective("thirsty", "목마르다 르", "person"),
)

QUALITIES = (
    adjective("big", "크다 으", "animal big"),
    adjective("small", "작다", "pet small thing"),
    adjective("long", "길다 ㄹ", "long"),
    adjective("short", "짧다", "long short story"),
    adjective("heavy", "무겁다 ㅂ", "heavy furniture thick"),
    adjective("expensive", "비싸다", "buyable"),
    adjective("cheap", "싸다", "buyable fruit vegetable"),
    adjective("clean", "깨끗하다", "clothes footwear room tableware"),
    adjective("dirty", "더럽다 ㅂ", "clothes footwear room"),
    adjective("good", "좋다", "reading show buyable"),
    adjective("pretty", "예쁘다 으", "pretty clothes footwear headwear"),
    adjective("beautiful", "아름답다 ㅂ", "plant picture sky tune"),
    adjective("cute", "귀엽다 ㅂ", "pet cute"),
    adjective("red", "빨갛다 ㅎ", "colour red"),
    adjective("yellow", "노랗다 ㅎ", "colour yellow"),
    adjective("blue", "파랗다 ㅎ", "colour"),
    adjective("white", "하얗다 ㅎ", "colour pet"),
    adjective("black", "까맣다 ㅎ", "colour pet"),
    adjective("warm", "따뜻하다", "warm"),
    adjective("cold", "차갑다 ㅂ", "cold"),
    adjective("hot", "뜨겁다 ㅂ", "hot"),
    adjective("delicious", "맛있다", "food meal drink"),
    adjective("sweet", "달다 ㄹ", "fruit dessert sweet"),
    adjective("sour", "시다", "sour"),
    adjective("salty", "짜다", "salty"),
    adjective("spicy", "맵다 ㅂ", "spicy"),
    adjective("fresh", "신선하다", "fresh"),
    adjective("thick", "두껍다 ㅂ", "thick"),
    adjective("easy", "쉽다 ㅂ", "subject instrument sport chore"),
    adjective("difficult", "어렵다 ㅂ", "subject instrument sport chore difficult"),
    adjective("important", "중요하다", "subject important"),
    adjective("interesting", "재미있다", "reading show sport subject"),
    adjective("boring", "지루하다", "reading show"),
    adjective("sad", "슬프다 으", "story"),
    adjective("famous", "유명하다", "famous"),
    adjective("fast", "빠르다 르", "fast awaited"),
    adjective("dark", "어둡다 ㅂ", "room"),
    adjective("wide", "넓다", "room roomy"),
)

# Places are far, near, quiet; a place is described only after "is".
SITUATIONS = (
    adjective("far", "멀다 ㄹ", "goal"),
    adjective("near", "가깝다 ㅂ", "goal"),
    adjective("quiet", "조용하다", "goal home study"),
    adjective("noisy", "시끄럽다 ㅂ", "goal"),
    adjective("clean", "깨끗하다", "goal"),
    adjective("dirty", "더럽다 ㅂ", "work"),
    adjective("famous", "유명하다", "visited eating"),
)

# 새 is no verb in Korean, so "new" stands only before its noun.
NEW = ("new", "새")
NEW_KINDS = ("buyable", "building")

# States that explain the action of another person; thirst does not.
CAUSES = ("tired", "busy", "sick")

# 안 before a long adjective sounds clumsy (안 아름다워요), so these are not negated.
UNNEGATED = ("beautiful", "brave", "lazy", "sad", "dark", "healthy")
