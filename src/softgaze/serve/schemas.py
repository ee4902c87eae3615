"""Pydantic models of all requests and responses: they validate, and they are the OpenAPI description at /spec."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(description="A text. Line breaks are preserved.")]
Texts = Annotated[str | list[str], Field(description="A text or a list of texts.")]
SourceCode = Annotated[str, Field(description="Language code of the text, or auto.")]
TargetCode = Annotated[str | None, Field(description="Language code of the translation.")]
ModelId = Annotated[
    str | None, Field(description="An id from /v1/models. Default: the first model for source and target.")
]
BeamSize = Annotated[int | None, Field(description="Hypotheses kept at each step; 1 is greedy search.")]
NumHypotheses = Annotated[int, Field(description="Hypotheses returned: the best one and its alternatives.")]
ApiKey = Annotated[str | None, Field(description="An API key, if the server requires one.")]
Word = str | int


class ErrorResponse(BaseModel):
    model_config = ConfigDict(extra="allow")  # DeepL clients also read "message"

    error: str


class StatusResponse(BaseModel):
    status: str


# --- LibreTranslate ---------------------------------------------------------------------------------------------


class LibreTranslateRequest(BaseModel):
    q: Texts
    source: SourceCode
    target: str
    format: Annotated[str, Field(description="text or html; html keeps its tags.")] = "text"
    alternatives: int = 0
    api_key: ApiKey = None


class DetectedLanguage(BaseModel):
    language: str
    confidence: Annotated[float, Field(ge=0, le=100)]


class LibreTranslateResponse(BaseModel):
    translatedText: str | list[str]  # noqa: N815
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class DetectRequest(BaseModel):
    q: Texts
    api_key: ApiKey = None


class LanguageEntry(BaseModel):
    code: str
    name: str
    targets: list[str]


class FileResponse(BaseModel):
    translatedFileUrl: str  # noqa: N815


class CodeAndName(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    source: CodeAndName
    target: CodeAndName


class FrontendSettings(BaseModel):
    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    charLimit: int  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int  # noqa: N815
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815
    language: DefaultLanguages


# --- DeepL ------------------------------------------------------------------------------------------------------


class DeepLRequest(BaseModel):
    """Request of POST /v2/translate; DeepL's other fields are accepted and ignored."""

    text: Texts
    target_lang: str
    source_lang: str | None = None
    tag_handling: str | None = None
    glossary_id: Annotated[str | None, Field(description="A stored glossary; needs source_lang.")] = None
    glossary_ids: Annotated[list[str] | str | None, Field(description="Several; the terms of the first win.")] = None
    ignore_tags: Texts = []  # elements that are not translated
    splitting_tags: Texts = []  # of XML: tags that end a sentence


class DeepLTranslation(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int  # required by the client


class DeepLResponse(BaseModel):
    translations: list[DeepLTranslation]


class DeepLLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool = False


class DictionaryFields(BaseModel):
    """The terms of one language pair."""

    source_lang: str
    target_lang: str
    entries: Annotated[str, Field(description="A term per line: source, target; `a|b` are forms of the target.")]
    entries_format: Annotated[str, Field(description="tsv or csv.")] = "tsv"


class GlossaryRequest(DictionaryFields):
    name: str


class MultilingualRequest(BaseModel):
    name: str
    dictionaries: Annotated[list[DictionaryFields], Field(min_length=1)]


class MultilingualUpdate(BaseModel):
    name: str | None = None
    dictionaries: list[DictionaryFields] | None = None


class DictionaryInfo(BaseModel):
    source_lang: str
    target_lang: str
    entry_count: int


class GlossaryInfo(DictionaryInfo):
    glossary_id: str
    ready: bool
    name: str
    creation_time: str


class GlossaryList(BaseModel):
    glossaries: list[GlossaryInfo]


class MultilingualGlossary(BaseModel):
    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DictionaryInfo]


class MultilingualList(BaseModel):
    glossaries: list[MultilingualGlossary]


class DictionaryEntries(BaseModel):
    dictionaries: list[DictionaryFields]


class GlossaryPair(BaseModel):
    source_lang: str
    target_lang: str


class GlossaryPairs(BaseModel):
    supported_languages: list[GlossaryPair]


# --- softgaze ---------------------------------------------------------------------------------------------------


