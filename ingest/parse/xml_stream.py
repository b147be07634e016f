"""XML read as a stream of events, for parts too large to hold as a tree."""

from __future__ import annotations

from typing import BinaryIO, NoReturn, Protocol
from xml.parsers import expat

from core.errors import DocumentRejected

_CHUNK = 1 << 16


class XmlEvents(Protocol):
    """What takes the events. Names of the root's vocabulary come without a prefix, attributes as written."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        ...

    def end(self, name: str) -> None:
        """An element ends."""
        ...

    def text(self, text: str) -> None:
        """Character data; one run may come in pieces."""
        ...


def stream_xml(stream: BinaryIO, events: XmlEvents) -> None:
    """Read to the end; memory does not grow with the part.

    Raises:
        ValueError: not well-formed, from where on is lost.
        DocumentRejected: `refused`, when a document type is declared; also what `stream` raises.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def local_start(name: str, attributes: dict[str, str]) -> None:
        events.start(name.rpartition(":")[2], attributes)

    def local_end(name: str) -> None:
        events.end(name.rpartition(":")[2])

    def first_start(name: str, attributes: dict[str, str]) -> None:
        # Nearly always the vocabulary is the default namespace: then names need no work.
        plain = ":" not in name
        parser.StartElementHandler = events.start if plain else local_start
        parser.EndElementHandler = events.end if plain else local_end
        local_start(name, attributes)

    parser.StartElementHandler = first_start
    parser.CharacterDataHandler = events.text
    parser.StartDoctypeDeclHandler = _refuse
    try:
        while chunk := stream.read(_CHUNK):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from error


def _refuse(*_: object) -> NoReturn:
    raise DocumentRejected("refused", "A part of the file declares a document type; save the file anew.")
