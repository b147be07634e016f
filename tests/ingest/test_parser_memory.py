"""A process that reads the same kinds of file again and again keeps its size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ingest.parsing import SAMPLES, docx, paragraph

SCRIPT = """
import sys
from pathlib import Path
import psutil
from ingest.parse import parse_bytes
path = Path(sys.argv[1])
content, me, sizes = path.read_bytes(), psutil.Process(), []
for n in range(200):
    parse_bytes(content, path.name)
    if n in (19, 199):
        sizes.append(me.memory_info().rss)
print(sizes[0], sizes[1])
"""
ZH = "锅炉给水泵轴承温度异常处理办法，压力为3.5兆帕。"


@pytest.fixture(params=["a.txt", "gbk.txt", "a.md", "a.csv", "a.jsonl", "a.docx", "a.pdf"])
def file(request, tmp_path: Path) -> Path:
    rows = "".join(f"M-{n},{n * 3},{n * 7}\n" for n in range(300))
    contents = {
        "a.txt": (ZH * 200).encode(),
        "gbk.txt": (ZH * 100).encode("gbk"),
        "a.md": f"# 标题\n\n{ZH * 9}\n\n".encode() * 20,
        "a.csv": f"编号,一月,二月\n{rows}".encode(),
        "a.jsonl": "\n".join(json.dumps({"id": n, "text": ZH}) for n in range(200)).encode(),
        "a.docx": docx("".join(paragraph(ZH) for _ in range(50))),
        "a.pdf": (SAMPLES / "kestrel-k7-manual.pdf").read_bytes(),
    }
    path = tmp_path / request.param
    path.write_bytes(contents[request.param])
    return path


def test_two_hundred_readings_do_not_grow_the_process(file):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    early, late = map(int, done.stdout.split())
    assert late <= 1.1 * early