class TextSelection(BaseModel):
    """Fields that select the model and the search."""

    model: ModelId = None
    source: SourceCode = "auto"
    target: TargetCode = None
    beam_size: BeamSize = None
    glossary: Annotated[
        str | None, Field(description="Terms, a line each: source, tab, target forms (`a|b`); a lone term is kept.")
    ] = None
    glossary_id: Annotated[str | None, Field(description="A glossary stored through /v2 or /v3.")] = None
    api_key: ApiKey = None


class TranslateRequest(TextSelection):
    q: Texts
    num_hypotheses: NumHypotheses = 1
    attention: Annotated[bool, Field(description="Return the attention of each word.")] = False
    confidence: Annotated[bool, Field(description="Return the probability that each word is right.")] = False
    support: Annotated[
        bool, Field(description="Return the words that may be hallucinated or omitted; takes a pass for each word.")
    ] = False
    stream: Annotated[
        bool, Field(description="Stream each word as it is generated (one text, greedy search, one hypothesis).")
    ] = False


class UncoveredWord(BaseModel):
    """A source word that received almost no attention."""

    index: int
    text: str
    coverage: float


class MapReliability(BaseModel):
    """How far the attention map can be relied on in this sentence."""

    value: Annotated[float, Field(description="Expected share of right links, 0 to 1.")]
    is_low: Annotated[bool, Field(description="Whether clients should warn of the map.")]
    links: Annotated[
        list[float | None],
        Field(description="Probability that the link of each target word is right; null for a word without a link."),
    ]


class TextAttention(BaseModel):
    """The attention of each target word over the source words."""

    source_words: list[str]
    target_words: list[str]
    source_spaced: Annotated[bool, Field(description="Whether the source language separates words by spaces.")]
    target_spaced: bool
    weights: Annotated[list[list[float]] | None, Field(description="(target words, source words); null if too many.")]
    alignment: Annotated[list[tuple[int, int, float]], Field(description="(source index, target index, weight).")]
    coverage: Annotated[list[float], Field(description="Total weight of each source word.")]
    uncovered: list[UncoveredWord]
    map: Annotated[str, Field(description="Which attention map is shown, and how it was chosen.")]
    reliability: Annotated[MapReliability | None, Field(description="Null if it was not measured for this model.")]


class WordConfidence(BaseModel):
    text: str
    confidence: Annotated[float, Field(ge=0, le=1)]


class TextConfidence(BaseModel):
    """The probability that each word is right: that a reference translation has it too."""

    words: list[WordConfidence]
    calibrated: Annotated[
        bool, Field(description="Fitted on held-out text. If false, the values are the probabilities of the model.")
    ]


class NamedWord(BaseModel):
    index: int
    text: str


class TextSupport(BaseModel):
    """Suspicions of hallucination and omission, by occlusion of each source word, and the share of the source."""

    values: Annotated[list[float], Field(description="How far the source explains each output word, 0 to 1.")]
    source_share: Annotated[
        list[float] | None,
        Field(
            description="Share of the contributions to each output word that comes from the source not from earlier "
            "output words, by gradient × input; null without torch weights."
        ),
    ]
    unsupported: Annotated[list[NamedWord], Field(description="Output words that the source hardly explains.")]
    omitted: Annotated[list[NamedWord], Field(description="Source words that the translation does not express.")]


class HypothesisFields(BaseModel):
    """A hypothesis of the search."""

    text: str
    score: float | None
    log_prob: float | None
    finished: Annotated[bool, Field(description="False if cut at the maximum length.")]
    tokens: list[str]


class AlternativeTranslation(HypothesisFields):
    attention: TextAttention | None = None
    confidence: TextConfidence | None = None
    support: TextSupport | None = None


class TermFields(BaseModel):
    """A term of the glossary in the translation."""

    source: str
    target: str
    by: Annotated[str, Field(description="search, or alignment if it was inserted after the search.")]


class BestTranslation(AlternativeTranslation):
    """The best hypothesis and its alternatives."""

    source: str
    source_tokens: list[str]
    engine: Annotated[str, Field(description="The engine that searched: torch for texts with terms.")] = ""
    terms: list[TermFields] = []
    alternatives: list[AlternativeTranslation]
    protected_text: Annotated[
        str | None, Field(description="The translation with its placeholders, if words of the model are explained.")
    ] = None


