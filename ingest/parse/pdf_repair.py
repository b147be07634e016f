"""PDFs whose end is missing: the objects that are left, under a new table of contents.

pdfium finds objects by itself when the cross-reference table is broken; what it needs is a trailer that names
the root. A file cut off in a transfer has none, and newer files keep their page objects compressed.
"""

from __future__ import annotations

import re
import zlib
from itertools import islice

_OBJECT = re.compile(rb"(?:^|[\r\n\s])(\d{1,7})\s+(\d{1,5})\s+obj\b")
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
_PACKED = re.compile(rb"/Type\s*/ObjStm\b")
_FIRST = re.compile(rb"/First\s+(\d+)")
_COUNT = re.compile(rb"/N\s+(\d+)")
_STREAM = re.compile(rb"stream\r?\n")
_ENCRYPTED = re.compile(rb"/Encrypt\s+\d+\s+\d+\s+R")
_MAX_UNPACKED = 64 << 20
_MAX_OBJECTS = 200_000


def repaired(content: bytes) -> bytes | None:
    """The file with a trailer of its own, or None where no page is left or its text is encrypted."""
    if not content.lstrip()[:5].startswith(b"%PDF") or _ENCRYPTED.search(content):
        return None
    objects = _objects(content)
    if not objects:
        return None
    unpacked = _unpacked(content, objects)
    bodies = [(number, content[start:end]) for number, start, end in objects] + unpacked
    catalogs = [number for number, body in bodies if _CATALOG.search(body[:2000])]
    pages = list(dict.fromkeys(number for number, body in bodies if _PAGE.search(body[:4000])))
    if not pages:
        return None
    added = [_closed(bodies[len(objects) - 1][1])]
    added += [b"%d 0 obj\n%s\nendobj\n" % (number, body) for number, body in unpacked]
    top = max(number for number, _ in bodies) + 1
    root = catalogs[-1] if catalogs else top
    if not catalogs:
        kids = b" ".join(b"%d 0 R" % number for number in pages)
        added.append(b"%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj\n" % (top, top + 1))
        added.append(
            b"%d 0 obj\n<</Type/Pages/Kids[%s]/Count %d/MediaBox[0 0 595 842]>>\nendobj\n"
            % (top + 1, kids, len(pages))
        )
    added.append(b"trailer\n<</Root %d 0 R/Size %d>>\nstartxref\n0\n%%%%EOF\n" % (root, top + 2))
    return content + b"".join(added)


def _closed(last: bytes) -> bytes:
    """What ends the object in which the file breaks off."""
    if b"endobj" in last:
        return b"\n"
    cut_stream = _STREAM.search(last) is not None and b"endstream" not in last
    return b"\nendstream\nendobj\n" if cut_stream else b"\nendobj\n"


def _objects(content: bytes) -> list[tuple[int, int, int]]:
    """Number, start and end of each object body; the end is where the next one begins."""
    found = list(islice(_OBJECT.finditer(content), _MAX_OBJECTS))
    ends = [*(match.start() for match in found), len(content)][1:]
    return [(int(match[1]), match.end(), end) for match, end in zip(found, ends, strict=True)]


def _unpacked(content: bytes, objects: list[tuple[int, int, int]]) -> list[tuple[int, bytes]]:
    """The objects inside compressed object streams."""
    result: list[tuple[int, bytes]] = []
    size = 0
    for _, start, end in objects:
        body = content[start:end]
        head = body[:1000]
        stream = _STREAM.search(body)
        if stream is None or not _PACKED.search(head):
            continue
        first, count = _FIRST.search(head), _COUNT.search(head)
        if first is None or count is None:
            continue
        try:
            inflated = zlib.decompressobj().decompress(body[stream.end() :], _MAX_UNPACKED)
        except zlib.error:
            continue
        size += len(inflated)
        if size > _MAX_UNPACKED or len(result) > _MAX_OBJECTS:
            break
        result.extend(_members(inflated, int(first[1]), int(count[1])))
    return result


def _members(inflated: bytes, first: int, count: int) -> list[tuple[int, bytes]]:
    numbers = inflated[:first].split()[: 2 * count]
    if len(numbers) % 2 or not all(n.isdigit() for n in numbers):
        return []
    places = [(int(n), first + int(at)) for n, at in zip(numbers[::2], numbers[1::2], strict=True)]
    ends = [at for _, at in places[1:]] + [len(inflated)]
    return [
        (number, inflated[at:end].strip())
        for (number, at), end in zip(places, ends, strict=True)
        if at < len(inflated)
    ]
