"""Damage as files meet it: flipped and lost bytes, cut ends, doubled and foreign parts, broken archives."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable

_TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"%PDF-1.7",
    b"PK\x03\x04",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>",
    b"&a;",
    b"]]>",
    b"<table>" * 40,
    b"<div>" * 300,
    b"]" * 500,
    b"[" * 500,
    b"-1",
    b"99999999999999999999",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x91\xa8\xe2\x80\x8d" * 30,
    "　".encode() * 50,
    "啊".encode() * 3000,
    b"a" * 6000,
    b"=?utf-8?b?/w==?=",
    b"\r\n\r\n",
    b"endobj",
    b"stream\n",
    b"/Kids [1 0 R]",
    b"/Length -5",
    b"rowspan=99999999 colspan=99999999",
    b"../../etc/passwd",
)


def mutate(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """One damaged form of `content`: one to four wounds."""
    damaged = content
    if content.startswith(b"PK") and rng.random() < 0.8:
        damaged = _inside_archive(content, rng, others)
    for _ in range(rng.randint(0 if damaged != content else 1, 4)):
        damaged = rng.choice(_WOUNDS)(damaged, rng, others)
    return damaged[: 1 << 20]


def _inside_archive(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            fate = rng.random()
            if fate < 0.08:
                continue
            if fate < 0.6:
                body = rng.choice(_WOUNDS)(body, rng, others)
            archive.writestr(name if fate < 0.95 else f"../{name}", body)
    return buffer.getvalue()


def _flip(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _drop(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.choice((1, 3, 40, 400)) :]


def _double(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    part = content[start : start + rng.choice((2, 30, 300))]
    return content[:start] + part * rng.choice((2, 3, 50)) + content[start:]


def _insert(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(_TOKENS) + content[start:]


def _splice(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _number(content: bytes, rng: random.Random, _others: list[bytes]) -> bytes:
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return content
    at = rng.choice(digits)
    return content[:at] + rng.choice((b"0", b"-1", b"65536", b"4294967295", b"1e309")) + content[at + 1 :]


_WOUNDS: tuple[Callable[[bytes, random.Random, list[bytes]], bytes], ...] = (
    _flip, _cut, _drop, _double, _insert, _insert, _splice, _number,
)  # fmt: skip
