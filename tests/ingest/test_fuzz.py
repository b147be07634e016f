"""Damaged files of every format: a result or a refusal with a reason; never a hang, crash or stray error."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from core.errors import DocumentRejected
from core.settings import IngestSettings
from ingest.normalize import build
from ingest.parse.model import Limits, OcrMode, ParseOptions
from ingest.sandbox import ParseSandbox
from ingest.split import split
from ingest.tokens import rough_counter
from tests.support.mutations import mutate
from tests.support.seeds import seeds

INPUTS = int(os.environ.get("GEO_FUZZ_INPUTS", "12000"))
SEED = int(os.environ.get("GEO_FUZZ_SEED", "20260301"))
OPTIONS = ParseOptions(Limits(max_chars=2_000_000, max_inflated_bytes=32 << 20), OcrMode.OFF)
WITH_OCR = ParseOptions(OPTIONS.limits, OcrMode.AUTO)
SETTINGS = IngestSettings(parse_timeout_s=20)
REASONS = {
    "empty",
    "unsupported_format",
    "type_mismatch",
    "encrypted",
    "corrupt",
    "no_text",
    "encoding",
    "refused",
    "too_big",
}

UNFORESEEN = ("could not be read:", "crashed")  # an exception that no parser knows, a dead process


def outcome_of(sandbox: ParseSandbox, file: Path, name: str, options: ParseOptions) -> str:
    """The outcome of one file through the whole stage; raises what a user should never meet."""
    try:
        document = build(sandbox.parse(file, name, options=options))
    except DocumentRejected as error:
        foreseen = error.code in REASONS and not any(words in error.detail for words in UNFORESEEN)
        if not foreseen:
            raise
        return error.code
    drafts = split(document, rough_counter, 160, 480)
    for draft in drafts:
        draft.text.encode()
        assert document.text[draft.span.start : draft.span.end] == draft.text
        assert document.offset_map.places(draft.span)
    return "partial" if document.partial else "read"


def test_seeds_are_valid_files(tmp_path: Path) -> None:
    sandbox = ParseSandbox(SETTINGS)
    try:
        for name, content in seeds().items():
            if name.endswith((".png", ".jpg")):
                continue
            (tmp_path / "f").write_bytes(content)
            assert outcome_of(sandbox, tmp_path / "f", name, OPTIONS) == "read", name
    finally:
        sandbox.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_damaged_files_never_hang_crash_or_raise(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    originals = seeds()
    names, contents = list(originals), list(originals.values())
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    slowest = (0.0, "")
    sandbox = ParseSandbox(SETTINGS)
    begin = time.monotonic()
    for number in range(INPUTS):
        name = names[number % len(names)]
        content = mutate(originals[name], rng, contents)
        pictures = name.endswith((".png", ".jpg"))
        options = WITH_OCR if pictures and number % 20 == 0 else OPTIONS
        file = tmp_path / "f"
        file.write_bytes(content)
        named = rng.choice(names) if rng.random() < 0.1 else name
        started = time.monotonic()
        try:
            outcomes[outcome_of(sandbox, file, named, options)] += 1
        except Exception as error:  # noqa: BLE001 - collected, and the input kept
            kept = Path(os.environ.get("GEO_FUZZ_KEEP", str(tmp_path))) / f"{number}-{named}"
            kept.write_bytes(content)
            failures.append(f"{kept}: {type(error).__name__}: {str(error)[:300]}")
        slowest = max(slowest, (time.monotonic() - started, f"{number} {named}"))
        if number % 500 == 0:
            print(f"{number} of {INPUTS}, {time.monotonic() - begin:.0f} s: {dict(outcomes)}", flush=True)
    sandbox.close()
    print(f"{INPUTS} inputs in {time.monotonic() - begin:.0f} s; slowest {slowest}; {dict(outcomes)}")
    assert not failures, f"{len(failures)} of {INPUTS}:\n" + "\n".join(failures[:40])
