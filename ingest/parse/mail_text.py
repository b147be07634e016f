"""The text of a message: who wrote which part of it.

Replies quote what they answer. The quoted text stays, because often no other copy of it exists, but under a
heading that says whose it is, so that a passage from it is never taken for the sender's own words.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, pairwise

import regex

from ingest.parse.formats import EML
from ingest.parse.model import Block, BlockKind, Fragment, ParseOptions
from ingest.parse.text import parse_text

_QUOTED = "Quoted message"
_LEVEL = 2
_MAX_LEVEL = 6
_ATTRIBUTION_MAX = 300
_MAX_RUNS = 5000  # nobody writes so; marks that change this often are no quotes
_MARKS = regex.compile(r"^(?:>[ \t]?){1,40}+")
_FORWARD_MARKS = (
    "Original Message|Forwarded Message|Original Appointment|原始邮件|原始郵件|原邮件|转发邮件"
    "|转发的邮件|轉寄郵件|轉寄的郵件|Ursprüngliche Nachricht|Message d'origine"
)
_ATTRIBUTION = regex.compile(
    r"On\s.{4,}\swrote:|.{3,}\s(?:wrote|writes):|(?:Am|Le|El|Il)\s.{4,}\s(?:schrieb|écrit|escribió).*:"
    r"|.{4,}(?:写道|寫道)\s*[：:]",
    regex.IGNORECASE,
)
_FORWARDED = regex.compile(
    rf"[-_]{{2,}}\s*(?:{_FORWARD_MARKS})\s*[-_]{{2,}}|Begin forwarded message:", regex.IGNORECASE
)
# Authors are quoted in any prose; only mail programs add the day or the address.
_DATED = regex.compile(r"\d\d|@")
_FROM_LINE = regex.compile(r"(?:From|发件人|發件人|寄件者|寄件人|Von|De)\s*[：:]\s*\S", regex.IGNORECASE)
_SENT_LABELS = "Sent|Date|发送时间|发件时间|日期|时间|傳送時間|寄件日期|時間|Gesendet|Envoyé"
_SENT_LINE = regex.compile(rf"(?:^|\s)(?:{_SENT_LABELS})\s*[：:]\s*\S", regex.IGNORECASE)
_PGP_SIGNATURE = regex.compile(
    r"-----BEGIN PGP SIGNATURE-----.*?(?:-----END PGP SIGNATURE-----|\Z)", regex.DOTALL
)
_PGP_HEAD = regex.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\r?\n(?:[A-Za-z]+:.*\r?\n)*\s*")
_BLOCKQUOTE = regex.compile(r"<(/?)blockquote\b([^<>]*+)>", regex.IGNORECASE)
_CITED = regex.compile(r"type\s*=\s*[\"']?cite|gmail_quote", regex.IGNORECASE)
_TAG = regex.compile(r"<[^<>]*+>|&nbsp;")
_LOOK_AHEAD = 4000
_ENCRYPTED = "-----BEGIN PGP MESSAGE-----"


def is_encrypted_text(text: str) -> bool:
    """Whether the whole text is one encrypted PGP block."""
    return text.lstrip().startswith(_ENCRYPTED)


def plain_blocks(text: str, options: ParseOptions, author: str, *, flowed: bool = False) -> list[Block]:
    """A plain text body as blocks.

    Args:
        text: decoded.
        options: of the message.
        author: who speaks where nothing is quoted; the heading when they go on after a quote.
        flowed: lines that end in a space go on (RFC 3676).
    """
    text = _PGP_SIGNATURE.sub("", _PGP_HEAD.sub("", text))
    blocks: list[Block] = []
    quoting = 0
    for depth, content in _by_depth(text, flowed):
        if not content.strip():
            continue
        found = unplaced(parse_text(content.encode("utf-8", "replace"), options, EML).blocks)
        if depth > quoting:
            blocks.append(_opening(blocks, depth))
        elif depth < quoting and not _is_attribution(found[0].text):
            blocks.append(_heading(author or "Reply" if depth == 0 else _QUOTED, max(1, depth)))
        quoting = depth
        blocks.extend(found)
    return with_attributions(blocks)


def with_attributions(blocks: Iterable[Block]) -> list[Block]:
    """Make lines that say whose words follow (`On … wrote:`) headings."""
    listed = list(blocks)
    out: list[Block] = []
    for index, block in enumerate(listed):
        if block.kind is BlockKind.HEADING:
            if block.text != _QUOTED or not out or out[-1].kind is not BlockKind.HEADING:
                out.append(block)
            continue
        opens = block.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM) and (
            _stands_alone(block.text) or _is_forwarded_head(block.text, listed[index + 1 : index + 4])
        )
        out.append(replace(block, kind=BlockKind.HEADING, level=_LEVEL) if opens else block)
    return out


def with_quotes_marked(markup: str, author: str) -> str:
    """HTML whose cited block quotes begin with a heading, and after which the author has one again.

    Line numbers stay. Block quotes that no mail program made are left alone.
    """
    parts: list[str] = []
    open_quotes: list[bool] = []
    cited = at = 0
    for mark in _BLOCKQUOTE.finditer(markup):
        if mark.group(1):
            ended = open_quotes.pop() if open_quotes else False
            cited -= ended
            after = markup[mark.end() : mark.end() + _LOOK_AHEAD] if ended and not cited else ""
            if _TAG.sub("", after).strip():
                parts.extend((markup[at : mark.end()], f"<h2>{html.escape(author or 'Reply')}</h2>"))
                at = mark.end()
        else:
            open_quotes.append(_CITED.search(mark.group(2)) is not None)
            cited += open_quotes[-1]
            if open_quotes[-1] and cited == 1:
                parts.extend((markup[at : mark.start()], f"<h2>{_QUOTED}</h2>"))
                at = mark.start()
    return "".join((*parts, markup[at:]))


def _opening(blocks: list[Block], depth: int) -> Block:
    """The heading of a quote: the attribution before it, taken away there, or a word of ours."""
    for count in (1, 2):  # a long one is wrapped
        text = " ".join(block.text for block in blocks[-count:])
        if len(blocks) >= count and _is_attribution(text):
            del blocks[-count:]
            return _heading(text, depth)
    return _heading(_QUOTED, depth)


def _heading(text: str, depth: int) -> Block:
    return Block(BlockKind.HEADING, (Fragment(text, ""),), min(depth + 1, _MAX_LEVEL))


def _is_attribution(text: str) -> bool:
    text = text.strip()
    return len(text) <= _ATTRIBUTION_MAX and bool(_ATTRIBUTION.fullmatch(text) or _FORWARDED.fullmatch(text))


def _stands_alone(text: str) -> bool:
    """Whether the line opens a quote also where no mark follows it."""
    return _is_attribution(text) and bool(_DATED.search(text) or _FORWARDED.fullmatch(text.strip()))


def _is_forwarded_head(text: str, following: list[Block]) -> bool:
    """Outlook sets no marks: `From:` and, right below, `Sent:` open what is quoted."""
    if len(text) > 4 * _ATTRIBUTION_MAX or not _FROM_LINE.match(text.strip()):
        return False
    return any(
        _SENT_LINE.match(line.strip()) for line in (*text.split("\n")[1:], *(b.text for b in following))
    )


def _by_depth(text: str, flowed: bool) -> Iterator[tuple[int, str]]:
    """Runs of lines of one quoting depth, marks taken off."""
    lines = [_depth(line) for line in text.splitlines()]
    if sum(a[0] != b[0] for a, b in pairwise(lines)) > _MAX_RUNS:
        lines = [(0, line) for _, line in lines]
    for depth, run in groupby(_healed(lines), key=lambda line: line[0]):
        content = [line for _, line in run]
        yield depth, _joined_flow(content) if flowed else "\n".join(content)


def _depth(line: str) -> tuple[int, str]:
    marks = _MARKS.match(line)
    if marks is None or line.startswith(">From "):
        return 0, line.removeprefix(">") if marks else line
    return marks.group().count(">"), line[marks.end() :]


def _healed(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """A blank line without marks between quoted lines belongs to the quote."""
    last = 0
    for index, (depth, line) in enumerate(lines):
        if depth == 0 and not line.strip() and last:
            following = next((d for d, text in lines[index : index + 4] if text.strip()), 0)
            depth = last if following == last else 0
        last = depth
        yield depth, line


def _joined_flow(lines: list[str]) -> str:
    out: list[str] = []
    goes_on = False
    for line in lines:
        line = line.removeprefix(" ")  # stuffed
        out.append(line if not out or goes_on else "\n" + line)
        goes_on = line.endswith(" ") and line.strip() != "--"
    return "".join(out)


def unplaced(blocks: Iterable[Block]) -> list[Block]:
    """The blocks without lines and offsets, which count inside the decoded body and not in the file."""
    return [
        replace(block, fragments=tuple(replace(f, start=None, line=None) for f in block.fragments))
        for block in blocks
    ]
