"""An upload without a declared length, far over the cap, against the server in a process of its own."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.db import Database
from core.settings import Settings, get_settings
from tests.api.conftest import OPERATOR_KEY, Configure, wait_until

MIB = 1 << 20
CAP = 8 * MIB
OFFERED = 96 * MIB
_SERVE = (
    "import sys, uvicorn; from api.app import create_app; "
    "uvicorn.run(create_app(), host='127.0.0.1', port=int(sys.argv[1]), log_config=None)"
)


@dataclass
class Server:
    port: int
    pid: int

    @property
    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024

    def is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def server(sqlite_database: Database, configure: Configure) -> Iterator[Server]:
    configure(auth__bootstrap_key=OPERATOR_KEY, min_free_bytes=0, api__max_upload_bytes=CAP)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", _SERVE, str(port)], cwd=root)
    running = Server(port, process.pid)
    try:
        wait_until(running.is_up, within_s=30)
        yield running
    finally:
        process.terminate()
        process.wait(timeout=20)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def offer(server: Server, part: bytes) -> tuple[bytes, int]:
    """Send `part` as chunks until an answer comes; returns the answer's head and the bytes sent."""
    head = (
        "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        f"Authorization: Bearer {OPERATOR_KEY}\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
    )
    sent = 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as link:
        link.sendall(head.encode() + chunk(part))
        while sent < OFFERED and not select.select([link], [], [], 0)[0]:
            link.sendall(chunk(bytes(64 * 1024)))
            sent += 64 * 1024
        return link.recv(4096), sent


@pytest.mark.parametrize(
    "part",
    [
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n',
        b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n',
    ],
)
def test_a_chunked_body_over_the_cap_is_refused_early_and_costs_no_memory_or_disk(
    server: Server, settings: Settings, part: bytes
) -> None:
    before = server.peak_bytes
    begin = time.monotonic()
    answer, sent = offer(server, part)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert sent < CAP + 16 * MIB, "what the sockets hold comes on top of the cap"
    assert time.monotonic() - begin < 10
    assert server.peak_bytes - before < 40 * MIB
    assert [p for p in get_settings().blob_dir.rglob("*") if p.is_file()] == []
