"""What is asked and answered, field by field: the source of the checks and of the description at /spec."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(description="A text. Line breaks stay.")]
Texts = Annotated[str | list[str], Field(description="A text, or a list of texts.")]
Model = Annotated[str | None, Field(description="The id of a model of /v1/models; else chosen by source and target.")]
Beam = Annotated[int | None, Field(description="Hypotheses kept at each step.")]
Key = Annotated[str | None, Field(description="An API key, where the server wants one.")]
Word = str | int
Head = tuple[int | None, int | None] | tuple[str, int | None, int | None]


class Error(BaseModel):
    """Whatever went wrong."""

    model_config = ConfigDict(extra="allow")  # clients of DeepL read a "message", too

    error: str


# --- as LibreTranslate has it -----------------------------------------------------------------------------------


class LibreTranslate(BaseModel):
    """What POST /translate asks."""

    q: Texts
    source: Annotated[str, Field(description="The code of its language, or auto.")]
    target: str
    format: Annotated[str, Field(description="text or html; tags of html are kept.")] = "text"
    alternatives: int = 0
    api_key: Key = None


class DetectedLanguage(BaseModel):
    """A language and how sure it is."""

    language: str
    confidence: Annotated[float, Field(ge=0, le=100)]


class LibreTranslated(BaseModel):
    """What POST /translate answers: lists where a list was asked."""

    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class Detect(BaseModel):
    """What POST /detect asks."""

    q: Texts
    api_key: Key = None


class LanguageTold(BaseModel):
    """One of GET /languages."""

    code: str
    name: str
    targets: list[str]


class FileTranslated(BaseModel):
    """What POST /translate_file answers."""

    translatedFileUrl: str  # noqa: N815


class CodeAndName(BaseModel):
    """A language."""

    code: str
    name: str


class FrontendLanguages(BaseModel):
    """What a page shows first."""

    source: CodeAndName
    target: CodeAndName


class FrontendSettings(BaseModel):
    """What GET /frontend/settings answers."""

    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    charLimit: int  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int  # noqa: N815
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815
    language: FrontendLanguages


class Status(BaseModel):
    """What /health and /ready answer."""

    status: str


# --- as DeepL has it --------------------------------------------------------------------------------------------


class DeepL(BaseModel):
    """What POST /v2/translate asks; what else DeepL knows is taken, and has no meaning here."""

    text: Texts
    target_lang: str
    source_lang: str | None = None
    tag_handling: str | None = None


class DeepLTranslation(BaseModel):
    """One text."""

    detected_source_language: str
    text: str
    billed_characters: int  # whose client cannot read an answer without it


class DeepLTranslated(BaseModel):
    """What POST /v2/translate answers."""

    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    """One of GET /v2/languages."""

    language: str
    name: str
    supports_formality: bool = False


# --- our own ----------------------------------------------------------------------------------------------------


class Translate(BaseModel):
    """What POST /v1/translate asks."""

    q: Texts
    model: Model = None
    source: Annotated[str, Field(description="The code of its language, or auto.")] = "auto"
    target: str | None = None
    beam: Beam = None
    alternatives: int = 0
    attention: Annotated[bool, Field(description="Tell where each word looked.")] = False
    stream: Annotated[bool, Field(description="Tell each word as it is written (one text, beam 1).")] = False
    api_key: Key = None


class Warned(BaseModel):
    """A source word that was ignored."""

    word: int
    text: str
    coverage: float


class AttentionTold(BaseModel):
    """Where each word looked."""

    source_words: list[str]
    target_words: list[str]
    source_spaced: bool
    target_spaced: bool
    weights: Annotated[list[list[float]] | None, Field(description="(target words, source words); None: too many.")]
    links: Annotated[list[tuple[int, int, float]], Field(description="Source word, target word, weight.")]
    coverage: list[float]
    warnings: list[Warned]
    shows: str


class Alternative(BaseModel):
    """Another translation."""

    text: str
    score: float | None
    log_probability: float | None
    finished: bool
    tokens: list[str]
    attention: AttentionTold | None = None


class Translated(Alternative):
    """One text, translated."""

    source: str
    source_tokens: list[str]
    alternatives: list[Alternative]


class Answer(BaseModel):
    """What POST /v1/translate answers."""

    model: str
    source: str
    target: str
    detected: DetectedLanguage | None
    translations: list[Translated]
    milliseconds: float


class WhatIf(BaseModel):
    """What POST /v1/what_if asks."""

    q: Text
    model: Model = None
    source: str = "auto"
    target: str | None = None
    beam: Beam = None
    mask: Annotated[list[Word], Field(description="Source words that may not be looked at.")] = []
    attend: Annotated[
        dict[str, Word], Field(description="{number of an output word: the source word it looks at}.")
    ] = {}
    ablate: Annotated[list[list[Any]], Field(description="Heads that look nowhere: (layer, head), null is all.")] = []
    sharpen: Annotated[float, Field(description="The power of the weights.")] = 1.0
    where: Annotated[list[list[Any]], Field(description="Heads that are changed; all unless named.")] = []
    api_key: Key = None


class WhatIfAnswer(BaseModel):
    """What POST /v1/what_if answers."""

    model: str
    source: str
    target: str
    before: Translated
    after: Translated
    note: str
    diff: list[tuple[Literal["same", "removed", "added"], str]]
    milliseconds: float


class GazeAsked(BaseModel):
    """What POST /v1/gaze asks."""

    q: Text
    model: Model = None
    source: str = "auto"
    target: str | None = None
    beam: Beam = None
    what_if: Annotated[bool, Field(description="With answers to what would have changed.")] = False
    api_key: Key = None


class GazeAnswer(BaseModel):
    """What POST /v1/gaze answers to JSON; to a form it answers the page itself."""

    html: str | None


class Limits(BaseModel):
    """Of a request."""

    characters: int
    texts: int
    beam: int
    alternatives: int
    body: int


class ModelTold(BaseModel):
    """One of GET /v1/models."""

    id: str
    kind: str
    source: CodeAndName
    target: CodeAndName
    arch: str
    engine: str
    precision: str
    attention: bool
    full: bool
    what_if: bool


class Models(BaseModel):
    """What GET /v1/models answers."""

    models: list[ModelTold]
    limits: Limits
    languages: list[LanguageTold]
    detects: bool
    key_required: bool
    version: str


class CaptionAsked(BaseModel):
    """What POST /v1/caption asks beside the picture."""

    model: Model = None
    beam: Beam = None
    alternatives: int = 0
    attention: bool = False
    api_key: Key = None


class Grid(BaseModel):
    """How a picture is cut into cells."""

    rows: int
    columns: int
    crop: Annotated[list[float], Field(description="The part that is cut: left, top, right, bottom, in shares.")]


class PictureAttention(BaseModel):
    """Where in a picture each word looked."""

    target_words: list[str]
    grid: Grid
    weights: Annotated[list[list[float]], Field(description="(words, rows · columns), row by row.")]
    shows: str


class CaptionAlternative(BaseModel):
    """Another caption."""

    text: str
    score: float | None
    log_probability: float | None
    finished: bool
    tokens: list[str]


class Caption(CaptionAlternative):
    """One picture in words."""

    alternatives: list[CaptionAlternative]
    attention: PictureAttention | None


class CaptionAnswer(BaseModel):
    """What POST /v1/caption answers."""

    model: str
    captions: list[Caption]
    milliseconds: float
