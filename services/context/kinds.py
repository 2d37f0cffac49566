"""Sentences that only assets of one type have."""

from __future__ import annotations

from collections.abc import Callable

from services.catalog.model import Asset, ObjectType
from services.catalog.parts import Attributes
from services.context.labels import Surroundings
from services.context.prose import enumeration, said
from services.text.identifiers import spelled_as_words


def kind_sentences(asset: Asset, around: Surroundings) -> list[str]:
    """Sentences, perhaps blank ones, from the attributes of the asset's own type.

    Left out on purpose: counts, URLs, source code, people, and a data product's sensitivity, which can be its access
    classification.
    """
    tell = _TELLERS.get(asset.object_type)
    return tell(asset.attributes, around) if tell else []


def _file(attributes: Attributes, _: Surroundings) -> list[str]:
    return [_phrase("It is of the file type", said(attributes.file_type))]


def _report(attributes: Attributes, around: Surroundings) -> list[str]:
    return [
        _phrase("It is of the report type", said(attributes.report_type)),
        _phrase("It is part of the report", _referred(attributes.parent_report, around)),
    ]


def _api(attributes: Attributes, _: Surroundings) -> list[str]:
    method, endpoint = said(attributes.method), spelled_as_words(said(attributes.endpoint))
    called = _phrase("It answers calls of", endpoint)
    return [f"It answers {method} calls{f' of {endpoint}' if endpoint else ''}" if method else called]


def _code(attributes: Attributes, _: Surroundings) -> list[str]:
    return [
        _phrase("It is a job of the type", said(attributes.job_type)),
        _phrase("It is written in", said(attributes.language)),
    ]


def _schema(attributes: Attributes, _: Surroundings) -> list[str]:
    return [_phrase("It belongs to the database", spelled_as_words(said(attributes.database_name)))]


def _term(attributes: Attributes, _: Surroundings) -> list[str]:
    return [
        _hierarchy(
            ("domain", attributes.domain), ("category", attributes.category), ("subcategory", attributes.subcategory)
        ),
        _phrase("Its governance status is", said(attributes.governance_status).lower()),
    ]


def _tag(attributes: Attributes, around: Surroundings) -> list[str]:
    return [_phrase("It stands under the tag", _referred(attributes.parent, around))]


def _data_product(attributes: Attributes, _: Surroundings) -> list[str]:
    return [
        _hierarchy(("domain", attributes.domain), ("subdomain", attributes.parent_subdomain)),
        _phrase("Its status is", said(attributes.status).lower()),
        _phrase("Its criticality is", said(attributes.criticality).lower()),
    ]


def _data_story(attributes: Attributes, around: Surroundings) -> list[str]:
    return [
        _phrase("It is told in the zone", said(attributes.story_zone)),
        _phrase("It is part of the story", _referred(attributes.parent_story, around)),
        _phrase("It holds the stories", enumeration(_referred(child, around) for child in attributes.child_stories)),
    ]


_TELLERS: dict[ObjectType, Callable[[Attributes, Surroundings], list[str]]] = {
    ObjectType.FILE: _file,
    ObjectType.REPORT: _report,
    ObjectType.API: _api,
    ObjectType.CODE: _code,
    ObjectType.SCHEMA: _schema,
    ObjectType.TERM: _term,
    ObjectType.TAG: _tag,
    ObjectType.DATA_PRODUCT: _data_product,
    ObjectType.DATA_STORY: _data_story,
}


def _phrase(opening: str, text: str) -> str:
    return f"{opening} {text}" if text else ""


def _hierarchy(*levels: tuple[str, str | None]) -> str:
    return _phrase("It belongs to the", enumeration(_phrase(level, said(word)) for level, word in levels))


def _referred(reference: str | None, around: Surroundings) -> str:
    return (around.label_or_name(reference) or "") if reference else ""
