"""`geo bench parse`: reading PDF and HTML against the libraries that others use, in turn on the same files.

Every reader runs on one thread and is timed by the processor time of its process, which other load on the
machine changes less than the clock; on a quiet machine the two agree.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from core.errors import ConfigError, DocumentRejected
from core.measured import machine, versions
from ingest.measure_files import make_files
from ingest.normalize import build
from ingest.parse import parse_bytes
from ingest.parse.model import OcrMode, ParseOptions
from ingest.parse.pdf_document import open_pdf, pages_as_text
from ingest.peers import peer_python

SEED = 0  # nothing here is random; stated because every measurement states its seed
PDF_LIMIT = {"ratio_pypdf": 2.5, "ratio_pypdfium2": 0.25}
HTML_LIMIT = {"ratio_trafilatura": 0.9, "f1": 0.95}

Note = Callable[[str], None]
Reader = Callable[[Sequence[Path]], float]
"""Reads all files and gives the processor seconds that it took."""


def bench_parse(
    folder: Path | None,
    *,
    rounds: int = 7,
    html_set: Path | None = None,
    expected: Path | None = None,
    note: Note = print,
) -> dict[str, Any]:
    """Measure both formats.

    Args:
        folder: every PDF and HTML file in it is read; None = files made for it.
        rounds: interleaved rounds after one that warms all readers.
        html_set: a folder with `segments.jsonl` (`file`, `with`, `without`) and `pages/`: its pages are
            the HTML side, and give the F-score.
        expected: JSON lines of `file` and `contains`: what must stand in the text of PDFs beside it.
        note: told about progress.

    Raises:
        ConfigError: no file to read, or the peers cannot be installed.
    """
    if folder is None:
        with TemporaryDirectory() as made:
            make_files(Path(made), seed=SEED)
            return bench_parse(Path(made), rounds=rounds, html_set=html_set, expected=expected, note=note)
    pdfs = [path for path in _files(folder, ".pdf") if _opens(path)]
    pages = _files(html_set / "pages" if html_set else folder, ".html", ".htm")
    if not pdfs and not pages:
        raise ConfigError(f"No PDF or HTML file in {folder}; name another folder with --files.")
    result: dict[str, Any] = {
        "machine": machine(),
        "versions": versions("pypdfium2", "lxml", "trafilatura"),
        "seed": SEED,
        "sizes": {"pdf_files": len(pdfs), "html_files": len(pages), "rounds": rounds},
        "peer": "pypdf and trafilatura with their defaults, raw pypdfium2 page by page: plain text",
        "limit": {"pdf": PDF_LIMIT, "html": HTML_LIMIT},
    }
    with _peer_process() as peer:
        if pdfs:
            result["pdf"] = _bench_pdf(pdfs, rounds, peer, note)
            if expected is not None:
                result["pdf"]["text"] = _found_phrases(expected, peer)
        if pages:
            result["html"] = _bench_html(pages, rounds, peer, note)
            if html_set is not None:
                result["html"].update(_f_scores(html_set, peer))
    return result


class Peer:
    """The process that runs the peers."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def ask(self, peer: str, files: Sequence[Path], *, texts: bool = False) -> dict[str, Any]:
        """Let `peer` read `files`; `cpu_s`, `wall_s`, `pages` and perhaps `texts`."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        request = {"peer": peer, "files": [str(f.absolute()) for f in files], "texts": texts}
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        return json.loads(self._child.stdout.readline())

    def seconds(self, peer: str) -> Reader:
        """How long `peer` takes."""
        return lambda files: float(self.ask(peer, files)["cpu_s"])


@contextmanager
def _peer_process() -> Generator[Peer]:
    command = [str(peer_python()), "-P", str(Path(__file__).with_name("peer_text.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own script
        yield Peer(child)
        assert child.stdin is not None
        child.stdin.close()


def _bench_pdf(files: list[Path], rounds: int, peer: Peer, note: Note) -> dict[str, Any]:
    readers = {
        "ours": _timed(_parse),
        "with_offset_map": _timed(lambda path: build(_parse(path))),
        "text_only": _timed(lambda path: pages_as_text(path.read_bytes())),
        "pypdfium2": _timed(_raw_pdfium),
        "pypdf": peer.seconds("pypdf"),
    }
    times = _interleaved(readers, files, rounds, lambda n: note(f"pdf: round {n} of {rounds}"))
    pages = sum(_pages(path) for path in files)
    peers = ("pypdf", "pypdfium2")
    result: dict[str, Any] = {"files": len(files), "pages": pages, "bytes": _bytes(files)}
    result |= _ratios(times, "ours", peers) | {"pages_per_s": _per_second(times["ours"], pages)}
    for name in ("text_only", "with_offset_map"):
        result[name] = _ratios(times, name, peers) | {"pages_per_s": _per_second(times[name], pages)}
    result["peers_pages_per_s"] = {name: _per_second(times[name], pages) for name in peers}
    return result


def _bench_html(files: list[Path], rounds: int, peer: Peer, note: Note) -> dict[str, Any]:
    readers = {"ours": _timed(_read_text), "trafilatura": peer.seconds("trafilatura")}
    times = _interleaved(readers, files, rounds, lambda n: note(f"html: round {n} of {rounds}"))
    result: dict[str, Any] = {"files": len(files), "bytes": _bytes(files), "f1": None}
    result |= _ratios(times, "ours", ("trafilatura",))
    result["files_per_s"] = _per_second(times["ours"], len(files))
    return result


def _interleaved(
    readers: dict[str, Reader], files: list[Path], rounds: int, note: Callable[[int], None]
) -> dict[str, list[float]]:
    """Seconds of every reader in every round; the readers take turns, the first round is dropped."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for number in range(rounds + 1):
        for name, read in readers.items():
            seconds = read(files)
            if number:
                times[name].append(seconds)
        if number:
            note(number)
    return times


