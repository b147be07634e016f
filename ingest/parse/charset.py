"""Bytes → text: which encoding, and how sure.

A declaration or a detector is only a hint; what decodes without error into plausible text wins. Chinese
encodings overlap (most Big5 bytes are valid GB18030 and read as rare characters), so candidates are compared
by how common their characters are.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import regex

from core.errors import DocumentRejected
from ingest.parse.model import ParseWarning

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MULTIBYTE = ("gb18030", "big5hkscs", "shift_jis", "euc_jp", "euc_kr")
_SAMPLE = 64 * 1024
_MIN_CONFIDENCE = 0.35
# Frequent characters and syllables: about 40 % of running Chinese, a quarter of Korean.
_FREQUENT = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然"
    "家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因只从想实日者意无力它与长"
    "這個們來為國時會說對過發後裡種經麼學現當沒動點從實長機關業間問並應戰頭體見與無還進樣開於電話資網維數據"
)
_KOREAN = frozenset("이다는은을를에의가고하한지로기서사도자인그어대나시리일부해정스")


def _level_one() -> frozenset[str]:
    """The first levels of GB 2312 and of Big5: the everyday characters, in plain byte ranges."""
    gb = bytes(b for lead in range(0xB0, 0xD8) for tail in range(0xA1, 0xFF) for b in (lead, tail))
    tails = (*range(0x40, 0x7F), *range(0xA1, 0xFF))
    big5 = bytes(b for lead in range(0xA4, 0xC7) for tail in tails for b in (lead, tail))
    return frozenset(gb.decode("gb2312", "ignore")) | frozenset(big5.decode("big5", "ignore"))


_EVERYDAY = _level_one()
_HAN = regex.compile(r"\p{Han}")
_KANA = regex.compile(r"[\u3041-\u30ff]")
_HANGUL = regex.compile(r"[\uac00-\ud7a3]")
_CJK_MARK = frozenset("，。、；：？！（）《》「」『』“”‘’【】—…")
_ODD = regex.compile(r"[\ue000-\uf8ff\x80-\x9f\ufffd\U000f0000-\U0010ffff]|[\uff61-\uff9f]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded text without its byte-order mark; `confidence` in [0, 1]."""

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
        DocumentRejected: no encoding gives plausible text (`encoding`).
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            text = data[len(bom) :].decode(name, errors="surrogatepass" if "16" in name else "replace")
            return Decoded(_scrub(text), "utf-8-sig" if name == "utf-8" else name, 1.0)
    if wide := _utf16_without_bom(data):
        return wide
    if utf8 := _utf8(data):
        return utf8
    if named := _as_declared(data, declared):
        return named
    return _detected(data)


def _scrub(text: str) -> str:
    """Lone surrogates become U+FFFD, one for one, so that every later step can encode the text."""
    if regex.search(r"[\ud800-\udfff]", text):
        return regex.sub(r"[\ud800-\udfff]", "\ufffd", text)
    return text


def _utf8(data: bytes) -> Decoded | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _mostly_utf8(data, error)
    return Decoded(text, "ascii" if text.isascii() else "utf-8", 1.0)


