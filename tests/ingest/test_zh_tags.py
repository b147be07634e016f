from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ingest.zh_names import ZhToken, zh_names
from ingest.zh_tags import in_dictionary, tagged

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
ODD = (
    "",
    "a",
    "7",
    "龘",
    "李伟在北京会见了清华大学教授王小明。",
    "我用的是iPhone15手机，C++和3D打印机也行，T恤PC机A股",
    "75.8降至55.1,并于25日+0.25&7.25_x",
    "王\r\n小\u3000明\t赵 倩 孫俪說：「羨慕」",
    "欧阳震华与阿卜杜拉·本·侯赛因二〇二四年六月在乌兹别克斯坦",
    "々〆カタカナ한국어👩‍👩‍👧‍👦",
)


@pytest.fixture(scope="module")
def jieba_tags() -> Any:
    import jieba
    import jieba.posseg

    jieba.setLogLevel("WARNING")
    return jieba.posseg.dt


def words_of(jieba_tags: Any, text: str) -> list[ZhToken]:
    tokens: list[ZhToken] = []
    at = 0
    for pair in jieba_tags.cut(text):
        tokens.append(ZhToken(pair.word, pair.flag, at))
        at += len(pair.word)
    return tokens


def known(tokens: list[ZhToken]) -> list[ZhToken]:
    return [t for t in tokens if t.tag != "x"]


def texts() -> list[str]:
    made = random.Random(7)
    common = "的一在有王李张小明华国年大人上伟会地中海石远山云河股份公司说对为与和"
    runs = ["".join(made.choices(common, k=made.randint(1, 12))) for _ in range(300)]
    mixed = ["".join(made.choices(common + "aB3.+ ，", k=20)) for _ in range(100)]
    return [
        *ODD,
        *runs,
        *mixed,
        *(p.read_text(encoding="utf-8") for p in sorted(SAMPLES.glob("*.md"))),
    ]


def test_words_and_tags_are_those_of_jiebas_own_tagger(jieba_tags: Any) -> None:
    for text in texts():
        assert known(tagged(text)) == known(words_of(jieba_tags, text)), text


def test_words_follow_each_other_without_gaps() -> None:
    for text in texts():
        assert "".join(t.word for t in tagged(text)) == text
        at = 0
        for token in tagged(text):
            assert token.start == at
            at = token.end


def test_names_are_those_that_jiebas_own_tags_and_dictionary_give(jieba_tags: Any) -> None:
    def frequent(word: str) -> bool:
        return (jieba_tags.tokenizer.FREQ.get(word) or 0) >= 20

    found = 0
    for text in texts():
        names = list(zh_names(tagged(text), in_dictionary))
        assert names == list(zh_names(words_of(jieba_tags, text), frequent))
        found += len(names)
    assert found > 100