def _ratios(times: dict[str, list[float]], name: str, peers: Sequence[str]) -> dict[str, Any]:
    """Speed of `name` relative to each peer: median and range over the rounds."""
    found: dict[str, Any] = {}
    for peer in peers:
        ratios = [other / mine for mine, other in zip(times[name], times[peer], strict=True)]
        found[f"ratio_{peer}"] = round(statistics.median(ratios), 3)
        found[f"spread_{peer}"] = [round(min(ratios), 3), round(max(ratios), 3)]
    return found


def _timed(read: Callable[[Path], object]) -> Reader:
    def run(files: Sequence[Path]) -> float:
        start = time.process_time()
        for path in files:
            try:
                read(path)
            except DocumentRejected:
                continue
        return time.process_time() - start

    return run


def _parse(path: Path) -> Any:
    # Pictures are not recognised here: no peer does.
    return parse_bytes(path.read_bytes(), path.name, "", ParseOptions(ocr=OcrMode.OFF))


def _read_text(path: Path) -> str:
    try:
        return build(_parse(path)).text
    except DocumentRejected:
        return ""


def _raw_pdfium(path: Path) -> None:
    document = open_pdf(path.read_bytes())
    try:
        for page in document:
            text_page = page.get_textpage()
            text_page.get_text_range()
            text_page.close()
            page.close()
    finally:
        document.close()


def _found_phrases(expected: Path, peer: Peer) -> dict[str, Any]:
    """How many expected phrases stand in our text and in pypdf's, line breaks and spaces aside."""
    cases = [json.loads(line) for line in expected.read_text().splitlines() if line.strip()]
    cases = [case for case in cases if case["file"].endswith(".pdf") and case["contains"]]
    paths = [expected.parent / case["file"] for case in cases]
    texts = {
        "ours": [_read_text(path) for path in paths],
        "pypdf": peer.ask("pypdf", paths, texts=True)["texts"],
    }
    found = {
        name: sum(
            _folded(phrase) in _folded(text)
            for case, text in zip(cases, read, strict=True)
            for phrase in case["contains"]
        )
        for name, read in texts.items()
    }
    return {"phrases": sum(len(case["contains"]) for case in cases), **found}


def _f_scores(html_set: Path, peer: Peer) -> dict[str, float]:
    """Segments that belong to the main content and those that do not, counted over all pages."""
    lines = (html_set / "segments.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines if line.strip()]
    paths = [html_set / "pages" / case["file"] for case in cases]
    ours = _score(cases, [_read_text(path) for path in paths])
    theirs = _score(cases, peer.ask("trafilatura", paths, texts=True)["texts"])
    return {**ours, **{f"trafilatura_{name}": value for name, value in theirs.items()}}


def _score(cases: Sequence[dict[str, Any]], texts: Sequence[str]) -> dict[str, float]:
    kept = lost = wrong = 0
    for case, text in zip(cases, texts, strict=True):
        folded = _folded(text)
        hits = sum(_folded(segment) in folded for segment in case["with"])
        kept += hits
        lost += len(case["with"]) - hits
        wrong += sum(_folded(segment) in folded for segment in case["without"])
    precision, recall = kept / max(1, kept + wrong), kept / max(1, kept + lost)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return {"f1": round(f1, 4), "precision": round(precision, 4), "recall": round(recall, 4)}


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).replace("-\n", "").split())


def _files(folder: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in suffixes and path.is_file())


def _opens(path: Path) -> bool:
    try:
        open_pdf(path.read_bytes()).close()
    except DocumentRejected:
        return False
    return True


def _pages(path: Path) -> int:
    document = open_pdf(path.read_bytes())
    try:
        return len(document)
    finally:
        document.close()


def _bytes(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _per_second(seconds: Sequence[float], count: int) -> float:
    return round(count / statistics.median(seconds), 1)
