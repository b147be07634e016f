"""Books, messages, feeds, XML and subtitles: characters per second, beside the least work for their text.

`python -m benchmarks.containers`. The floor opens the file with the library that ours stands on and joins all
text, without order, structure, places or checks. Rounds are interleaved; figures are medians with the
range, of processor time, so that other work on the machine counts little. The floors are no peers.
"""

from __future__ import annotations

import argparse
import email
import email.policy
import io
import json
import os
import platform
import re
import time
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from statistics import median

from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

from ingest.parse import parse_bytes
from ingest.parse.formats import FORMATS

LINE = "The pump is checked every 30 days. 水泵每三十天检查一次，阀门编号 XY-{n}。"


def _book(size: int) -> bytes:
    buffer = io.BytesIO()
    names = [f"c{n}.xhtml" for n in range(size // 20)]
    items = "".join(f'<item id="{n}" href="{n}" media-type="application/xhtml+xml"/>' for n in names)
    spine = "".join(f'<itemref idref="{n}"/>' for n in names)
    listed = f"<manifest>{items}</manifest><spine>{spine}</spine>"
    package = f'<package xmlns="http://www.idpf.org/2007/opf">{listed}</package>'
    root = '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", root)
        archive.writestr("book.opf", package)
        for name in names:
            text = "".join(f"<p>{LINE.format(n=n)}</p>" for n in range(20))
            archive.writestr(name, f"<html><body><h1>{name}</h1>{text}</body></html>")
    return buffer.getvalue()


def _message(size: int) -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "a@example.org", "b@example.org", "Pump"
    made["Message-ID"] = "<1@example.org>"
    made.set_content("\n\n".join(LINE.format(n=n) for n in range(size)))
    return made.as_bytes()


def _feed(size: int) -> bytes:
    items = "".join(
        f"<item><title>Pump {n}</title>"
        f"<description>&lt;p&gt;{LINE.format(n=n)}&lt;/p&gt;</description></item>"
        for n in range(size)
    )
    return f"<rss><channel><title>News</title>{items}</channel></rss>".encode()


def _records(size: int) -> bytes:
    row = '<pump id="{n}"><site>North</site><note>{text}</note></pump>'
    rows = "".join(row.format(n=n, text=LINE.format(n=n)) for n in range(size))
    return f"<?xml version='1.0'?><pumps>{rows}</pumps>".encode()


def _subtitles(size: int) -> bytes:
    stamp = "{h:02}:{m:02}:{s:02},000"
    cues = (
        f"{n}\n{stamp.format(h=n // 1800, m=n // 30 % 60, s=n % 30 * 2)} --> "
        f"{stamp.format(h=n // 1800, m=n // 30 % 60, s=n % 30 * 2 + 1)}\n<i>{LINE.format(n=n)}</i>\n"
        for n in range(size)
    )
    return "\n".join(cues).encode()


def _floor_book(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        pages = (
            html.document_fromstring(archive.read(n)) for n in archive.namelist() if n.endswith(".xhtml")
        )
        return "\n".join(page.text_content() for page in pages)


def _floor_message(content: bytes) -> str:
    body = email.message_from_bytes(content, policy=email.policy.default).get_body()
    return "" if body is None else body.get_content()


def _floor_xml(content: bytes) -> str:
    return "\n".join(etree.fromstring(content).itertext())


def _floor_subtitles(content: bytes) -> str:
    return re.sub(r"^\d+\n.*-->.*\n|<[^>]*>", "", content.decode(), flags=re.M)


CASES: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], str]]] = {
    "book.epub": (_book, _floor_book),
    "mail.eml": (_message, _floor_message),
    "feed.rss": (_feed, _floor_xml),
    "records.xml": (_records, _floor_xml),
    "talk.srt": (_subtitles, _floor_subtitles),
}


def measure(size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Figures by file: million characters per second, its range, and the share of the floor's speed."""
    figures: dict[str, dict[str, float]] = {}
    for name, (make, floor) in CASES.items():
        content = make(size)
        chars = sum(len(block.text) for block in parse_bytes(content, name).blocks)
        speeds: list[float] = []
        shares: list[float] = []
        for _ in range(rounds):
            begin = time.process_time()
            floor(content)
            between = time.process_time()
            parse_bytes(content, name)
            ours = time.process_time() - between
            speeds.append(chars / ours / 1e6)
            shares.append((between - begin) / ours)
        figures[name] = {
            "mchars_per_s": round(median(speeds), 2),
            "lowest": round(min(speeds), 2),
            "highest": round(max(speeds), 2),
            "share_of_floor": round(median(shares), 3),
        }
    return figures


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--size", type=int, default=4000, help="sentences in each file")
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    told = {
        "machine": f"{os.cpu_count()} x {platform.processor() or platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
        "sizes": {"sentences": given.size, "formats": len(FORMATS)},
        "rounds": given.rounds,
        "by_file": measure(given.size, given.rounds),
    }
    print(json.dumps(told, indent=1))
