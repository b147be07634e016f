"""What a worker process holds before it forks, and what its children can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.worker import WORKERS

ROOT = Path(__file__).parents[2]
E5 = "intfloat/multilingual-e5-small"
IMPORT = """
import json, os, sys
from core.worker import get_app
app = get_app()
app.loader.import_default_modules()
app.finalize()
maps = open("/proc/self/maps").read()
print(json.dumps((
    [m for m in ("torch", "faiss", "vllm", "spacy", "tantivy", "numpy") if m in sys.modules],
    [l for l in ("libgomp", "libiomp", "libtorch", "libcuda") if l in maps],
    len(os.listdir("/proc/self/task")),
)))
"""
ENCODE_IN_CHILD = """
import os, sys, time
import ingest.tasks
pid = os.fork()
if pid == 0:
    from ingest.encode import encode_query
    os._exit(0 if encode_query("When does the ferry leave?").shape[0] == 384 else 3)
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.05)
os.kill(pid, 9)
sys.exit("the child hung")
"""


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env={**os.environ, **env}
    )


@pytest.mark.parametrize("name", sorted(WORKERS))
def test_imports_of_a_worker_start_no_runtime_and_no_thread(name: str) -> None:
    """A CUDA context or an OpenMP pool that exists before the fork hangs or fails in the child."""
    done = run(IMPORT, GEO_WORKER_NAME=name, OPENBLAS_NUM_THREADS="1")  # as `geo worker` sets it
    assert done.returncode == 0, done.stderr
    modules, libraries, threads = json.loads(done.stdout)
    allowed = {"numpy", "tantivy"} if WORKERS[name].pool != "prefork" else set()
    assert set(modules) <= allowed
    assert (libraries, threads) == ([], 1)


@pytest.mark.usefixtures("settings", "encoder_pack")
def test_forked_child_encodes() -> None:
    done = run(ENCODE_IN_CHILD)
    assert done.returncode == 0, done.stderr
