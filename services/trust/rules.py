"""The trust rules as typed data: what `rules.yaml` and a file laid over it may say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from services.catalog.model import ObjectType, canonical_json
from services.catalog.parts import CertificationStatus
from services.errors import RulesError
from services.trust.names import Words, name_words, words_of
from services.trust.rules_file import RulesFile, located, overlay, parse_rules, read_rules

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Positive = Annotated[float, Field(strict=True, gt=0, le=1e9)]
Weight = Annotated[float, Field(strict=True, ge=0, le=1000)]
Texts = frozenset[StrictStr]
Said = TypeVar("Said")


class SignalName(StrEnum):
    """The categories of trust signals, in the order in which they are shown."""

    CRITICAL_DATA_ELEMENT = "critical_data_element"
    DATA_QUALITY = "data_quality"
    CERTIFICATION = "certification"
    AUTHORITATIVE = "authoritative"
    POLICY_COMPLIANCE = "policy_compliance"


class CurationItemName(StrEnum):
    """The items that a curation score can be made of; `services.trust.curation` knows how each is measured."""

    BUSINESS_DESCRIPTION = "business_description"
    TECHNICAL_DESCRIPTION = "technical_description"
    TITLE = "title"
    OWNER_OR_STEWARD = "owner_or_steward"
    GLOSSARY_ASSOCIATION = "glossary_association"
    TAGS = "tags"
    CLASSIFICATION = "classification"
    DESCRIBED_COLUMNS = "described_columns"
    QUALITY_OR_PROFILE = "quality_or_profile"
    CERTIFICATION = "certification"
    CONNECTION = "connection"
    DOMAIN_OR_CATEGORY = "domain_or_category"
    STATUS = "status"


class RulesPart(BaseModel):
    """Base of every part: frozen, and no key that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FieldPattern(RulesPart):
    """Options of a custom field's name pattern."""

    whole: StrictBool = False
    confidence: Share | None = None


class QualityPattern(FieldPattern):
    scale: Positive | None = None
    reads: Literal["result", "rules"] = "result"


class LabelRule(RulesPart, Generic[Said]):
    """What a tag or term of that whole name says."""

    says: Said
    applies_to: frozenset[Literal["tag", "term"]] = frozenset({"tag", "term"})
    confidence: Share | None = None


class SignalRules(RulesPart):
    weight: Share
    object_types: frozenset[ObjectType]
    disqualifiers: Texts = frozenset()

    @field_validator("patterns", "values", "labels", check_fields=False)
    @classmethod
    def _distinct_as_words(cls, by_name: Mapping[str, Any]) -> Mapping[str, Any]:
        require_distinct(by_name)
        return by_name


class StatementRules(SignalRules):
    """Rules of a signal that is a yes or a no."""

    patterns: dict[StrictStr, FieldPattern]
    values: dict[StrictStr, StrictBool] = {}
    labels: dict[StrictStr, LabelRule[StrictBool]] = {}


class QualityRules(SignalRules):
    patterns: dict[StrictStr, QualityPattern]
    values: dict[StrictStr, Share] = {}
    labels: dict[StrictStr, LabelRule[Share]] = {}


class CertificationRules(SignalRules):
    patterns: dict[StrictStr, FieldPattern]
    values: dict[StrictStr, CertificationStatus] = {}
    labels: dict[StrictStr, LabelRule[CertificationStatus]] = {}
    expiry_patterns: Texts = frozenset()


AnySignalRules = StatementRules | QualityRules | CertificationRules


class SignalTable(RulesPart):
    critical_data_element: StatementRules
    data_quality: QualityRules
    certification: CertificationRules
    authoritative: StatementRules

    @property
    def by_name(self) -> dict[SignalName, AnySignalRules]:
        return {
            SignalName.CRITICAL_DATA_ELEMENT: self.critical_data_element,
            SignalName.DATA_QUALITY: self.data_quality,
            SignalName.CERTIFICATION: self.certification,
            SignalName.AUTHORITATIVE: self.authoritative,
        }

    @model_validator(mode="after")
    def _weights_within_one(self) -> Self:
        total = sum(part.weight for part in self.by_name.values())
        if total > 1 + 1e-9:
            raise ValueError(f"the four weights add up to {total:g}; they may not exceed 1")
        return self


