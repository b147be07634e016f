"""Whether a model can order passages: it has to find the answering sentence among six, wherever it stands.

A small model names what stands first whatever it reads. So before a model orders anything here it is shown
twelve lists per language, with the answer twice in each place; the other sentences have the question's words.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import GeoError
from core.types import Lang
from generation.requests import Cancelled

log = logging.getLogger(__name__)

NEEDED = 10  # of 12 lists; who guesses, or names one place always, has 2


@dataclass(frozen=True, slots=True)
class MadeList:
    """One list of the test. `answer` is the index of the sentence that answers."""

    question: str
    texts: tuple[str, ...]
    answer: int
    lang: Lang


_MADE: dict[Lang, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    Lang.EN: (
        (
            "In which year was the Harlow bridge opened?",
            "Traffic first crossed the Harlow bridge in 1931, when the mayor cut the ribbon.",
            (
                "The Harlow bridge has four lanes and a path for cyclists.",
                "Plans for the Harlow bridge were drawn over many years.",
                "The opening hours of the Harlow museum changed in 1998.",
                "The river below the Harlow bridge is deep in spring.",
                "A bridge in the next town was closed in 1954.",
            ),
        ),
        (
            "How often must the pump filter be changed?",
            "Put in a new pump filter every three months.",
            (
                "The pump filter is behind the grey cover.",
                "The pump must be switched off at night.",
                "Filters for the pump are sold in packs of ten.",
                "The oil of the compressor is changed every year.",
                "A dirty pump filter makes a loud noise.",
            ),
        ),
        (
            "Who signs travel requests of the sales team?",
            "Requests to travel that come from sales go to Marta Lind, who signs them.",
            (
                "Travel requests have to be handed in ten days before.",
                "The sales team grew by a third last year.",
                "Holiday requests are signed by the head of staff.",
                "The sales team meets on Mondays in room four.",
                "Travel costs are paid back within a month.",
            ),
        ),
        (
            "What does a badge cost when it is lost?",
            "Whoever loses a badge pays twelve euros for a new one.",
            (
                "A badge opens the doors of the first floor.",
                "Lost badges must be reported on the same day.",
                "The cost of parking is forty euros a month.",
                "Guests are given a badge at the gate.",
                "A lost key costs thirty euros.",
            ),
        ),
    ),
    Lang.ZH: (
        (
            "海洛大桥是哪一年通车的？",
            "一九三一年，市长剪彩，车辆第一次驶过海洛大桥。",
            (
                "海洛大桥有四条车道和一条自行车道。",
                "海洛大桥的设计图画了很多年。",
                "海洛博物馆的开放时间在一九九八年改过。",
                "春天海洛大桥下的河水很深。",
                "邻镇的一座大桥在一九五四年关闭。",
            ),
        ),
        (
            "水泵滤网多久要更换一次？",
            "每三个月给水泵装上新的滤网。",
            (
                "水泵滤网在灰色盖板后面。",
                "水泵夜间必须关闭。",
                "水泵滤网每包十个出售。",
                "压缩机的机油每年更换一次。",
                "水泵滤网脏了会有很大的噪音。",
            ),
        ),
        (
            "销售部的出差申请由谁签字？",
            "销售部要出差，须经林玛签字。",
            (
                "出差申请须提前十天提交。",
                "销售部去年增加了三分之一的人。",
                "休假申请由人事主管签字。",
                "销售部每周一在四号会议室开会。",
                "出差费用一个月内报销。",
            ),
        ),
        (
            "门卡丢失要付多少钱？",
            "遗失门卡的人补办新卡须交十二元。",
            (
                "门卡可以打开一楼的门。",
                "门卡丢失必须当天报告。",
                "停车费每月四十元。",
                "来客在门口领取门卡。",
                "钥匙丢失要付三十元。",
            ),
        ),
    ),
}


def made_lists(lang: Lang) -> list[MadeList]:
    """The twelve lists of a language (Chinese, else English): the answer stands in each place twice."""
    tongue = Lang.ZH if lang is Lang.ZH else Lang.EN
    lists: list[MadeList] = []
    for number, (question, answer, others) in enumerate(_MADE[tongue]):
        for place in range(3 * (number % 2), 3 * (number % 2) + 3):
            texts = (*others[:place], answer, *others[place:])
            lists.append(MadeList(question, texts, place, tongue))
    return lists


FirstOf = Callable[[MadeList], int]
"""The index of the sentence that a model puts first."""


class ListwiseGate:
    """Which languages this process's model can order passages in. Safe to share between threads.

    The test runs in the background when it is first asked for, once per language; a test that an engine broke
    off is run again with the next question.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._right: dict[Lang, int] = {}
        self._running: dict[Lang, threading.Event] = {}

    def right(self, lang: Lang, first_of: FirstOf, *, within_s: float) -> int | None:
        """Lists of twelve that the model ordered right, or None while that is not known.

        Args:
            lang: of the question.
            first_of: asks the model.
            within_s: seconds to wait for a test that runs.
        """
        tongue = Lang.ZH if lang is Lang.ZH else Lang.EN
        with self._lock:
            if tongue in self._right:
                return self._right[tongue]
            ended = self._running.get(tongue)
            if ended is None:
                ended = self._running[tongue] = threading.Event()
                threading.Thread(
                    target=self._test, args=(tongue, first_of, ended), name="listwise-test", daemon=True
                ).start()
        ended.wait(within_s)
        with self._lock:
            return self._right.get(tongue)

    def _test(self, lang: Lang, first_of: FirstOf, ended: threading.Event) -> None:
        try:
            right = sum(first_of(made) == made.answer for made in made_lists(lang))
            with self._lock:
                self._right[lang] = right
            log.info("listwise_tested", extra={"lang": lang.value, "right": right, "needed": NEEDED})
        except (GeoError, Cancelled):
            log.warning("listwise_test_broken_off", exc_info=True)
        finally:  # whatever ended it: questions must not wait for a test that nobody runs
            with self._lock:
                del self._running[lang]
            ended.set()
