"""What recognition costs and gets wrong: PDFs drawn as scans, read back and compared letter by letter.

    python -m benchmarks.ocr [FOLDER] [--pages N] [--json]

Seconds are of the CPU, because a page is read by one thread and the machine does other things as well.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import re
import statistics
import time
import unicodedata
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter
from rapidfuzz.distance import Levenshtein

from ingest.parse import ocr, parse_bytes
from ingest.parse.pdf_blocks import blocks_of_lines
from ingest.parse.pdf_layout import lines_of_page

SAMPLES = Path(__file__).resolve().parents[1] / "docs" / "samples"
_SPACE = re.compile(r"[\s\-\u00ad|]+")


def _clean(image: Image.Image) -> Image.Image:
    return image


def _worn(image: Image.Image) -> Image.Image:
    """One degree askew, soft, grainy and saved as a small JPEG, as a cheap scanner does."""
    turned = image.rotate(1.0, fillcolor="white", resample=Image.Resampling.BICUBIC)
    soft = np.asarray(turned.convert("L").filter(ImageFilter.GaussianBlur(0.8)), dtype=np.float32)
    grain = np.random.default_rng(7).normal(0, 12, soft.shape)
    buffer = io.BytesIO()
    Image.fromarray(np.clip(soft * 0.85 + 20 + grain, 0, 255).astype(np.uint8)).save(
        buffer, "JPEG", quality=35
    )
    return Image.open(buffer).convert("RGB")


KINDS: dict[str, tuple[int, Callable[[Image.Image], Image.Image]]] = {
    "clean, 200 dpi": (200, _clean),
    "clean, 100 dpi": (100, _clean),
    "worn, 200 dpi": (200, _worn),
    "upside down, 200 dpi": (200, lambda image: image.rotate(180)),
    "on its side, 200 dpi": (200, lambda image: image.transpose(Image.Transpose.ROTATE_90)),
}


def plain(text: str) -> str:
    """Letters alone: neither line ends nor hyphens nor cell borders count as errors."""
    return _SPACE.sub("", unicodedata.normalize("NFKC", text))


def pages(folder: Path, most: int) -> Iterator[tuple[str, Any, str]]:
    """Name, open page and true text of the first pages of each PDF with a text layer."""
    for path in sorted(folder.glob("*.pdf")):
        try:
            parsed = parse_bytes(path.read_bytes(), path.name)
            document = pypdfium2.PdfDocument(path)
        except Exception as error:  # noqa: BLE001 - a damaged or encrypted file of the folder is no page to measure
            print(f"{path.name}: left out ({error})")
            continue
        if any(w.code in ("ocr_used", "text_damaged") for w in parsed.warnings):
            continue
        for number in range(1, min(most, len(document)) + 1):
            fragments = (f for b in parsed.blocks for f in b.fragments)
            truth = plain("".join(f.text for f in fragments if f.page == number))
            if len(truth) >= 200:
                yield f"{path.name}:{number}", document[number - 1], truth


def measure(folder: Path, most: int) -> dict[str, Any]:
    """Error rate, seconds and lines of each kind of scan."""
    found: dict[str, dict[str, list[float]]] = {
        kind: {"error": [], "cpu_s": [], "lines": []} for kind in KINDS
    }
    names = []
    for name, page, truth in pages(folder, most):
        names.append(name)
        for kind, (dpi, wear) in KINDS.items():
            image = wear(page.render(scale=dpi / 72, rev_byteorder=True).to_pil().convert("RGB"))
            started = time.process_time()
            read = ocr.read_image(np.asarray(image), 72 / dpi)
            seconds = time.process_time() - started
            blocks = blocks_of_lines(lines_of_page(read.page_text(1)))
            text = plain("".join(b.text for b in blocks))
            found[kind]["error"].append(Levenshtein.distance(truth, text) / len(truth))
            found[kind]["cpu_s"].append(seconds)
            found[kind]["lines"].append(len(read.lines))
    return {"pages": names, "kinds": {kind: _summary(values) for kind, values in found.items()}}


def _summary(values: dict[str, list[float]]) -> dict[str, Any]:
    return {
        name: {"median": round(statistics.median(v), 4), "min": round(min(v), 4), "max": round(max(v), 4)}
        for name, v in values.items()
        if v
    }


def peak_mb() -> int:
    """Most memory that this process ever held."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]  # Linux always has it


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SAMPLES)
    parser.add_argument("--pages", type=int, default=2, help="of each document")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = {
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("rapidocr", "onnxruntime", "pypdfium2")},
        **measure(options.folder, options.pages),
        "peak_mb": peak_mb(),
    }
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
        return
    print(f"{len(figures['pages'])} pages, {figures['peak_mb']} MB at most")
    for kind, values in figures["kinds"].items():
        error, seconds = values["error"], values["cpu_s"]
        print(
            f"{kind:24} error {error['median']:.4f} ({error['min']:.4f}-{error['max']:.4f})  "
            f"CPU s {seconds['median']:.1f} ({seconds['min']:.1f}-{seconds['max']:.1f})"
        )


if __name__ == "__main__":
    main()