class ConfidenceRules(RulesPart):
    custom_field: Share
    tag: Share
    term: Share


class PolicyRules(RulesPart):
    patterns: Texts
    regulations: dict[StrictStr, Texts]
    disqualifiers: Texts = frozenset()


class VocabularyRules(RulesPart):
    yes_spellings: Texts
    no_spellings: Texts
    placeholders: Texts
    unsettled: Texts
    leading_placeholders: Texts
    negations: Texts
    negations_before: Texts
    negating_prefixes: Texts
    fillers: Texts
    markers: Texts
    neutral: Texts
    affixes: Texts
    graded: Texts
    disqualifiers: Texts
    name_scales: dict[StrictStr, Positive]

    @field_validator("name_scales")
    @classmethod
    def _distinct_as_words(cls, by_name: dict[str, float]) -> dict[str, float]:
        require_distinct(by_name)
        return by_name


class CurationItemRule(RulesPart):
    """An item of the curation score: its weight, where it applies, and the step that fills it."""

    label: StrictStr
    weight: Weight
    object_types: frozenset[ObjectType]
    step: StrictStr


class TrustRules(RulesPart):
    """All that the trust room takes from its rules file. Equal content, equal `digest`, whatever its order."""

    confidence: ConfidenceRules
    signals: SignalTable
    certification_values: dict[CertificationStatus, Share]
    quality_rules_value: Share
    policy_compliance: PolicyRules
    scales: dict[StrictStr, Positive]
    vocabulary: VocabularyRules
    sensitive_tags_and_terms: Texts = Field(alias="sensitive_names")
    curation: dict[CurationItemName, CurationItemRule]

    @field_validator("certification_values")
    @classmethod
    def _every_status(cls, by_status: dict[CertificationStatus, float]) -> dict[CertificationStatus, float]:
        if missing := [status.value for status in CertificationStatus if status not in by_status]:
            raise ValueError(f"no value for: {', '.join(missing)}")
        return by_status

    @field_validator("scales")
    @classmethod
    def _distinct_fields(cls, by_name: dict[str, float]) -> dict[str, float]:
        require_distinct(by_name, name_words)
        return by_name

    @property
    def sensitive_names(self) -> frozenset[str]:
        """Case-folded names of the tags and terms (and all below them) that keep values out of sight."""
        return frozenset(name.strip().casefold() for name in self.sensitive_tags_and_terms)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the content; changes when anything that could change a number does."""
        return hashlib.sha256(canonical_json(_sorted_sets(self.model_dump())).encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.digest)


def require_distinct(names: Iterable[str], to_words: Any = words_of) -> None:
    """ValueError when a name has no word, or two are the same words ("CDE" and "cdes")."""
    seen: dict[Words, str] = {}
    for name in names:
        words = to_words(name)
        if not words:
            raise ValueError(f"{name!r} has no letter or digit to compare")
        if words in seen:
            raise ValueError(f"{name!r} and {seen[words]!r} are the same words; keep one")
        seen[words] = name


def load_rules(path: Path | None = None) -> TrustRules:
    """The shipped rules, with the file at `path` laid over them. RulesError names file, line and key."""
    text = resources.files("services.trust").joinpath("rules.yaml").read_text(encoding="utf-8")
    files = [parse_rules(text, "rules.yaml (shipped)")]
    data = files[0].data
    if path is not None:
        files.append(read_rules(path))
        data = overlay(*files)
    return _validated(data, files)


def _validated(data: dict[str, Any], files: list[RulesFile]) -> TrustRules:
    try:
        return TrustRules.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise RulesError(located(files, _path(first["loc"]), _problem(first)) + more) from error


def _path(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return tuple(step for step in loc if step != "[key]")


def _problem(error: Any) -> str:
    """The validator's message, with the fix where YAML itself is the trap."""
    kind, message = error["type"], str(error["msg"]).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return "unknown key"
    if kind == "missing":
        return "the key is missing"
    if kind in ("string_type", "invalid_key"):
        return f"a word was expected, not {error['input']!r}; put quotes around it"
    return f"{message}, not {error['input']!r}" if isinstance(error["input"], str | int | float) else message


def _sorted_sets(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _sorted_sets(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(str(item) for item in value)
    return value
