import os
import subprocess
import sys
import time

import pytest

from core.errors import DocumentRejected
from core.settings import IngestSettings
from ingest.sandbox import ParseSandbox
from tests.ingest.parsing import SAMPLES, docx, paragraph


@pytest.fixture
def sandbox():
    box = ParseSandbox(IngestSettings())
    yield box
    box.close()


def test_documents_are_read_in_one_warm_process(sandbox):
    first = sandbox.parse(SAMPLES / "kestrel-k7-manual.pdf", "kestrel-k7-manual.pdf")
    started = time.monotonic()
    second = sandbox.parse(SAMPLES / "talus-sensor-network.md", "talus-sensor-network.md")
    assert time.monotonic() - started < 1
    assert first.pages == 2
    assert second.media_type == "text/markdown"


def test_a_rejection_keeps_its_reason_and_the_process_goes_on(sandbox, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(DocumentRejected) as error:
        sandbox.parse(bad, "bad.pdf")
    assert error.value.code == "corrupt"
    assert sandbox.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks


def test_a_document_that_takes_too_long_is_killed_and_the_next_one_is_read(tmp_path):
    slow = tmp_path / "pipe"
    os.mkfifo(slow)  # reading it waits for a writer that never comes
    box = ParseSandbox(IngestSettings(parse_timeout_s=1))
    try:
        started = time.monotonic()
        with pytest.raises(DocumentRejected) as error:
            box.parse(slow, "slow.txt")
        assert error.value.code == "timeout"
        assert time.monotonic() - started < 5
        assert box.parse(SAMPLES / "baihe-cold-chain.md", "a.md").blocks
    finally:
        box.close()


def test_a_document_that_needs_too_much_memory_is_refused(tmp_path):
    big = tmp_path / "big.docx"
    big.write_bytes(docx(paragraph("x") * 1_200_000))
    box = ParseSandbox(
        IngestSettings(parse_memory_bytes=96 << 20, max_inflation_ratio=100_000, parse_timeout_s=60)
    )
    try:
        with pytest.raises(DocumentRejected) as error:
            box.parse(big, "big.docx")
        assert error.value.code == "too_big"
    finally:
        box.close()


def test_a_crash_of_the_parser_is_that_documents_fault(sandbox, tmp_path):
    (tmp_path / "gone.txt").write_text("x")
    sandbox.parse(tmp_path / "gone.txt", "gone.txt")
    child = sandbox._child
    child.kill()
    child.wait()
    assert sandbox.parse(tmp_path / "gone.txt", "gone.txt").blocks  # a new process takes over


def test_the_child_ends_with_its_parent():
    code = (
        "import sys, pathlib; from ingest.sandbox import parse_in_sandbox, _shared;"
        "parse_in_sandbox(pathlib.Path(sys.argv[1]), 'a.md'); print(_shared._child.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SAMPLES / "baihe-cold-chain.md")],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(done.stdout)
    for _ in range(50):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.1)
    pytest.fail("the parser process outlived its parent")
