"""An API process whose data folder is a small disk that really fills up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import OPERATOR_KEY, wait_until
from tests.support.servers import RedisServer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command here")
    if done.returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def client(small_disk: Path, redis_server: RedisServer) -> Iterator[httpx.Client]:
    from tests.e2e.stack import free_port

    port = free_port()
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("GEO_")},
        "PYTHONPATH": str(ROOT),
        "GEO_DATA_DIR": str(small_disk / "geo"),
        "GEO_REDIS__URL": redis_server.url,
        "GEO_API__PORT": str(port),
        "GEO_AUTH__BOOTSTRAP_KEY": OPERATOR_KEY,
        "GEO_MIN_FREE_BYTES": str(4 << 20),
    }
    geo = [sys.executable, "-m", "api.cli"]
    subprocess.run([*geo, "migrate"], env=env, cwd=small_disk.parent, check=True)
    process = subprocess.Popen([*geo, "serve"], env=env, cwd=small_disk.parent)
    headers = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=15) as made:

        def answers() -> bool:
            try:
                return made.get("/healthz").status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers, 30)
        yield made
    process.terminate()
    process.wait(timeout=20)


def fill(path: Path) -> None:
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(handle, bytes(4096))
    except OSError:
        os.close(handle)


def test_disk_that_fills_up_loses_nothing_and_work_goes_on_when_there_is_space(
    client: httpx.Client, small_disk: Path
) -> None:
    def upload(size: int) -> httpx.Response:
        files = {"file": ("a.txt", os.urandom(size))}
        return client.post("/v1/documents", files=files, data={"collection": "c"})

    assert client.post("/v1/collections", json={"name": "c"}).status_code == 201
    stored = []
    while (answer := upload(3 << 20)).status_code == 202:
        stored.append(answer.json()["id"])
    assert stored
    assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
    assert client.get("/readyz").status_code == 503

    fill(small_disk / "filler")
    for number in range(30):
        assert upload(100).status_code == 507
        body = {"question": "How much is it? " * 50, "collection": "c"}
        assert client.post("/v1/queries", json=body).status_code in (202, 507)
        assert client.patch(f"/v1/documents/{stored[0]}", json={"tags": [str(number)]}).status_code in (
            200,
            507,
        )
    assert client.get("/v1/documents").status_code == 200

    (small_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=48m", str(small_disk)], check=True)
    assert client.get("/readyz").status_code == 200
    assert upload(100).status_code == 202
    for document in stored:
        assert len(client.get(f"/v1/documents/{document}/source").content) == 3 << 20
    assert os.listdir(small_disk / "geo" / "blobs" / ".staging") == []
