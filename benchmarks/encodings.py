"""Right decisions of encoding detection, by language, encoding and length: ours beside other libraries.

Texts are the messages of installed programs' translations (`/usr/share/locale`): the half of each language
that was not counted for `char_frequency.tsv` is cut at random and encoded. Chinese comes from `--chinese`, a
JSON lines file with `text`. A peer that is not installed is left out.

    python -m benchmarks.encodings --chinese corpus.jsonl --count 24
"""

from __future__ import annotations

import argparse
import gettext
import hashlib
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from core.errors import DocumentRejected
from ingest.parse.charset import decode

LENGTHS = (10, 20, 50, 200, 2000)
ENCODINGS = {
    "zh": ("gbk", "gb18030", "utf-16-le", "utf-16-be", "utf-8"),
    "zht": ("big5", "big5hkscs", "gb18030", "utf-16-le"),
    "ja": ("cp932", "euc_jp", "iso2022_jp", "utf-16-le"),
    "ko": ("cp949", "utf-16-le"),
    "ru": ("cp1251", "koi8_r", "iso8859_5", "cp866", "utf-16-le", "utf-8"),
    "uk": ("cp1251", "koi8_u"),
    "de": ("cp1252", "cp850", "mac_roman", "utf-16-be", "utf-8"),
    "fr": ("cp1252", "mac_roman", "utf-8"),
    "es": ("cp1252",),
    "pt": ("cp1252",),
    "it": ("cp1252",),
    "pl": ("cp1250", "iso8859_2"),
    "cs": ("cp1250", "iso8859_2"),
    "hu": ("cp1250",),
    "tr": ("cp1254",),
    "el": ("cp1253", "iso8859_7"),
    "lt": ("cp1257",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "th": ("cp874",),
}
Guess = Callable[[bytes], str | None]


def messages(language: str) -> list[str]:
    """Translated messages that no frequency was counted on."""
    found: set[str] = set()
    for path in Path("/usr/share/locale", language, "LC_MESSAGES").glob("*.mo"):
        try:
            with path.open("rb") as file:
                catalog: dict[object, object] = vars(gettext.GNUTranslations(file))["_catalog"]
        except (OSError, UnicodeDecodeError):
            continue
        found.update(" ".join(m.split()) for m in catalog.values() if isinstance(m, str) and len(m) > 1)
    kept = [m for m in sorted(found) if hashlib.md5(m.encode(), usedforsecurity=False).digest()[0] & 1]
    return [m for m in kept if not m.isascii()]


def texts_of(language: str, chinese: Path | None) -> list[str]:
    """Texts of a language; traditional Chinese is converted."""
    if language not in ("zh", "zht"):
        return messages(language)
    if chinese is None:
        return []
    texts = [str(json.loads(line)["text"]) for line in chinese.read_text(encoding="utf-8").splitlines()[:500]]
    if language == "zh":
        return texts
    import opencc

    converter = opencc.OpenCC("s2twp")
    return [str(converter.convert(text)) for text in texts]


def cut_texts(
    pool: list[str], encoding: str, length: int, count: int, rnd: random.Random
) -> Iterator[tuple[str, bytes]]:
    """Random pieces that the encoding can write, each with something that is not ASCII in it."""
    given = 0
    for _ in range(60 * count):
        if given == count:
            return
        text = ""
        while len(text) < length + 8:
            text += rnd.choice(pool) + "\n"
        at = rnd.randrange(len(text) - length)
        piece = text[at : at + length].encode(encoding, "ignore").decode(encoding)
        if not piece.isascii():
            given += 1
            yield piece, piece.encode(encoding)


def ours(data: bytes) -> str | None:
    """The text as this project reads it; None for a refusal."""
    try:
        return decode(data).text
    except DocumentRejected:
        return None


def _charset_normalizer(data: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    return None if best is None else str(best)


def _chardet(data: bytes) -> str | None:
    import chardet  # pyright: ignore[reportMissingImports]

    name = chardet.detect(data)["encoding"]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    try:
        return None if not name else data.decode("gb18030" if name.lower() == "gb2312" else name)  # pyright: ignore
    except (UnicodeDecodeError, LookupError):
        return None


def run(chinese: Path | None, count: int, seed: int) -> dict[str, object]:
    """Share of pieces that each library reads right, by length and by language."""
    guesses: dict[str, Guess] = {"ours": ours, "charset_normalizer": _charset_normalizer}
    if find_spec("chardet"):
        guesses["chardet"] = _chardet
    rnd = random.Random(seed)  # noqa: S311 - cuts texts, keeps no secret
    right: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    refused = 0
    for language, encodings in ENCODINGS.items():
        pool = texts_of(language, chinese)
        for encoding in encodings if pool else ():
            sys.stderr.write(f"{language} {encoding}\n")
            for length in LENGTHS:
                for text, data in cut_texts(
                    pool, encoding, length, count if length < 2000 else count // 4, rnd
                ):
                    keys = (f"{length} characters", language, "all")
                    total.update(keys)
                    for name, guess in guesses.items():
                        read = guess(data)
                        refused += name == "ours" and read is None
                        if read == text:
                            right[name].update(keys)
    shares = {name: {k: round(right[name][k] / n, 4) for k, n in total.items()} for name in guesses}
    return {"n": total["all"], "refused": refused, "right": shares, "seed": seed, "count": count}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chinese", type=Path)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    json.dump(run(options.chinese, options.count, options.seed), sys.stdout, indent=1)
    sys.stdout.write("\n")
