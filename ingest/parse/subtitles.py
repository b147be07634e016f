"""Subtitles (SRT, WebVTT): cues joined into paragraphs of whole sentences, their times kept beside the text.

A paragraph is the part `member` that is named by its start, `00:12:40`, and its fragments know their lines:
a citation leads to the moment, while no time stands in the text that is searched.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

import regex

from ingest.parse.charset import decode
from ingest.parse.formats import SRT, VTT
from ingest.parse.lines import Line, lines_of
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.text import parse_text
from ingest.parse.within import check_length

_STAMP = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_TIMING = regex.compile(rf"^\s*{_STAMP}\s*-->\s*{_STAMP}")
_VOICE = regex.compile(r"<v(?:\.[\w.-]+)?\s+([^<>]+)>", regex.IGNORECASE)
_TAG = regex.compile(r"</?[A-Za-z][^<>]*>|</?>|<\d[\d:.]*>|\{\\[^{}]*\}|\{[yYfFsScCpPoO]:[^{}]*\}")
_LINE_BREAK = regex.compile(r"\\[Nnh]")
_LANGUAGE = regex.compile(r"^Language:\s*([A-Za-z]{2,3}(?:-[\w-]+)?)\s*$", regex.IGNORECASE)
_ENDS = regex.compile(r"[.!?。！？…][\"'”’」』）)\]]*$")
# A sentence that ends closes the paragraph after such a pause, or once the paragraph is long enough.
_PAUSE_S = 1.5
_LONG_PAUSE_S = 5.0
_SPAN_S = 45.0
_ENOUGH = 300
_TOO_MUCH = 800
# Captions that roll show a line again at once; a person who repeats a word takes a moment.
_ROLL_S = 0.1
_ROLL_CHARS = 8
_ROLL_LINES = 4


@dataclass(slots=True)
class Cue:
    """What is shown from `start` to `end` (seconds); cleaned lines without blank ones."""

    start: float
    end: float
    lines: list[Line] = field(default_factory=list)
    speaker: str = ""


def parse_subtitles(content: bytes, options: ParseOptions, media_type: str = SRT) -> ParsedDocument:
    """Read subtitles; without a single cue the file is read as plain text.

    Markup, positions, styles and notes are dropped. Speakers that WebVTT names stand before what they say.
    """
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    lines = list(lines_of(decoded.text))
    cues = _unrolled(_cues(lines, one_paragraph=media_type == VTT))
    blocks = tuple(_blocks(cues))
    if not blocks:
        return parse_text(content, options, media_type)
    language = next((m.group(1) for line in lines[:10] if (m := _LANGUAGE.match(line.text))), "")
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
        properties={"language": language} if media_type == VTT and language else {},
    )


def _cues(lines: list[Line], *, one_paragraph: bool) -> Iterator[Cue]:
    """Cues in file order.

    Args:
        lines: of the whole file.
        one_paragraph: a blank line ends the cue (WebVTT), so that notes after it are not its text; SRT files
            have blank lines inside cues.
    """
    cue: Cue | None = None
    shown: list[Line] = []
    over = False
    for line in lines:
        timing = _TIMING.match(line.text)
        if timing is None:
            over = over or (one_paragraph and line.blank)
            if not over:
                shown.append(line)
            continue
        if cue is not None:
            yield _filled(cue, shown[:-1] if _is_label(shown, line) else shown)
        stamps = timing.groups()
        cue, shown, over = Cue(_seconds(stamps[:4]), _seconds(stamps[4:])), [], False
    if cue is not None:
        yield _filled(cue, shown)


def _is_label(shown: list[Line], timing: Line) -> bool:
    """Whether the line before a timing names the cue below instead of ending the one above."""
    if not shown or shown[-1].number != timing.number - 1 or shown[-1].blank:
        return False
    return shown[-1].text.strip().isdigit() or (len(shown) > 1 and shown[-2].blank)


def _filled(cue: Cue, shown: list[Line]) -> Cue:
    for line in shown:
        if (voice := _VOICE.search(line.text)) and not cue.speaker:
            cue.speaker = html.unescape(voice.group(1)).strip()
        text = html.unescape(_TAG.sub("", _LINE_BREAK.sub(" ", line.text))).strip()
        if text:
            verbatim = line.text.find(text)
            start = line.start + verbatim if verbatim >= 0 else -1
            cue.lines.append(Line(text, start, line.number, len(text)))
    return cue


def _unrolled(cues: Iterator[Cue]) -> Iterator[Cue]:
    """Drop lines that are shown again because captions roll or grow."""
    last: Cue | None = None
    before: list[str] = []
    for cue in cues:
        texts = [line.text for line in cue.lines]
        if last is not None and abs(cue.start - last.end) <= _ROLL_S:
            most = min(len(texts), len(before), _ROLL_LINES)
            again = max(n for n in range(most + 1) if texts[:n] == before[len(before) - n :])
            if again < len(texts) or sum(map(len, texts)) >= _ROLL_CHARS:
                cue.lines = cue.lines[again:]
            if last.lines and cue.lines and _grows(last.lines[-1].text, cue.lines[0].text):
                last.lines.pop()
        if last is not None:
            yield last
        last, before = cue, texts or before
    if last is not None:
        yield last


def _grows(old: str, new: str) -> bool:
    """Whether `new` is `old` and more words."""
    return len(old) >= _ROLL_CHARS and len(new) > len(old) and new.startswith(old)


@dataclass(slots=True)
class _Paragraph:
    start: float
    speaker: str
    end: float = 0.0
    fragments: list[Fragment] = field(default_factory=list)
    chars: int = 0

    def add(self, cue: Cue) -> None:
        if not self.fragments and self.speaker:
            self.fragments.append(Fragment(f"{self.speaker}:", "", line=cue.lines[0].number))
        for line in cue.lines:
            start = line.start if line.start >= 0 else None
            glue = " " if self.fragments else ""  # between CJK lines as well: a space is their only stop
            self.fragments.append(Fragment(line.text, glue, start, line.number))
            self.chars += line.width if line.text.isascii() else 2 * line.width
        self.end = cue.end

    def is_over(self, cue: Cue) -> bool:
        """Whether `cue` begins a new paragraph."""
        if cue.speaker and cue.speaker != self.speaker:
            return True
        pause = cue.start - self.end
        if pause >= _LONG_PAUSE_S or self.chars >= _TOO_MUCH:
            return True
        long = self.chars >= _ENOUGH or cue.start - self.start >= _SPAN_S
        return _ENDS.search(self.fragments[-1].text) is not None and (long or pause >= _PAUSE_S)


def _blocks(cues: Iterator[Cue]) -> Iterator[Block]:
    paragraph: _Paragraph | None = None
    number = 0
    for cue in cues:
        if not cue.lines:
            continue
        if paragraph is not None and paragraph.is_over(cue):
            yield _block(paragraph, number)
            number += 1
            paragraph = None
        if paragraph is None:
            paragraph = _Paragraph(cue.start, cue.speaker)
        paragraph.add(cue)
    if paragraph is not None:
        yield _block(paragraph, number)


def _block(paragraph: _Paragraph, number: int) -> Block:
    return Block(
        BlockKind.PARAGRAPH, tuple(paragraph.fragments), paragraph=number, member=_clock(paragraph.start)
    )


def _seconds(stamp: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = stamp
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + float(f"0.{fraction}")


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
