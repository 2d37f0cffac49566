"""HTML and Markdown taken off a text that may hold either, both, or something that only looks like them.

Every pattern is linear in the length of the text: an open bracket or quote is looked for only up to the next one of
its kind, and what cannot match is given up without backtracking.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"<!--(?:(?!<!--|-->).)*+-->", re.DOTALL)
_UNREAD_ELEMENT = re.compile(r"<(script|style)\b(?:(?!</?(?:script|style)\b).)*+</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"""<(?P<lead>[/!?]?)(?P<name>[A-Za-z][\w:.-]*+)(?P<rest>(?:"[^"<]*"|'[^'<]*'|[^<>"'])*+|[^<>]*+)>""")
_INLINE_NAMES = """
a abbr b bdi bdo big cite code del dfn em font i ins kbd label mark q s samp small span strike strong sub sup tt u var
wbr
"""
_INLINE_ELEMENTS = frozenset(_INLINE_NAMES.split())
_SPACING_ELEMENTS = frozenset(["button", "col", "img", "input", "option", "source", "td", "th", "track"])
_BLOCK_NAMES = """
address article aside audio blockquote body canvas caption center colgroup dd details div dl doctype dt embed fieldset
figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link main map meta nav noscript
object ol optgroup p param picture pre section select summary svg table tbody template textarea tfoot thead title tr ul
video xml
"""
_BLOCK_ELEMENTS = frozenset(_BLOCK_NAMES.split())

_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")
_FENCE = re.compile(r"^[ \t]*+(?:`{3,}|~{3,})[^\n]*+$", re.MULTILINE)
_LINK_DEFINITION = re.compile(r"^[ \t]{0,3}\[[^\[\]\n]+\]:[ \t]*\S[^\n]*+$", re.MULTILINE)
_LINK = re.compile(
    r"""!?\[([^\[\]]*+)\](?:\(\s*+(?:<[^<>\n]*+>|(?:[^\s()]|\([^\s()]*+\))*+)(?:\s++"[^"]*+"|\s++'[^']*+')?\s*+\)|\[[^\[\]]*+\])"""
)
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]*+\]")
_CHECKBOX = re.compile(r"^([ \t]*+[-*+][ \t]++)\[[ xX]\][ \t]", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*+#{1,6}[ \t]++([^\n]*+)$", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"(?<=[ \t])#++[ \t]*+(?=\x01|$)", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*+(?:(?:[-*+>]|\d{1,2}[.)])[ \t]++|>++|\|)++", re.MULTILINE)
_RULE_LINE = re.compile(r"^[ \t|:=*_+~-]++$", re.MULTILINE)
_EMPHASIS = re.compile(r"""(?<![\w*])\*(?=[\w"'(\[])([^*\n]*+)(?<=[\w.,;:!?%)"'\]])\*(?![\w*])""")
_MARKS = re.compile(r"\*{2,}|~{2,}|`+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|(?<!\w)_{2,}(?!\w)")

_BLOCK = "\x01"  # stands between blocks until they are joined; control characters were taken out before
_BLOCK_END = re.compile(r"\x01|\n[ \t]*+\n")
_ENDED = (".", "!", "?", ":", ";", ",", "…", "。", "！", "？")


def without_html(text: str) -> str:
    """The text without tags, comments, scripts and styles; blocks stand apart by empty lines.

    What is no known element and has no attributes ("<customer id>", "List<String>") keeps its words.
    """
    return _TAG.sub(_tag_replacement, _UNREAD_ELEMENT.sub(" ", _COMMENT.sub(" ", text)))


def _tag_replacement(match: re.Match[str]) -> str:
    name = match["name"].lower()
    if name in _INLINE_ELEMENTS:
        return ""
    if name in _BLOCK_ELEMENTS:
        return "\n\n"
    if name == "br":
        return "\n"
    if name in _SPACING_ELEMENTS or match["lead"] or ":" in name or "=" in match["rest"]:
        return " "
    return f" {match['name']}{match['rest']} "


def without_markdown(text: str) -> str:
    """The text without Markdown and on one line; what stood in blocks of its own is parted by punctuation."""
    text = _ESCAPED.sub(r"\1", text)
    if "`" in text or "~" in text:
        text = _FENCE.sub(_BLOCK, text)
    if "[" in text:
        text = _FOOTNOTE.sub("", _CHECKBOX.sub(r"\1", _LINK_DEFINITION.sub("", text)))
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))  # twice: an image may be the text of a link
    text = _HEADING.sub(rf"{_BLOCK}\1{_BLOCK}", _RULE_LINE.sub(_BLOCK, text))
    text = _LINE_MARK.sub(_BLOCK, _CLOSING_HASHES.sub("", text))
    text = _MARKS.sub("", _EMPHASIS.sub(r"\1", text))
    return _joined(_BLOCK_END.split(text.replace("|", " ")))


def _joined(blocks: list[str]) -> str:
    parts: list[str] = []
    for block in filter(None, (" ".join(block.split()) for block in blocks)):
        if parts and not parts[-1].endswith(_ENDED):
            parts[-1] += ";" if block[0].islower() else "."
        parts.append(block)
    return " ".join(parts)
