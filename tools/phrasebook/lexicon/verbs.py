"""Verbs, and lists of verbs with special behaviour."""

from tools.phrasebook.lexicon.types import verb

TRANSITIVE = (
    verb("eat", "ate", "먹다", "food meal", "eating home outdoors", "speed alone"),
    verb("drink", "drank", "마시다", "drink", "eating home outdoors", "speed alone"),
    verb("buy", "bought", "사다", "fruit vegetable made grocery drink buyable", "shop", "again"),
    verb("sell", "sold", "팔다 ㄹ", "fruit vegetable made grocery buyable", "shop"),
    verb("make", "made", "만들다 ㄹ", "made handmade furniture", "house kitchen", "speed care alone"),
    verb("cook", "cooked", "요리|하다", "cooked", "house kitchen", "care alone"),
    verb("bake", "baked", "굽다 ㅂ", "baked", "house kitchen", "care alone"),
    verb("wash", "washed", "씻다", "washable", "kitchen", "speed care"),
    verb("cut", "cut", "자르다 르", "cuttable", "kitchen", "speed care"),
    verb("read", "read", "읽다", "reading", "study home cafe outdoors", "speed alone quiet"),
    verb("write", "wrote", "쓰다 으", "written", "study home cafe", "speed care alone"),
    verb("do", "did", "하다", "chore", "home", "speed hard alone"),
    verb("watch", "watched", "보다", "show sport", "home", "alone quiet"),
    verb("see", "saw", "보다", "animal sky", "outdoors", "again"),
    verb("listen to", "listened to", "듣다 ㄷ", "heard", "home cafe outdoors", "alone quiet"),
    verb("sing", "sang", "부르다 르", "sung", "home outdoors", "well alone"),
    verb("study", "studied", "공부|하다", "subject", "study home cafe", "hard alone"),
    verb("learn", "learned", "배우다", "subject instrument sport", "study", "speed hard"),
    verb("practice", "practiced", "연습|하다", "instrument sport", "study", "hard alone"),
    verb("choose", "chose", "고르다 르", "clothes footwear headwear reading", "shop", "speed care"),
    verb("borrow", "borrowed", "빌리다", "reading borrowed", "study", "again"),
    verb("look for", "looked for", "찾다", "lost", "home study meeting", "hard again"),
    verb("fix", "fixed", "고치다", "fixed", "home", "speed care alone"),
    verb("open", "opened", "열다 ㄹ", "openable", "home", "quiet speed"),
    verb("close", "closed", "닫다", "openable", "home", "quiet speed"),
    verb("turn on", "turned on", "켜다", "switched", "home", "speed"),
    verb("turn off", "turned off", "끄다 으", "switched", "home", "speed"),
    verb("clean", "cleaned", "청소|하다", "room", "", "speed hard alone"),
    verb("build", "built", "짓다 ㅅ", "roomy", "lived city", "speed"),
    verb("draw", "drew", "그리다", "drawn animal", "home study outdoors", "well care"),
    verb("pick up", "picked up", "줍다 ㅂ", "pickable", "outdoors meeting", "speed"),
    verb("plant", "planted", "심다", "plantable", "garden work", "care"),
    verb("raise", "raised", "기르다 르", "pet plantable", "home garden", "care alone"),
    verb("wear", "wore", "입다", "clothes"),
    verb("wear", "wore", "신다", "footwear"),
    verb("wear", "wore", "쓰다 으", "headwear"),
    verb("meet", "met", "만나다", "person", "meeting eating outdoors study", "again"),
    verb("help", "helped", "돕다 ㅂ", "person", "home study work shop", "again"),
    verb("invite", "invited", "초대|하다", "person", "", "again"),
    verb("wait for", "waited for", "기다리다", "person awaited", "meeting outdoors", "quiet alone"),
)

# English likes and hates things in general: "likes dogs", "likes bread", never "likes a dog".
GENERIC = (
    verb("like", "liked", "좋아하다", "food drink pet show heard subject sport plant reading"),
    verb("hate", "hated", "싫어하다", "vegetable dish subject sport chore"),
)

