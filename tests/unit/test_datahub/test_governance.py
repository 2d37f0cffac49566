"""Owners, terms, tags, certification, custom fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from services.catalog.model import CatalogRecord
from services.catalog.parts import (
    Certification,
    CertificationStatus,
    CustomField,
    GovernanceRole,
    RelationshipKind,
    TermLink,
)

Mapped = Callable[[Mapping[str, Mapping[str, Any]]], dict[str, CatalogRecord]]

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.orders,PROD)"
CUSTOMERS = "urn:li:dataset:(urn:li:dataPlatform:snowflake,shop.sales.customers,PROD)"
TERM = "urn:li:glossaryTerm:revenue"
TAG = "urn:li:tag:gold"
DOMAIN = "urn:li:domain:sales"
USER = "urn:li:corpuser:finance-stewards"
GONE = {"status": {"removed": True}}


def named(aspect: str, name: str) -> dict[str, Any]:
    return {aspect: {"name": name}}


class TestGovernance:
    @pytest.mark.parametrize(
        ("owner", "role"),
        [
            ({"type": "DATAOWNER"}, "owner"),
            ({"type": "NONE"}, "owner"),
            ({"type": "NONE", "typeUrn": "urn:li:ownershipType:__system__business_owner"}, "owner"),
            ({"type": "NONE", "typeUrn": "urn:li:ownershipType:__system__technical_owner"}, "owner"),
            ({"type": "NONE", "typeUrn": "urn:li:ownershipType:__system__none"}, "owner"),
            ({"type": "NONE", "typeUrn": "urn:li:ownershipType:__system__data_steward"}, "steward"),
            ({"type": "DATA_STEWARD"}, "steward"),
            ({"type": "CONSUMER"}, "consumer"),
            ({"type": "CUSTOM", "typeUrn": "urn:li:ownershipType:t1"}, "custodian"),
            ({"type": "CUSTOM", "typeUrn": "urn:li:ownershipType:t2"}, "Subject Matter Expert"),
        ],
    )
    def test_role_from_the_ownership_type(self, mapped: Mapped, owner: dict[str, str], role: str) -> None:
        found = mapped(
            {
                TAG: {"ownership": {"owners": [{"owner": USER, **owner}]}},
                "urn:li:ownershipType:t1": named("ownershipTypeInfo", "Technical Custodian"),
                "urn:li:ownershipType:t2": named("ownershipTypeInfo", "Subject Matter Expert"),
            }
        )
        assert found[TAG].governance_roles == (GovernanceRole(role=role, name="finance-stewards"),)

    def test_owner_names_are_display_names_each_once_and_not_from_the_derived_map(self, mapped: Mapped) -> None:
        owners = [{"owner": f"urn:li:corpuser:{key}", "type": "DATAOWNER"} for key in ("a", "a", "b", "c")]
        found = mapped(
            {
                TAG: {
                    "ownership": {
                        "owners": [*owners, {"owner": "urn:li:corpGroup:g", "type": "DATA_STEWARD"}],
                        "ownerTypes": {"urn:li:ownershipType:__system__none": ["urn:li:corpuser:stale"]},
                    }
                },
                "urn:li:corpuser:a": {"corpUserInfo": {"displayName": "Sales Ops Lead", "active": True}},
                "urn:li:corpuser:b": {
                    "corpUserInfo": {"displayName": "old", "active": True},
                    "corpUserEditableInfo": {"displayName": "Finance Lead"},
                },
                "urn:li:corpuser:c": {"corpUserInfo": {"displayName": "Former Lead", "active": False}, **GONE},
                "urn:li:corpGroup:g": {"corpGroupInfo": {"displayName": "Data Stewards"}},
            }
        )
        assert [(role.role, role.name) for role in found[TAG].governance_roles] == [
            ("owner", "Sales Ops Lead"),
            ("owner", "Finance Lead"),
            ("steward", "Data Stewards"),
        ]

    def test_terms_carry_their_place_in_the_glossary(self, mapped: Mapped) -> None:
        found = mapped(
            {
                ORDERS: {
                    "glossaryTerms": {"terms": [{"urn": TERM}, {"urn": TERM}, {"urn": "urn:li:glossaryTerm:Tax"}]}
                },
                TERM: {
                    "glossaryTermInfo": {
                        "name": "Revenue",
                        "definition": "Money in.",
                        "parentNode": "urn:li:glossaryNode:c",
                    },
                    "domains": {"domains": [DOMAIN]},
                },
                "urn:li:glossaryNode:a": {"glossaryNodeInfo": {"name": "Finance", "definition": ""}},
                "urn:li:glossaryNode:b": {
                    "glossaryNodeInfo": {"name": "Metrics", "parentNode": "urn:li:glossaryNode:a"}
                },
                "urn:li:glossaryNode:c": {"glossaryNodeInfo": {"name": "Sales", "parentNode": "urn:li:glossaryNode:b"}},
                DOMAIN: named("domainProperties", "Commerce"),
            }
        )
        link = TermLink(
            id=TERM,
            name="Revenue",
            domain="Commerce",
            category="Finance",
            subcategory="Metrics > Sales",
            definition="Money in.",
        )
        assert found[ORDERS].terms == (link, TermLink(id="urn:li:glossaryTerm:Tax", name="Tax"))
        term = found[TERM]
        assert (term.name, term.location) == ("Revenue", ("Finance", "Metrics", "Sales"))
        assert term.attributes.model_dump(exclude_defaults=True) == {
            "domain": "Commerce",
            "category": "Finance",
            "subcategory": "Metrics > Sales",
            "definition": "Money in.",
        }
        assert term.custom_fields == ()

    def test_a_bare_guid_finds_the_term_behind_a_namespace(self, mapped: Mapped) -> None:
        guid = "0a1b2c3d-0000-4000-8000-123456789abc"
        found = mapped(
            {
                ORDERS: {"glossaryTerms": {"terms": [{"urn": f"urn:li:glossaryTerm:{guid}"}]}},
                f"urn:li:glossaryTerm:pack.{guid}": {"glossaryTermInfo": {"name": "Revenue", "definition": ""}},
            }
        )
        assert found[ORDERS].terms == (TermLink(id=f"urn:li:glossaryTerm:pack.{guid}", name="Revenue"),)

    def test_tags_are_paths_of_one_step_named_by_their_definition(self, mapped: Mapped) -> None:
        tags = {"tags": [{"tag": TAG}, {"tag": "urn:li:tag:plain"}, {"tag": TAG}]}
        found = mapped({ORDERS: {"globalTags": tags}, TAG: named("tagProperties", "Gold Standard")})
        assert found[ORDERS].tags == (("Gold Standard",), ("plain",))

    def test_a_deprecated_asset_is_cautioned_and_any_other_has_no_certification(self, mapped: Mapped) -> None:
        deprecation = {"deprecated": True, "note": "Use orders_v2.", "actor": USER}
        found = mapped({ORDERS: {"deprecation": deprecation}, CUSTOMERS: {"deprecation": {"deprecated": False}}})
        assert found[ORDERS].certification == Certification(
            status=CertificationStatus.CAUTIONED, type="Deprecated", by="finance-stewards"
        )
        assert CustomField(name="Deprecation Note", value="Use orders_v2.") in found[ORDERS].custom_fields
        assert found[CUSTOMERS].certification is None

    def test_related_terms_are_associations(self, mapped: Mapped) -> None:
        related = {"isRelatedTerms": ["urn:li:glossaryTerm:a"], "hasRelatedTerms": ["urn:li:glossaryTerm:b"]}
        found = mapped({TERM: {"glossaryRelatedTerms": related}})
        assert [(link.kind, link.target) for link in found[TERM].relationships] == [
            (RelationshipKind.ASSOCIATION, "urn:li:glossaryTerm:a"),
            (RelationshipKind.ASSOCIATION, "urn:li:glossaryTerm:b"),
        ]


class TestCustomFields:
    def test_structured_and_custom_properties_keep_their_types(self, mapped: Mapped) -> None:
        def assigned(key: str, *values: Any) -> dict[str, Any]:
            return {"propertyUrn": f"urn:li:structuredProperty:{key}", "values": list(values)}

        properties = [
            assigned("quality", {"double": 88.5}),
            assigned("contact", {"string": USER}),
            assigned("regions", {"string": "EU"}, {"string": "US"}),
            assigned("years", {"double": 3.0}, {"double": 7.5}),
            assigned("undefined.name", {"string": "x"}),
            assigned("empty"),
        ]
        found = mapped(
            {
                ORDERS: {
                    "domains": {"domains": [DOMAIN]},
                    "structuredProperties": {"properties": properties},
                    "datasetProperties": {"customProperties": {"contains_pii": "False", "business_critical": "True"}},
                },
                "urn:li:structuredProperty:quality": {
                    "propertyDefinition": {"qualifiedName": "shop.quality", "displayName": "Data Quality Score"}
                },
                "urn:li:structuredProperty:contact": {"propertyDefinition": {"qualifiedName": "shop.contact"}},
                USER: {"corpUserInfo": {"displayName": "Finance Stewards", "active": True}},
                DOMAIN: named("domainProperties", "Commerce"),
            }
        )
        assert [(custom.name, custom.value) for custom in found[ORDERS].custom_fields] == [
            ("Domain", "Commerce"),
            ("Platform", "snowflake"),
            ("Data Quality Score", 88.5),
            ("regions", "EU, US"),
            ("shop.contact", "Finance Stewards"),
            ("undefined.name", "x"),
            ("years", "3, 7.5"),
            ("business_critical", "True"),
            ("contains_pii", "False"),
        ]
        assert found[ORDERS].data_quality_score is None

    def test_the_platform_by_its_display_name_unless_the_catalog_says_it_itself(self, mapped: Mapped) -> None:
        platform = {"dataPlatformInfo": {"name": "snowflake", "displayName": "Snowflake"}}
        found = mapped(
            {
                ORDERS: {},
                CUSTOMERS: {"datasetProperties": {"customProperties": {"platform": "own words"}}},
                "urn:li:dataPlatform:snowflake": platform,
            }
        )
        assert found[ORDERS].custom_fields == (CustomField(name="Platform", value="Snowflake"),)
        assert found[CUSTOMERS].custom_fields == (CustomField(name="platform", value="own words"),)
