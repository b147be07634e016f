from core.types import Span
from tests.ingest.parsing import SAMPLES, cut, read

SOURCE = """---
title: "Pump notes"
---

# Pump *K7*

First **bold** paragraph with [a link](https://example.com/x) &amp; more
on a second line.

## Parts

1. Unpack the `pump`.
2. Fill it.
   - With water

| Part | Stock |
|---|---|
| Seal | 45 |
| Bearing | 120 |

```sh
nightly-sync.sh --all
```

<div onclick="x">Inline <b>block</b></div>
"""


def test_markup_goes_and_structure_stays():
    document = read(SOURCE.encode(), "notes.md")
    assert document.title == "Pump notes"
    assert [(h["level"], h["text"]) for h in document.outline] == [(1, "Pump K7"), (2, "Parts")]
    assert "First bold paragraph with a link & more on a second line." in document.text
    assert "1. Unpack the pump.\n2. Fill it.\nWith water" in document.text
    assert "Part | Stock\nSeal | 45\nBearing | 120" in document.text
    assert "nightly-sync.sh --all" in document.text
    assert "onclick" not in document.text
    assert "Inline" in document.text


def test_front_matter_does_not_shift_offsets():
    document = read(SOURCE.encode(), "notes.md")
    at = document.text.index("second line")
    place = document.offset_map.place(Span(at, at + 11))
    assert SOURCE[place.start : place.end] == "second line"
    assert place.line == 8


def test_empty_sections_leave_no_blank_passage():
    source = "# 总则\n\n## 一、范围\n\n\n## 二、术语\n\n   \n\n\u3000\u3000\n\n"
    source += "## 三、要求\n\n巡检间隔为四小时。\n\n----\n"
    drafts = cut(read(source.encode(), "a.md"))
    assert all(any(c.isalnum() for c in d.text) for d in drafts)
    assert drafts[-1].text == "巡检间隔为四小时。"
    assert drafts[-1].heading_path == ("总则", "三、要求")


def test_the_samples_keep_their_tables_under_their_headings():
    document = read((SAMPLES / "baihe-cold-chain.md").read_bytes(), "baihe-cold-chain.md")
    table = next(d for d in cut(document) if "疫苗" in d.text)
    assert table.heading_path == ("白鹤冷链运输操作指南", "二、装货")
    assert "疫苗 | 二度至八度 | 15 分钟" in table.text
