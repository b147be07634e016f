"""A document inside another: attachments and chapters become parts of the one that holds them.

What a part may cost is what its holder has left: depth, characters and bytes only shrink on the way in. A bad
attachment is a warning, never the loss of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from core.errors import DocumentRejected
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.within import check_length

MAX_DEPTH = 3
MAX_ATTACHMENTS = 200
_NAME_MAX = 200
_EACH_WARNING_AT_MOST = 20
_WITHOUT_TEXT = frozenset({"empty", "no_text"})


@dataclass
class Parts:
    """Blocks of one document, gathered from its parts in reading order.

    Tables keep apart and members get their path; what could not be read is noted.

    Attributes:
        options: of the document that holds the parts.
        partial: something could not be read; `warnings` say what.
    """

    options: ParseOptions
    blocks: list[Block] = field(default_factory=list)
    warnings: list[ParseWarning] = field(default_factory=list)
    partial: bool = False
    _chars: int = 0
    _tables: int = 0
    _attachments: int = 0
    _attached_bytes: int = 0

    def add(self, blocks: Iterable[Block], member: str | None = None, deeper: int = 0) -> None:
        """Append blocks of the part `member`, their headings `deeper` levels down.

        Raises:
            DocumentRejected: `too_big`, when all parts together pass the cap on characters.
        """
        offset = self._tables
        for block in blocks:
            self._chars += len(block.text)
            level, table = block.level, block.table
            if block.kind is BlockKind.HEADING:
                level += deeper
            if table is not None:
                table += offset
                self._tables = max(self._tables, table + 1)
            placed = (level, table, _joined(member, block.member))
            if placed != (block.level, block.table, block.member):
                block = replace(block, level=level, table=table, member=placed[2])
            self.blocks.append(block)
        check_length(self._chars, self.options.limits)

    def warn(self, code: str, detail: str, *, partial: bool = False) -> None:
        """Note what a person should know; `partial` when something is missing."""
        self.warnings.append(ParseWarning(code, detail))
        self.partial = self.partial or partial

    def take(self, warnings: Iterable[ParseWarning], member: str) -> None:
        """Pass on what is to be known of the part `member`; of each kind the first few."""
        for warning in warnings:
            if sum(w.code == warning.code for w in self.warnings) < _EACH_WARNING_AT_MOST:
                self.warnings.append(ParseWarning(warning.code, f"{member}: {warning.detail}"))

    def attach(self, content: bytes, name: str, declared_type: str = "", level: int = 2) -> None:
        """Read a file that the document carries and append it under a heading with its name.

        Args:
            content: its bytes, decoded.
            name: as the document names it; display text only.
            declared_type: its media type, as the document says.
            level: of the heading; headings inside go below it.
        """
        from ingest.parse import parse_bytes  # this module belongs to parsers that it calls

        def read(options: ParseOptions) -> ParsedDocument:
            return parse_bytes(content, name, declared_type, options)

        self.attach_parsed(read, len(content), name, level)

    def attach_parsed(
        self, read: Callable[[ParseOptions], ParsedDocument], size: int, name: str, level: int = 2
    ) -> None:
        """Append what `read` gives under a heading with `name`; see `attach`.

        Args:
            read: reads the inner document under the options it is given.
            size: bytes it has, for the cap on all attachments together.
            name: as the document names it; display text only.
            level: of the heading; headings inside go below it.
        """
        name = display_name(name)
        options = self._admitted(size, name)
        if options is None:
            return
        try:
            parsed = read(options)
        except DocumentRejected as error:
            lost = error.code not in _WITHOUT_TEXT
            self.warn("attachment_unreadable", f"{name}: {error.code}. {error.detail}", partial=lost)
            return
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a parser raises on an attachment is that attachment's fault
            self.warn("attachment_unreadable", f"{name}: corrupt. {type(error).__name__}", partial=True)
            return
        self.add((Block(BlockKind.HEADING, (Fragment(name, ""),), level),), name)
        again = (
            parsed.blocks[:1] and parsed.blocks[0].kind is BlockKind.HEADING and parsed.blocks[0].text == name
        )
        self.add(parsed.blocks[1:] if again else parsed.blocks, name, level)
        self.partial = self.partial or parsed.partial
        self.take(parsed.warnings, name)

    def _admitted(self, size: int, name: str) -> ParseOptions | None:
        """The options for one more attachment; None, with a warning, when a cap is reached."""
        limits = self.options.limits
        if self.options.depth >= MAX_DEPTH:
            told = f"{name} is nested more than {MAX_DEPTH} deep; upload it by itself."
        elif self._attachments >= MAX_ATTACHMENTS:
            told = f"{name} and what follows: only the first {MAX_ATTACHMENTS} are read; upload it by itself."
        elif self._attached_bytes + size > limits.max_inflated_bytes:
            cap = f"{limits.max_inflated_bytes:,} bytes"
            told = f"{name}: all attachments together pass {cap}; upload it by itself."
        else:
            self._attachments += 1
            self._attached_bytes += size
            left = replace(
                limits,
                max_chars=max(1, limits.max_chars - self._chars),
                max_inflated_bytes=limits.max_inflated_bytes - self._attached_bytes + size,
            )
            return replace(self.options, limits=left, depth=self.options.depth + 1)
        if not any(w.code == "attachment_left_out" for w in self.warnings):
            self.warn("attachment_left_out", told, partial=True)
        return None


def display_name(name: str) -> str:
    """A file name as people may see it: one line without folders; never a path to anything."""
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    shown = " ".join("".join(c if c.isprintable() else " " for c in last).split())
    return shown[:_NAME_MAX] or "attachment"


def _joined(outer: str | None, inner: str | None) -> str | None:
    return f"{outer}/{inner}" if outer and inner else outer or inner