class TranslateResponse(BaseModel):
    model: str
    source: str
    target: str
    detected: DetectedLanguage | None
    translations: list[BestTranslation]
    milliseconds: float


class AlternativesRequest(TextSelection):
    q: Annotated[str, Field(description="A sentence.")]
    translation: Annotated[str, Field(description="A translation of it, such as the one of /v1/translate.")]
    word: Annotated[int, Field(description="Index of a word in the translation, as in its confidence.")]
    count: Annotated[int, Field(description="Most alternatives returned.", ge=1, le=10)] = 5
    attention: Annotated[bool, Field(description="Return the attention of each translation.")] = False


class AlternativeWord(BaseModel):
    """A word that could stand in the position, and the translation that continues from it."""

    word: str
    probability: Annotated[float, Field(description="Of the word after the words before it.")]
    translation: BestTranslation


class AlternativesResponse(BaseModel):
    model: str
    source: str
    target: str
    alternatives: list[AlternativeWord]
    milliseconds: float


class WhatIfRequest(TextSelection):
    q: Text
    mask: Annotated[list[Word], Field(description="Source words that receive no attention, as text or index.")] = []
    attend: Annotated[
        dict[str, Word], Field(description="{index of a target word: the source word that gets all its attention}.")
    ] = {}
    ablate: Annotated[
        list[list[Any]], Field(description="Heads to switch off: [layer, head] or [kind, layer, head]; null is all.")
    ] = []
    sharpen: Annotated[float, Field(description="Exponent of the weights: above 1 sharper, below 1 flatter.")] = 1.0
    where: Annotated[
        list[list[Any]], Field(description="Heads that mask, attend and sharpen apply to. Default: cross-attention.")
    ] = []


class WhatIfResponse(BaseModel):
    model: str
    source: str
    target: str
    before: BestTranslation
    after: BestTranslation
    note: str
    diff: list[tuple[Literal["same", "removed", "added"], str]]
    milliseconds: float


class ExplainRequest(TextSelection):
    q: Text
    what_if: Annotated[bool, Field(description="Include precomputed what-if edits.")] = False


class ExplainResponse(BaseModel):
    """Response of POST /v1/explain to JSON; the response to a form is the page itself."""

    html: str | None


class Limits(BaseModel):
    characters: int
    texts: int
    beam_size: int
    num_hypotheses: int
    body: int
    file: int


class ModelEntry(BaseModel):
    id: str
    kind: str
    source: Annotated[CodeAndName, Field(description="Of a multilingual model: a language to start with.")]
    target: CodeAndName
    sources: Annotated[list[CodeAndName], Field(description="All languages that the model translates from.")]
    targets: list[CodeAndName]
    arch: str
    engine: str
    precision: str
    attention: bool
    explain: Annotated[bool, Field(description="Whether /v1/explain works for this model.")]
    what_if: Annotated[bool, Field(description="Whether /v1/what_if works for this model.")]


class ModelsResponse(BaseModel):
    models: list[ModelEntry]
    limits: Limits
    languages: list[LanguageEntry]
    detects: Annotated[bool, Field(description="Whether the source language can be detected.")]
    key_required: bool
    version: str


class CaptionRequest(BaseModel):
    model: Annotated[str | None, Field(description="The id of a captioner from /v1/models.")] = None
    beam_size: BeamSize = None
    num_hypotheses: NumHypotheses = 1
    attention: Annotated[bool, Field(description="Return the attention of each word over the image.")] = False
    mask: Annotated[
        str,
        Field(
            description="Regions that get no attention: their numbers, row by row from 0, separated by commas.",
            pattern=r"^(\d{1,5}(,\d{1,5})*)?$",
        ),
    ] = ""
    api_key: ApiKey = None


class Grid(BaseModel):
    rows: int
    columns: int
    crop: Annotated[
        list[float], Field(description="The part of the image that the model sees: left, top, right, bottom, 0 to 1.")
    ]


class ImageAttention(BaseModel):
    """The attention of each word over the image."""

    target_words: list[str]
    grid: Grid
    weights: Annotated[list[list[float]], Field(description="(words, rows * columns), row by row.")]
    map: str


class BestCaption(HypothesisFields):
    alternatives: list[HypothesisFields]
    attention: ImageAttention | None


class CaptionResponse(BaseModel):
    model: str
    captions: list[BestCaption]
    milliseconds: float
