"""`geo eval citations`: what the verifier says of claims whose truth people have judged."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InvalidInput
from core.figures import auroc
from core.measured import machine, versions
from core.types import Verdict
from generation.logistic import balanced_accuracy, cross_fitted
from generation.measure_edits import EDITS
from generation.signals import NAMES, signals
from generation.verify import Judgement, judge
from generation.wording import content_terms
from ingest.sentences import sentences
from retrieval.measure import SEED, read_jsonl, report_progress

FOLDS = 10
_POSITIVE = frozenset({"supported", "support", "supports"})
_CONTRARY = frozenset({"contradict", "refutes", "contradicted"})
# Where every passage is about the claim, words that are missing say nothing of whether it is denied.
_CONTRADICTION = tuple(n for n in NAMES if n.startswith(("negation", "direction", "no_effect", "quantity")))
_AROUND = 5  # sentences before and after it that make up its passage
_MIN_TERMS = 5  # of a source sentence that is edited


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One row of an evaluation file.

    Attributes:
        passages: sentences given for the claim, in order.
        wrong: its words that no passage bears out, where they are marked.
        label: as written in the file, in lower case.
    """

    id: str
    text: str
    passages: tuple[str, ...]
    label: str
    wrong: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether people say that the passages support it."""
        return self.label in _POSITIVE


def read_claims(path: Path) -> list[JudgedClaim]:
    """Read claims with their passages.

    Known shapes: `claim, passages, label`; `claim, evidence, label, non_supported_spans, claim_tokens`;
    `question, answer, passages, gold_support_sets` (the answer is supported by all passages, and by those
    outside its support sets it is not); `text` alone (its longest sentence is the claim).

    Raises:
        InvalidInput: a row has none of these shapes.
    """
    found: list[JudgedClaim] = []
    for number, row in enumerate(read_jsonl(path), 1):
        name = str(row.get("id", row.get("_id", number)))
        if "claim" in row and "passages" in row:
            found.append(JudgedClaim(name, str(row["claim"]), _texts(row["passages"]), _label(row)))
        elif "claim" in row and "evidence" in row:
            tokens, spans = row["claim_tokens"], row["non_supported_spans"]
            wrong = tuple(t for t, bad in zip(tokens, spans, strict=False) if bad)
            found.append(
                JudgedClaim(name, str(row["claim"]), tuple(map(str, row["evidence"])), _label(row), wrong)
            )
        elif "answer" in row and "passages" in row:
            found.extend(_from_answer(name, row))
        elif "text" in row:
            text = str(row["text"])
            parts = tuple(text[s.start : s.end] for s in sentences(text))
            if parts:
                found.append(JudgedClaim(name, max(parts, key=len), parts, "supported"))
        else:
            raise InvalidInput(f"{path.name}, row {number}: neither claim and passages nor text.")
    return found


def _texts(passages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(p["text"]) for p in passages)


def _label(row: Mapping[str, Any]) -> str:
    return str(row.get("label", "")).casefold()


def _from_answer(name: str, row: Mapping[str, Any]) -> list[JudgedClaim]:
    texts = _texts(row["passages"])
    gold = {int(i) for chosen in row.get("gold_support_sets", ()) for i in chosen}
    others = tuple(t for i, t in enumerate(texts) if i not in gold)
    answer = str(row["answer"])
    claims = [JudgedClaim(name, answer, texts, "supported")]
    return [*claims, JudgedClaim(name + "-without", answer, others, "removed")] if others and gold else claims


def eval_citations(path: Path, *, limit: int | None = None) -> dict[str, Any]:
    """Judge every claim of a file and compare with its labels.

    `balanced_accuracy` and `auc` come from weights of `signals.py` fitted on nine tenths of the file and read
    on the last, ten times; claims that share a text or passages stay together. `rules` is what the product
    says, which is fitted on nothing here. A file whose labels are support and contradiction asks whether the
    direction agrees; any other asks whether the claim is borne out.

    Args:
        path: see `read_claims`.
        limit: only the first so many rows.
    """
    claims = read_claims(path)[:limit]
    show = report_progress("judge")
    begun = time.perf_counter()
    table, judged = list[dict[str, float]](), list[Judgement]()
    for number, claim in enumerate(claims, 1):
        table.append(signals(claim.text, claim.passages))
        judged.append(judge(claim.text, "\n".join(claim.passages)))
        show(number, len(claims))
    took = time.perf_counter() - begun
    contrary = {c.label for c in claims} <= _POSITIVE | _CONTRARY and any(
        c.label in _CONTRARY for c in claims
    )
    return {
        "n": len(claims),
        "labels": dict(Counter(c.label for c in claims)),
        "question": "contradiction" if contrary else "support",
        **_fitted(claims, table, _CONTRADICTION if contrary else NAMES),
        "rules": _rules(claims, judged),
        "by_error": _by_error(claims, judged),
        "by_edit": _by_edit(claims),
        "ms_per_claim": round(took * 1000 / max(1, len(claims)), 2),
        "machine": machine(),
        "versions": versions("numpy"),
        "seed": SEED,
        "sizes": {"claims": len(claims), "passages": sum(len(c.passages) for c in claims)},
        "peer": None,
        "limit": limit,
    }


def _fitted(
    claims: Sequence[JudgedClaim], table: Sequence[Mapping[str, float]], names: Sequence[str]
) -> dict[str, Any]:
    truth = [c.supported for c in claims]
    if all(truth) or not any(truth):
        return {"balanced_accuracy": None, "auc": None, "auc_words_alone": None, "folds": FOLDS}
    rows = np.array([[row[name] for name in names] for row in table])
    chances = cross_fitted(rows, np.array(truth), _groups(claims), folds=FOLDS)
    return {
        "balanced_accuracy": _rounded(balanced_accuracy(truth, [bool(c >= 0.5) for c in chances])),
        "auc": _rounded(_auc(truth, chances.tolist())),
        "auc_words_alone": _rounded(_auc(truth, [row["cover_best"] for row in table])),
        "folds": FOLDS,
    }


def _auc(truth: Sequence[bool], scores: Sequence[float]) -> float | None:
    return auroc(
        [s for t, s in zip(truth, scores, strict=True) if t],
        [s for t, s in zip(truth, scores, strict=True) if not t],
    )


def _groups(claims: Sequence[JudgedClaim]) -> list[str]:
    """A name per claim; claims that share their text or their passages have the same."""
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    keys: list[tuple[str, str]] = []
    for claim in claims:
        start = "\n".join(sorted(claim.passages, key=len)[-3:])
        pair = ("c" + claim.text.casefold(), "p" + hashlib.sha256(start.encode()).hexdigest())
        parent[root(pair[0])] = root(pair[1])
        keys.append(pair)
    return [root(pair[1]) for pair in keys]


def _rules(claims: Sequence[JudgedClaim], judged: Sequence[Judgement]) -> dict[str, Any]:
    truth = [c.supported for c in claims]
    verdicts = Counter((c.label, j.verdict.value) for c, j in zip(claims, judged, strict=True))
    by_label: dict[str, dict[str, int]] = {}
    for (label, verdict), count in sorted(verdicts.items()):
        by_label.setdefault(label, {})[verdict] = count
    said = [j.verdict is Verdict.SUPPORTED for j in judged]
    called = sum(said)
    return {
        "balanced_accuracy": _rounded(balanced_accuracy(truth, said)),
        "balanced_accuracy_shown": _rounded(
            balanced_accuracy(truth, [j.verdict is not Verdict.UNSUPPORTED for j in judged])
        ),
        "precision_of_supported": _rounded(
            sum(t and s for t, s in zip(truth, said, strict=True)) / called if called else None
        ),
        "verdicts": by_label,
    }


def _by_error(claims: Sequence[JudgedClaim], judged: Sequence[Judgement]) -> dict[str, dict[str, int]]:
    """Claims without and with support that each first finding flagged; and per kind of marked words."""
    table: dict[str, dict[str, int]] = {}
    for claim, judgement in zip(claims, judged, strict=True):
        if judgement.verdict is not Verdict.SUPPORTED:
            kind = re.split("[:=]", judgement.reason)[0]
            row = table.setdefault(kind, {"caught": 0, "false_alarms": 0})
            row["false_alarms" if claim.supported else "caught"] += 1
        if claim.wrong:
            row = table.setdefault("wrong_" + _kind_of(claim.wrong), {"n": 0, "caught": 0})
            row["n"] += 1
            row["caught"] += judgement.verdict is not Verdict.SUPPORTED
    return dict(sorted(table.items()))


def _kind_of(words: Sequence[str]) -> str:
    if any(any(c.isdigit() for c in w) for w in words):
        return "number"
    if any(w[:1].isupper() for w in words[1:]) or (words[0][:1].isupper() and len(words) == 1):
        return "name"
    return "words" if content_terms(" ".join(words)) else "small_words"


def _by_edit(claims: Sequence[JudgedClaim]) -> dict[str, dict[str, float]]:
    """Sentences of the passages, changed in one thing: how often the rules take back their `supported`."""
    table: dict[str, dict[str, float]] = {}
    seen: set[str] = set()
    verbatim = alarms = 0
    for claim in claims:
        longest = sorted(enumerate(claim.passages), key=lambda p: (-len(content_terms(p[1])), p))[:2]
        for place, sentence in longest:
            if sentence in seen or len(content_terms(sentence)) < _MIN_TERMS:
                continue
            seen.add(sentence)
            passage = "\n".join(claim.passages[max(0, place - _AROUND) : place + _AROUND + 1])
            verbatim += 1
            if judge(sentence, passage).verdict is not Verdict.SUPPORTED:
                alarms += 1
                continue
            for edit in EDITS:
                changed = edit.apply(sentence)
                if changed is None or changed == sentence or changed in passage:
                    continue
                row = table.setdefault(edit.kind, {"n": 0, "caught": 0})
                row["n"] += 1
                row["caught"] += judge(changed, passage).verdict is not Verdict.SUPPORTED
    for row in table.values():
        row["share"] = round(row["caught"] / row["n"], 4)
    table["verbatim"] = {"n": verbatim, "caught": alarms, "share": round(alarms / max(1, verbatim), 4)}
    return table


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
