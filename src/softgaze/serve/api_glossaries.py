"""The glossary endpoints of the DeepL API: v2 with one language pair each, v3 with several."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from softgaze.serve import schemas
from softgaze.serve.errors import HTTPError, missing_parameter
from softgaze.serve.glossaries import Dictionary, StoredGlossary, parse_entries
from softgaze.serve.openapi import ERRORS, JSON, request_body, text_response
from softgaze.serve.request_parsing import authorized_fields, parse_as
from softgaze.serve.service import Service, ServiceDep

NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.ErrorResponse, "description": "No such glossary or dictionary"}
}
QUOTA: dict[int | str, dict[str, Any]] = {456: {"model": schemas.ErrorResponse, "description": "Too many glossaries"}}
router = APIRouter(tags=["DeepL"], responses={**ERRORS, **NOT_FOUND, **QUOTA})
TSV = "text/tab-separated-values"


async def authorized(request: Request) -> None:
    await authorized_fields(request)


Authorized = Depends(authorized)


def dictionary_of(service: Service, fields: schemas.DictionaryFields) -> Dictionary:
    """Return the dictionary of a request; its languages must be served."""
    source, target = (service.registry.match_language(code) for code in (fields.source_lang, fields.target_lang))
    return Dictionary(source, target, parse_entries(fields.entries, fields.entries_format))


def pair_of_query(service: Service, source: str, target: str) -> tuple[str, str]:
    """Return the languages of a query, or raise if one is missing or not served."""
    for name, code in {"source_lang": source, "target_lang": target}.items():
        if not code:
            raise missing_parameter(name)
    return service.registry.match_language(source), service.registry.match_language(target)


def info_v2(glossary: StoredGlossary, dictionary: Dictionary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.glossary_id,
        "ready": True,
        "name": glossary.name,
        "source_lang": dictionary.source_lang,
        "target_lang": dictionary.target_lang,
        "creation_time": glossary.creation_time,
        "entry_count": dictionary.entry_count,
    }


def info_dictionary(dictionary: Dictionary) -> dict[str, Any]:
    source, target = dictionary.pair
    return {"source_lang": source, "target_lang": target, "entry_count": dictionary.entry_count}


def info_v3(glossary: StoredGlossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.glossary_id,
        "name": glossary.name,
        "creation_time": glossary.creation_time,
        "dictionaries": [*map(info_dictionary, glossary.dictionaries)],
    }


def only_dictionary(glossary: StoredGlossary) -> Dictionary:
    """Return the dictionary of a glossary of one language pair; v2 has no others."""
    if len(glossary.dictionaries) != 1:
        raise HTTPError(404, "Glossary not found: it has several language pairs, use /v3/glossaries")
    return glossary.dictionaries[0]


# --- v2 -----------------------------------------------------------------------------------------------------------


@router.post(
    "/v2/glossaries",
    status_code=201,
    response_model=schemas.GlossaryInfo,
    openapi_extra=request_body(schemas.GlossaryRequest),
)
async def create(
    service: ServiceDep, fields: Annotated[schemas.GlossaryRequest, Depends(parse_as(schemas.GlossaryRequest))]
) -> dict[str, Any]:
    """Store a glossary of one language pair: a line per term, target forms separated by `|`."""
    glossary = service.glossaries.create(fields.name, [dictionary_of(service, fields)])
    return info_v2(glossary, glossary.dictionaries[0])


@router.get("/v2/glossaries", response_model=schemas.GlossaryList, dependencies=[Authorized])
async def list_all(service: ServiceDep) -> dict[str, Any]:
    """List the glossaries of one language pair."""
    single = (one for one in service.glossaries.all() if len(one.dictionaries) == 1)
    return {"glossaries": [info_v2(one, one.dictionaries[0]) for one in single]}


@router.get("/v2/glossaries/{glossary_id}", response_model=schemas.GlossaryInfo, dependencies=[Authorized])
async def get(service: ServiceDep, glossary_id: str) -> dict[str, Any]:
    """Return the name and size of a glossary."""
    glossary = service.glossaries.get(glossary_id)
    return info_v2(glossary, only_dictionary(glossary))


@router.get(
    "/v2/glossaries/{glossary_id}/entries",
    response_class=Response,
    responses=text_response(TSV, "The terms, a line each."),
    dependencies=[Authorized],
)
async def entries(service: ServiceDep, glossary_id: str) -> Response:
    """Return the terms of a glossary."""
    return Response(only_dictionary(service.glossaries.get(glossary_id)).entries, media_type=TSV)


@router.delete("/v2/glossaries/{glossary_id}", status_code=204, dependencies=[Authorized])
@router.delete("/v3/glossaries/{glossary_id}", status_code=204, dependencies=[Authorized])
async def delete(service: ServiceDep, glossary_id: str) -> None:
    """Delete a glossary."""
    service.glossaries.delete(glossary_id)


@router.get("/v2/glossary-language-pairs", response_model=schemas.GlossaryPairs, dependencies=[Authorized])
async def language_pairs(service: ServiceDep) -> dict[str, Any]:
    """List the language pairs that glossaries can have: all that are served."""
    pairs = [
        {"source_lang": source, "target_lang": target}
        for source, targets in service.registry.languages.items()
        for target in targets
    ]
    return {"supported_languages": pairs}


# --- v3 -----------------------------------------------------------------------------------------------------------


@router.post(
    "/v3/glossaries",
    status_code=201,
    response_model=schemas.MultilingualGlossary,
    openapi_extra=request_body(schemas.MultilingualRequest, JSON),
)
async def create_multilingual(
    service: ServiceDep, fields: Annotated[schemas.MultilingualRequest, Depends(parse_as(schemas.MultilingualRequest))]
) -> dict[str, Any]:
    """Store a glossary with a dictionary for each language pair."""
    dictionaries = {one.pair: one for one in (dictionary_of(service, each) for each in fields.dictionaries)}
    if len(dictionaries) != len(fields.dictionaries):
        raise HTTPError(400, "Invalid request: dictionaries: a language pair occurs twice")
    return info_v3(service.glossaries.create(fields.name, [*dictionaries.values()]))


@router.get("/v3/glossaries", response_model=schemas.MultilingualList, dependencies=[Authorized])
async def list_multilingual(service: ServiceDep) -> dict[str, Any]:
    """List all glossaries."""
    return {"glossaries": [*map(info_v3, service.glossaries.all())]}


@router.get("/v3/glossaries/{glossary_id}", response_model=schemas.MultilingualGlossary, dependencies=[Authorized])
async def get_multilingual(service: ServiceDep, glossary_id: str) -> dict[str, Any]:
    """Return the name and the dictionaries of a glossary."""
    return info_v3(service.glossaries.get(glossary_id))


@router.get("/v3/glossaries/{glossary_id}/entries", response_model=schemas.DictionaryEntries, dependencies=[Authorized])
async def entries_multilingual(
    service: ServiceDep, glossary_id: str, source_lang: str = "", target_lang: str = ""
) -> dict[str, Any]:
    """Return the terms of one language pair."""
    source, target = pair_of_query(service, source_lang, target_lang)
    dictionary = service.glossaries.get(glossary_id).dictionary(source, target)
    return {
        "dictionaries": [
            {"source_lang": source, "target_lang": target, "entries": dictionary.entries, "entries_format": "tsv"}
        ]
    }


@router.patch(
    "/v3/glossaries/{glossary_id}",
    response_model=schemas.MultilingualGlossary,
    openapi_extra=request_body(schemas.MultilingualUpdate, JSON),
)
async def update(
    service: ServiceDep,
    glossary_id: str,
    fields: Annotated[schemas.MultilingualUpdate, Depends(parse_as(schemas.MultilingualUpdate))],
) -> dict[str, Any]:
    """Rename a glossary, or add terms to its dictionaries; new terms replace those with the same source."""
    glossary = service.glossaries.get(glossary_id)
    for each in fields.dictionaries or []:
        new = dictionary_of(service, each)
        old = next((one for one in glossary.dictionaries if one.pair == new.pair), None)
        glossary = glossary.with_dictionary(old.merged(new) if old else new)
    return info_v3(service.glossaries.save(replace(glossary, name=fields.name or glossary.name)))


@router.put(
    "/v3/glossaries/{glossary_id}/dictionaries",
    response_model=schemas.DictionaryInfo,
    openapi_extra=request_body(schemas.DictionaryFields, JSON),
)
async def put_dictionary(
    service: ServiceDep,
    glossary_id: str,
    fields: Annotated[schemas.DictionaryFields, Depends(parse_as(schemas.DictionaryFields))],
) -> dict[str, Any]:
    """Replace or add the dictionary of a language pair."""
    new = dictionary_of(service, fields)
    service.glossaries.save(service.glossaries.get(glossary_id).with_dictionary(new))
    return info_dictionary(new)


@router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204, dependencies=[Authorized])
async def delete_dictionary(
    service: ServiceDep, glossary_id: str, source_lang: str = "", target_lang: str = ""
) -> None:
    """Delete the dictionary of a language pair."""
    source, target = pair_of_query(service, source_lang, target_lang)
    glossary = service.glossaries.get(glossary_id)
    gone = glossary.dictionary(source, target)
    rest = tuple(one for one in glossary.dictionaries if one is not gone)
    service.glossaries.save(replace(glossary, dictionaries=rest))
