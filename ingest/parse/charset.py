"""Bytes → text: which encoding, and how sure.

Marks and strict UTF-8 decide by themselves. Everything else is decided by which reading is the most probable
text (`charset_model`); a declaration only adds weight to its encoding, so one that lies is outvoted.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from core.errors import DocumentRejected
from ingest.parse.charset_model import CANDIDATES, Candidate, cost_of, cost_of_neighbours
from ingest.parse.model import ParseWarning

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 6144
_ENOUGH_HIGH_BYTES = 400
_MAX_BROKEN = 0.02  # share of characters; more means the wrong table
_DECLARED_WEIGHT = 6.0  # nats: outvotes about one character in doubt, not three
_TEMPERATURE = 2.5  # the model takes neighbours for independent, so its odds are too sure
_NEAR = 25.0  # nats: readings further behind the best do not count
# Share of the text that is expected to be wrong: where it is large the text is refused, where it is small a
# warning is given. One doubtful letter in a line does no harm, Chinese in the wrong table is all noise.
_MAX_DAMAGE, _HARMLESS = 0.2, 0.005
_NOISE = 5.5  # nats per byte: text in 33 encodings takes at most 4.7, fifty random bytes at least 6.2
_SURROGATE = regex.compile(r"[\ud800-\udfff]")
_HIGH = bytes(range(0x80, 0x100))
_TEXT_BYTES = bytes((9, 10, 11, 12, 13, 27, *range(32, 256)))
# Escape sequences of encodings that are written in 7 bits.
_SEVEN_BIT = ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$", "iso2022_jp_2"), (b"~{", "hz"))


_ERRORS = "geo_engine_replace"


def _replace(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD for what the table does not know; Chinese Windows writes the euro sign as one byte more."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    if error.encoding.startswith("gb") and error.object[error.start] == 0x80:
        return "€", error.start + 1
    return "\ufffd", error.end


codecs.register_error(_ERRORS, _replace)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded text without its byte-order mark.

    Attributes:
        confidence: estimated probability in [0, 1] that the text is read right.
    """

    text: str
    encoding: str
    confidence: float
    warnings: tuple[ParseWarning, ...] = ()


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """Decode `data`, whatever its encoding.

    Args:
        data: the whole file.
        declared: the encoding that the document itself names (HTML meta, XML declaration), if any.

    Raises:
        DocumentRejected: two readings are about equally likely, or none is plausible text (`encoding`).
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return _read(data[len(bom) :], name, 1.0, shown="utf-8-sig" if name == "utf-8" else name)
    odd = len(data[:_SAMPLE].translate(None, _TEXT_BYTES)) > 0  # UTF-16 is full of them
    if not odd and (found := _seven_bit(data) or _utf8(data)):
        return found
    return _most_probable(data, declared)


def _read(data: bytes, name: str, confidence: float, *, shown: str = "") -> Decoded:
    """The whole file as `name`; lone surrogates and broken bytes become U+FFFD, one for one."""
    keep = name.startswith("utf-16") and len(data) % 2 == 0
    text = data.decode(name, errors="surrogatepass" if keep else _ERRORS)
    text = _SURROGATE.sub("\ufffd", text)
    broken = text.count("\ufffd")
    warnings: tuple[ParseWarning, ...] = ()
    if broken and name.startswith("utf-8"):
        broken -= data.count("\ufffd".encode())
    if broken:
        warnings = (ParseWarning("broken_bytes", f"{broken} byte sequences are not {shown or name}."),)
    return Decoded(text, shown or name, confidence, warnings)


def _seven_bit(data: bytes) -> Decoded | None:
    if not data.isascii():
        return None
    for escape, name in _SEVEN_BIT:
        if escape not in data:
            continue
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        if not text.isascii():
            return Decoded(text, name, 0.95)
    return Decoded(data.decode("ascii"), "ascii", 1.0)


def _utf8(data: bytes) -> Decoded | None:
    """UTF-8, also with a few broken bytes (a cut at the end, one bad character)."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        broken = text.count("\ufffd") - data.count("\ufffd".encode())
        whole = sum(1 for c in text if c > "\u07ff" and c != "\ufffd")  # three bytes and more: no accident
        pairs = sum(1 for c in text if "\x7f" < c <= "\u07ff")
        if broken > max(1, (whole + pairs) // 20) or 2 * whole + pairs < 4:
            return None
        return _read(data, "utf-8", round(max(0.6, 1 - broken / (2 * whole + pairs)), 3))
    if len(data) - len(text) >= 4:  # bytes beyond the first of a character: the weight below is above 3
        return Decoded(text, "utf-8", 1.0)
    weight = sum((1 if c <= "\u07ff" else 3) for c in text[:_SAMPLE] if c > "\x7f")
    # Two or three pairs may be UTF-8 by accident; with more, the chance is below one in ten thousand.
    return Decoded(text, "utf-8", 1.0) if weight > 3 or len(text) > _SAMPLE else None


@dataclass(frozen=True, slots=True)
class _Reading:
    name: str
    text: str
    cost: float


def _most_probable(data: bytes, declared: str | None) -> Decoded:
    sample, whole = _sample(data)
    readings = _readings(sample, whole, _canonical(declared))
    if not readings or readings[0].cost > _NOISE * len(sample):
        raise _doubt("in no known encoding does it read as text")
    best = readings[0]
    odds = {r.text: math.exp((best.cost - r.cost) / _TEMPERATURE) for r in reversed(readings)}
    total = sum(odds.values())
    confidence = round(min(0.99, odds[best.text] / total), 3)
    damage = sum(_differing(best.text, text) * odd / total for text, odd in odds.items())
    if damage > _MAX_DAMAGE:
        names = " or ".join(dict.fromkeys(r.name for r in readings[:3]))
        raise _doubt(f"it may be {names}")
    found = _read(data, best.name, confidence)
    if damage <= _HARMLESS:
        return found
    warning = ParseWarning(
        "encoding_uncertain", f"Read as {best.name}, but that is not certain; save the file as UTF-8."
    )
    return Decoded(found.text, found.encoding, confidence, (warning, *found.warnings))


def _differing(text: str, other: str) -> float:
    """Share of the characters in which two readings of the same bytes differ."""
    if len(text) != len(other):
        return sum(1 for c in text if c > "\x7f") / max(1, len(text))
    return sum(a != b for a, b in zip(text, other, strict=True)) / max(1, len(text))


def _doubt(why: str) -> DocumentRejected:
    return DocumentRejected(
        "encoding",
        f"The text's encoding could not be determined: {why}. Save the file as UTF-8 and upload it again.",
    )


def _sample(data: bytes) -> tuple[bytes, bool]:
    """The part that decides, and whether it is everything.

    The first bytes, or lines with bytes above 0x7f where those are few.
    """
    head = data[:_SAMPLE]
    high = len(head) - len(head.translate(None, _HIGH))
    if len(data) <= _SAMPLE or b"\0" in head or high >= _ENOUGH_HIGH_BYTES:
        return head, len(data) <= _SAMPLE
    chosen: list[bytes] = []
    size = 0
    for line in data.splitlines():
        if not line.isascii():
            chosen.append(line[:_SAMPLE])
            size += len(line)
            if size >= _SAMPLE:
                break
    return (b"\n".join(chosen)[:_SAMPLE], False) if chosen else (head, False)


def _readings(sample: bytes, whole: bool, declared: str | None) -> list[_Reading]:
    """What the sample may say, most probable first; only what comes near the best."""
    rough: list[_Reading] = []
    for candidate in _candidates(declared):
        text = _decoded(sample, candidate.name, whole=whole)
        if text is not None:
            weight = _DECLARED_WEIGHT if candidate.name == declared else 0.0
            rough.append(_Reading(candidate.name, text, cost_of(text, candidate) - weight))
    rough.sort(key=lambda r: r.cost)
    near: list[_Reading] = []
    bound = math.inf
    known: dict[str, float] = {}
    for reading in rough:
        if reading.cost > bound:
            break
        if reading.text not in known:
            known[reading.text] = cost_of_neighbours(reading.text)
        near.append(_Reading(reading.name, reading.text, reading.cost + known[reading.text]))
        bound = min(bound, near[-1].cost + _NEAR)
    return sorted(near, key=lambda r: r.cost)


_ALL_LANGUAGES = tuple(dict.fromkeys(language for c in CANDIDATES for language in c.languages))
# Bytes that are UTF-8 throughout, however few, are more often UTF-8 than not.
_UTF8 = Candidate("utf-8", _ALL_LANGUAGES, -6.0)


def _candidates(declared: str | None) -> Iterable[Candidate]:
    yield from CANDIDATES
    yield _UTF8
    if declared is not None and all(declared != c.name for c in CANDIDATES):
        yield Candidate(declared, _ALL_LANGUAGES, 2.0)


def _decoded(sample: bytes, name: str, *, whole: bool) -> str | None:
    """The sample in this encoding, or None when it is not; a character cut at its end is left out."""
    if name.startswith("utf-16") and len(sample) % 2:
        return None
    try:
        text = codecs.getincrementaldecoder(name)(errors=_ERRORS).decode(sample, final=whole)
    except (LookupError, ValueError):
        return None
    broken = text.count("\ufffd")
    if broken and (name == "utf-8" or broken > max(1, _MAX_BROKEN * len(text))):
        return None
    return text


def _canonical(label: str | None) -> str | None:
    """The name of the widest encoding that files with this label use, or None for no or an unknown label."""
    if not label:
        return None
    label = label.strip().strip("\"'").lower()
    if label in ("gb2312", "gbk", "gb_2312-80", "x-gbk", "cp936", "gb18030", "hz-gb-2312"):
        return "gb18030"
    if label in ("big5", "big5-hkscs", "cp950", "x-x-big5", "big5hkscs"):
        return "big5hkscs"
    if label in ("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji", "cp932"):
        return "cp932"
    if label in ("euc-kr", "ks_c_5601-1987", "euc_kr", "cp949", "windows-949", "uhc"):
        return "cp949"
    if label in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"):
        return "cp1252"
    if label in ("iso-8859-9", "latin5"):
        return "cp1254"
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    return None if name.startswith(("utf", "idna", "punycode", "raw", "unicode")) else name.replace("-", "_")
