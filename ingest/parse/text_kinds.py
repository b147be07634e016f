"""Files without a signature: whether they are text at all, and which structured text."""

from __future__ import annotations

import codecs
import json

import regex

from ingest.parse import formats
from ingest.parse.magic import looks_binary

_HEAD = 16 * 1024
_BOMS = (
    (codecs.BOM_UTF8, "latin-1"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Possessive, so that a head full of comments costs one pass.
_COMMENTS = r"(?:<!--(?:(?!-->).)*+-->\s*+)*+"
_PROLOGUE = rf"^\s*+(?:<\?xml[^>]*+>\s*+)?{_COMMENTS}"
_HTML = regex.compile(_PROLOGUE + r"<(?:!doctype\s+html|html[\s>])", regex.I | regex.S)
_DOCTYPE = regex.compile(
    rf"{_PROLOGUE}<!doctype\s[^>\[]*+(?:\[[^\]]*+\]\s*+)?>\s*+{_COMMENTS}", regex.I | regex.S
)
_ROOT = regex.compile(
    r"\s*+(?:<\?(?:(?!\?>).)*+\?>\s*+|<!--(?:(?!-->).)*+-->\s*+)*+<([A-Za-z_][\w.:-]{0,80})[\s/>]", regex.S
)
_BLOCK_TAGS = (
    r"(?:p|div|h[1-6]|table|ul|ol|section|article|body|main|span|br|center|font|blockquote|head|style)"
)
_FRAGMENT = regex.compile(rf"^\s*+{_COMMENTS}<{_BLOCK_TAGS}(?:\s[^<>]*)?/?>", regex.I | regex.S)
_CLOSING = regex.compile(
    r"</(?:p|div|h[1-6]|table|tr|td|ul|ol|li|a|b|strong|span|section|article|body)\s*>", regex.I
)
_TIME = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_SRT = regex.compile(rf"^\s*(?:\d+\s*[\r\n]+)?\s*{_TIME}\s*-->\s*{_TIME}")
_VTT = regex.compile(r"^WEBVTT(?:[ \t].*)?(?:\r|\n|$)")
_FIELD = regex.compile(r"^([!-9;-~]{1,76})[ \t]*:(.*)$")
_MESSAGE_FIELDS = frozenset({"message-id", "received", "mime-version", "return-path", "delivered-to"})
_ROUND_FIELDS = frozenset({"from", "to", "subject", "date", "cc", "sender", "reply-to", "content-type"})


def text_head(content: bytes) -> str | None:
    """The first characters, ASCII right and the rest as it may be; None when `content` is not text."""
    for bom, name in _BOMS:
        if content.startswith(bom):
            return content[len(bom) : len(bom) + _HEAD].decode(name, "replace")
    if not looks_binary(content):
        return content[:_HEAD].decode("latin-1").replace("\x00", "")
    for name in ("utf-16-le", "utf-16-be"):
        head = content[: min(_HEAD, len(content) & ~1)].decode(name, "replace")
        if _reads_as_text(head):
            return head
    return None


def _reads_as_text(head: str) -> bool:
    """Random 16-bit units fall into the letters and marks of text in one case of three."""
    usual = len(
        regex.findall(
            r"[\x20-\x7e\r\n\t\u00a1-\u04ff\u2010-\u2027\u3000-\u30ff\u4e00-\u9fff\uff01-\uff5e\uac00-\ud7a3]",
            head,
        )
    )
    return len(head) >= 8 and usual >= 0.9 * len(head)


def evident_type(head: str) -> str | None:
    """The structured text that begins so, whatever its name says; None when none does."""
    if _VTT.match(head):
        return formats.VTT
    if _SRT.match(head):
        return formats.SRT
    if head.lstrip()[:1] == "<":
        return _markup_type(head)
    return _message_type(head)


def _markup_type(head: str) -> str | None:
    if _HTML.match(head):
        return formats.HTML
    doctype = _DOCTYPE.match(head)
    declared = head.lstrip()[:5].lower() == "<?xml" or doctype is not None
    root = _ROOT.match(head, doctype.end() if doctype else 0)
    name = root.group(1).lower() if root else ""
    if name == "html":
        return formats.HTML
    if name == "svg":
        formats.refuse("a drawing (SVG)", "Export it as PDF or PNG and upload that.")
    if name in ("rss", "rdf:rdf") and ("<channel" in head or name == "rss"):
        return formats.RSS
    if name == "feed":
        return formats.ATOM
    return formats.XML if declared else None


def _message_type(head: str) -> str | None:
    """A header block of a message: fields up to a blank line, one of them that only mail programs write."""
    names: set[str] = set()
    values: dict[str, str] = {}
    last = ""
    lines = head.replace("\r\n", "\n").split("\n")
    if lines and lines[0].startswith("From "):
        lines = lines[1:]
    if len(head) >= _HEAD - 8:
        lines = lines[:-1]  # it may be cut
    for line in lines[:800]:
        if not line.strip():
            break
        if line[0] in " \t" and last:
            values[last] += " " + line.strip()
            continue
        field = _FIELD.match(line)
        if field is None:
            return None
        last = field.group(1).lower()
        names.add(last)
        values[last] = field.group(2).strip()
    if not names & _MESSAGE_FIELDS or not names & _ROUND_FIELDS:
        return None
    related = values.get("content-type", "").lower().startswith("multipart/related")
    saved = "snapshot-content-location" in names or not names & {"to", "received", "message-id"}
    return formats.MHTML if related and saved else formats.EML


def begins_as_message(head: str) -> bool:
    """Whether the first line is a header field, which is enough for a file that is named as a message."""
    first = head.lstrip("\r\n").split("\n", 1)[0].rstrip("\r")
    return first.startswith("From ") or _FIELD.match(first) is not None


def is_fragment(head: str) -> bool:
    """Whether a text without a document type is plainly HTML: it begins with an element, closes several."""
    return bool(_FRAGMENT.match(head)) and len(_CLOSING.findall(head)) >= 2


def guessed_type(content: bytes, head: str) -> str:
    """The kind of a text that neither its name nor its first bytes tell."""
    if head.lstrip()[:1] in ("{", "["):
        if _is_json(content):
            return formats.JSON
        if _is_json(head.lstrip().split("\n", 1)[0].encode("latin-1", "replace")):
            return formats.JSONL
    root = _ROOT.match(head)
    if root is not None and content.rstrip(b"\r\n\t \x00").endswith(f"</{root.group(1)}>".encode()):
        return formats.XML
    if is_tab_table(head):
        return formats.TSV
    return formats.CSV if _is_even(head, ",", 2) else formats.TEXT


def _is_json(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict | list)
    except (ValueError, RecursionError):
        return False


def is_tab_table(head: str) -> bool:
    """Whether every line holds the same number of tabs."""
    return _is_even(head, "\t", 1)


def _is_even(head: str, delimiter: str, least: int) -> bool:
    """Whether at least three lines, and all of them, hold the same number (`least` or more) of delimiters."""
    lines = [line for line in head.splitlines() if line.strip()]
    if len(head) >= _HEAD // 2:
        lines = lines[:-1]  # it may be cut
    counts = {line.count(delimiter) for line in lines[:200]}
    return len(lines) >= 3 and len(counts) == 1 and counts.pop() >= least