def _mostly_utf8(data: bytes, error: UnicodeDecodeError) -> Decoded | None:
    """UTF-8 with a few broken bytes (a cut at the end, one bad character) is still UTF-8."""
    text = data.decode("utf-8", errors="replace")
    broken = text.count("\ufffd") - data.count("\ufffd".encode())
    multibyte = sum(1 for c in text[:_SAMPLE] if c > "\u007f" and c != "\ufffd")
    if len(text) > _SAMPLE:
        multibyte = max(multibyte, 1)
    if broken > max(1, multibyte // 50) or multibyte < 4:
        return None
    warning = ParseWarning(
        "broken_bytes", f"{broken} byte sequences are not UTF-8 (first at byte {error.start})."
    )
    return Decoded(text, "utf-8", max(0.5, 1 - broken / max(multibyte, 1)), (warning,))


def _utf16_without_bom(data: bytes) -> Decoded | None:
    """UTF-16 text has NUL in every second byte (Latin) or one plausible reading (CJK)."""
    sample = data[: _SAMPLE & ~1]
    if len(data) % 2 or len(sample) < 4:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if max(even, odd) < max(2, 0.02 * half) or min(even, odd) > 0.1 * max(even, odd):
        return None
    name = "utf-16-le" if odd > even else "utf-16-be"
    text = data.decode(name, errors="replace")
    head = text[:4096]
    plausible = sum(c.isprintable() or c in "\r\n\t" for c in head) / max(1, len(head))
    return Decoded(_scrub(text), name, round(plausible, 3)) if plausible > 0.95 else None


def _as_declared(data: bytes, declared: str | None) -> Decoded | None:
    if not declared:
        return None
    name = _canonical(declared)
    if name is None or name.startswith(("utf-8", "utf-16", "utf-32")):
        return None  # it was tried above, or the declaration lies
    try:
        text = data.decode(name)
    except (UnicodeDecodeError, LookupError):
        return None
    if name in _MULTIBYTE and _plausibility(text[:_SAMPLE], name) < _MIN_CONFIDENCE:
        return None
    return Decoded(text, name, 0.95)


def _canonical(label: str) -> str | None:
    label = label.strip().strip("\"'").lower()
    if label in ("gb2312", "gbk", "gb_2312-80", "x-gbk", "cp936"):
        return "gb18030"  # the superset that real files of these labels use
    if label in ("big5", "big5-hkscs", "cp950", "x-x-big5"):
        return "big5hkscs"
    if label in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"):
        return "cp1252"
    try:
        return codecs.lookup(label).name
    except LookupError:
        return None


def _plausibility(text: str, name: str) -> float:
    """How much `text`, decoded as `name`, reads like the language of that encoding, in [0, 1].

    A wrong Chinese table yields rare characters; the Japanese and Korean tables also yield everyday ones, but
    then without kana, or with syllables that Korean hardly uses.
    """
    han = _HAN.findall(text)
    kana, hangul = _KANA.findall(text), _HANGUL.findall(text)
    total = len(han) + len(kana) + len(hangul)
    if total == 0:
        return 0.0
    odd = len(_ODD.findall(text))
    if name in ("shift_jis", "euc_jp"):
        share = min(1.0, len(kana) / total / 0.25)
    elif name == "euc_kr":
        common = sum(c in _KOREAN for c in hangul)
        share = len(hangul) / total * min(1.0, common / max(1, len(hangul)) / 0.2)
    else:
        everyday = sum(c in _EVERYDAY for c in han) / total
        frequent = sum(c in _FREQUENT for c in han) / total
        # A hundred everyday characters in a wrong table fall to about a half, so the square sets them apart.
        share = 0.85 * everyday**2 + 0.15 * min(1.0, frequent / 0.25)
    return max(0.0, share - 4 * odd / (total + odd))


def _detected(data: bytes) -> Decoded:
    candidates: list[tuple[float, str]] = []
    for name in _MULTIBYTE:
        text = _sample_text(data, name)
        if text is not None:
            candidates.append((_plausibility(text, name), name))
    candidates.sort(key=lambda c: -c[0])
    high = sum(b > 0x7F for b in data[:_SAMPLE]) / max(1, min(len(data), _SAMPLE))
    if candidates and candidates[0][0] >= _MIN_CONFIDENCE and high > 0.1:
        score, name = candidates[0]
        rival = candidates[1][0] if len(candidates) > 1 else 0.0
        text = data.decode(name, errors="replace")
        return Decoded(text, name, round(min(0.99, 0.5 + (score - rival) / 2), 3), _replaced(text, name))
    return _by_detector(data, candidates)


def _sample_text(data: bytes, name: str) -> str | None:
    decoder = codecs.getincrementaldecoder(name)()
    try:
        return decoder.decode(data[:_SAMPLE], final=len(data) <= _SAMPLE)
    except UnicodeDecodeError as error:
        text = data[:_SAMPLE].decode(name, errors="replace")
        # One broken pair in a long file is damage, several are the wrong table.
        return text if len(data) > 2000 and text.count("\ufffd") <= 2 and error.start > 0 else None


def _by_detector(data: bytes, candidates: list[tuple[float, str]]) -> Decoded:
    from charset_normalizer import from_bytes

    matches = from_bytes(data[: 4 * _SAMPLE])
    best = matches.best()
    if best is not None:
        # Western European tables differ in a few letters; without evidence the common one is meant.
        western = next((m for m in matches if m.encoding == "cp1252"), None)
        if western is not None and western.coherence >= best.coherence - 0.05:
            best = western
        name = _canonical(best.encoding) or best.encoding
        text = data.decode(name, errors="replace")
        confidence = round(max(0.0, min(0.9, (1 - best.chaos) * (0.5 + best.coherence / 2))), 3)
        if confidence >= _MIN_CONFIDENCE and text.count("\ufffd") <= len(text) // 100:
            return Decoded(text, name, confidence, _replaced(text, name))
    if candidates and candidates[0][0] > 0:
        score, name = candidates[0]
        text = data.decode(name, errors="replace")
        warning = ParseWarning(
            "encoding_uncertain", f"Read as {name} with little evidence; save it as UTF-8."
        )
        return Decoded(text, name, round(score / 2, 3), (warning, *_replaced(text, name)))
    raise DocumentRejected(
        "encoding", "The text's encoding could not be determined; save the file as UTF-8 and upload it again."
    )


def _replaced(text: str, name: str) -> tuple[ParseWarning, ...]:
    count = text.count("\ufffd")
    return (ParseWarning("broken_bytes", f"{count} byte sequences are not {name}."),) if count else ()