DATIVE = (
    verb("give", "gave", "주다", "gift", "home meeting study"),
    verb("send", "sent", "보내다", "gift"),
    verb("show", "showed", "보여주다", "gift picture", "home meeting study"),
    verb("lend", "lent", "빌려주다", "reading borrowed gifted", "study"),
    verb("teach", "taught", "가르치다", "subject instrument sport", "study", "care"),
)

INTRANSITIVE = (
    verb("sleep", "slept", "자다", "", "home", "well early alone quiet"),
    verb("run", "ran", "달리다", "", "outdoors sports", "fast hard"),
    verb("walk", "walked", "걷다 ㄷ", "", "outdoors", "fast quiet alone"),
    verb("swim", "swam", "수영|하다", "", "water", "fast well"),
    verb("dance", "danced", "춤을 추다", "", "outdoors theater home", "alone"),
    verb("cry", "cried", "울다 ㄹ", "", "home outdoors theater", "alone"),
    verb("laugh", "laughed", "웃다", "", "home cafe theater"),
    verb("rest", "rested", "쉬다", "", "home outdoors cafe", "alone quiet"),
    verb("work", "worked", "일|하다", "", "work shop eating", "hard alone"),
    verb("play", "played", "놀다 ㄹ", "", "outdoors home", "well alone"),
    verb("exercise", "exercised", "운동|하다", "", "sports outdoors", "hard alone"),
    verb("talk", "talked", "이야기|하다", "", "eating home meeting", "quiet"),
)

# Where one comes to be stands with 에, as the goal of a movement does.
STATIC = (verb("live", "lived", "살다 ㄹ", "", "lived", "alone"),)

MOTION = (
    verb("go", "went", "가다", "", "goal house", "again alone early late fast"),
    verb("come", "came", "오다", "", "goal house", "again alone early late fast"),
    verb("return", "returned", "돌아가다", "", "goal house", "alone early late fast"),
    verb("arrive", "arrived", "도착|하다", "", "goal", "early late"),
    verb("move", "moved", "이사|하다", "", "lived", ""),
    verb("visit", "visited", "방문|하다", "", "visited", "again alone"),
)

# Actions of animals, too.
ANIMAL_VERBS = ("sleep", "run", "play", "walk", "rest")

SIT = (
    verb("sit", "sat", "앉다", "seat", "", "quiet alone"),
    verb("lie", "lay", "눕다 ㅂ", "lying", "", "quiet alone"),
)

# English verb and past (none: an adjective), Korean subject (or none), Korean predicate, irregular class.
WEATHER = (
    ("rain", "rained", "비가", "오다", ""),
    ("snow", "snowed", "눈이", "오다", ""),
    ("cold", "", "", "춥다", "ㅂ"),
    ("hot", "", "", "덥다", "ㅂ"),
)

# Which goals take another particle than 에.
GOAL_PARTICLES = {"move": "by", "return": "by", "visit": "object"}

# Where something is put stands with 에: 정원에 심어요.
PLACE_PARTICLES = {"plant": "at"}

# Done in company.
SOCIAL = (
    *("eat", "drink", "make", "cook", "watch", "listen to", "study", "practice", "sing", "build", "clean", "go"),
    *("come", "walk", "run", "swim", "dance", "rest", "work", "play", "exercise", "talk", "return", "visit", "live"),
)

# Which verbs a relative clause may be made of: "the book that Jimin bought".
RELATIVE = ("buy", "sell", "make", "cook", "bake", "write", "borrow", "choose", "draw", "fix", "plant", "wash")

# An object that is only being made has no history: not "writes the report that Minsu borrowed".
CREATING = ("make", "cook", "bake", "write", "draw", "build")

# Long enough for "while".
LASTING = (
    *("eat", "read", "write", "watch", "study", "cook", "clean", "practice"),
    *("make", "fix", "wait for", "listen to"),
)

# An object that does not exist yet is not described: not "plants a delicious potato".
UNDESCRIBED = ("plant",)

# Not done every day.
RARE = ("build", "move")

# May take months and years.
LONG_TERM = (
    *("build", "move", "visit", "learn", "study", "raise", "plant", "teach", "practice", "write"),
    *("go", "come", "buy", "sell", "swim", "work"),
)

# The sense of these depends on the object (wear: 입다, 신다, 쓰다): nothing to hold out.
UNSPLIT = ("wear",)
