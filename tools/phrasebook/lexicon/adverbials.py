"""Additions to a clause: times, frequencies, manners, vehicles, tools and positions."""

from tools.phrasebook.lexicon.types import Fixed

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

# For the state of a person, and for the position of a thing.
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

# Tools of verbs, and whether English gives them an article.
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
