"""Removed entities and drafts leave no trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from services.catalog.model import CatalogRecord
from services.catalog.parts import CustomField

Mapped = Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"
CHART = "urn:li:chart:(looker,elements.1)"
TERM = "urn:li:glossaryTerm:revenue"
TAG = "urn:li:tag:gold"
DOMAIN = "urn:li:domain:sales"
GONE = {"status": {"removed": True}}


def named(aspect: str, name: str) -> dict[str, Any]:
    return {aspect: {"name": name}}


class TestRemoved:
    def test_what_was_removed_is_neither_listed_nor_named_by_anything_else(self, mapped: Mapped) -> None:
        secret = "zz-secret"
        term, tag, domain = (f"urn:li:{kind}:{secret}" for kind in ("glossaryTerm", "tag", "domain"))
        user, prop, node = (f"urn:li:{kind}:{secret}" for kind in ("corpuser", "structuredProperty", "glossaryNode"))
        product, container, document = (f"urn:li:{kind}:{secret}" for kind in ("dataProduct", "container", "document"))
        dataset = f"urn:li:dataset:(urn:li:dataPlatform:hive,{secret},PROD)"
        dashboard = f"urn:li:dashboard:(looker,{secret})"
        field = f"urn:li:schemaField:({ORDERS},{secret})"
        foreign = f"urn:li:schemaField:({dataset},id)"
        removed = {
            term: {"glossaryTermInfo": {"name": secret, "definition": secret}},
            tag: named("tagProperties", secret),
            domain: named("domainProperties", secret),
            user: {"corpUserInfo": {"displayName": secret, "active": True}},
            prop: {"propertyDefinition": {"qualifiedName": secret}},
            node: {"glossaryNodeInfo": {"name": secret, "definition": ""}},
            product: {"dataProductProperties": {"name": secret, "assets": [{"destinationUrn": ORDERS}]}},
            container: named("containerProperties", secret),
            dataset: {"upstreamLineage": {"upstreams": [{"dataset": ORDERS}]}},
            dashboard: {"dashboardInfo": {"title": secret, "charts": [CHART], "datasets": [ORDERS]}},
            field: {},
        }
        listed: dict[str, Any] = {
            ORDERS: {
                "glossaryTerms": {"terms": [{"urn": term}]},
                "globalTags": {"tags": [{"tag": tag}]},
                "domains": {"domains": [domain]},
                "ownership": {"owners": [{"owner": user}]},
                "deprecation": {"deprecated": True, "actor": user},
                "structuredProperties": {
                    "properties": [
                        {"propertyUrn": prop, "values": [{"string": "x"}]},
                        {"propertyUrn": "urn:li:structuredProperty:contact", "values": [{"string": user}]},
                    ]
                },
                "container": {"container": container},
                "upstreamLineage": {"upstreams": [{"dataset": dataset}]},
                "siblings": {"siblings": [dataset]},
                "schemaMetadata": {
                    "fields": [
                        {
                            "fieldPath": "id",
                            "glossaryTerms": {"terms": [{"urn": term}]},
                            "globalTags": {"tags": [{"tag": tag}]},
                        },
                        {"fieldPath": secret},
                    ],
                    "foreignKeys": [
                        {
                            "name": "fk",
                            "foreignDataset": dataset,
                            "sourceFields": [f"urn:li:schemaField:({ORDERS},id)"],
                            "foreignFields": [foreign],
                        }
                    ],
                },
            },
            CHART: {
                "inputFields": {"fields": [{"schemaFieldUrn": foreign, "schemaField": {"fieldPath": "id"}}]},
                "browsePathsV2": {"path": [{"id": dashboard, "urn": dashboard}]},
            },
            TERM: {
                "glossaryTermInfo": {"name": "Revenue", "definition": "", "parentNode": node},
                "glossaryRelatedTerms": {"isRelatedTerms": [term]},
            },
            "urn:li:document:page": {
                "documentInfo": {
                    "title": "Page",
                    "contents": {"text": ""},
                    "created": {"time": 1, "actor": user},
                    "parentDocument": {"document": document},
                    "relatedAssets": [{"asset": dataset}],
                }
            },
            document: {"documentInfo": {"title": secret, "contents": {"text": ""}, "status": {"state": "UNPUBLISHED"}}},
        }

        found = mapped({**{urn: {**aspects, **GONE} for urn, aspects in removed.items()}, **listed})

        assert set(found) == {ORDERS, CHART, TERM, "urn:li:document:page"}
        assert [secret in json.dumps(record.payload()) for record in found.values()] == [False] * 4
        assert found[ORDERS].relationships == ()
        assert found[CHART].columns == ()

    def test_the_same_things_are_named_when_they_are_not_removed(self, mapped: Mapped) -> None:
        found = mapped(
            {
                ORDERS: {"globalTags": {"tags": [{"tag": TAG}]}, "domains": {"domains": [DOMAIN]}},
                TAG: named("tagProperties", "Gold"),
                DOMAIN: named("domainProperties", "Commerce"),
            }
        )
        assert found[ORDERS].tags == (("Gold",),)
        assert CustomField(name="Domain", value="Commerce") in found[ORDERS].custom_fields
