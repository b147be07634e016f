from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from core.errors import ConfigError, TransientError
from core.metrics import ENCODE_REJECTED, ENCODE_TRUNCATED
from core.packs import pack_folder
from core.settings import Settings, get_settings
from ingest.encode import Encoder, get_encoder
from ingest.encode_openvino import EXPORT, OpenVinoNetwork, exported
from ingest.encode_torch import TorchNetwork

E5 = "intfloat/multilingual-e5-small"
TEXTS = [
    "The ferry to Holm leaves at seven.",
    "去霍尔姆的渡轮七点开。",
    "Bread is baked with yeast. " * 12,
    "水泵每四小时检查一次。" * 8,
    "x",
]


@pytest.fixture(scope="module")
def encoder(encoder_pack: Path) -> Encoder:
    assert exported(encoder_pack), "the pack was fetched without its network; run: geo models fetch"
    return Encoder(encoder_pack)


def test_passages_are_unit_rows_in_the_order_given(encoder: Encoder) -> None:
    together = encoder.encode_passages(TEXTS)
    assert together.shape == (len(TEXTS), encoder.dimension)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    alone = np.stack([encoder.encode_passages([text])[0] for text in TEXTS])
    assert (together * alone).sum(axis=1).min() > 0.999


def test_fast_dtype_agrees_with_float32(encoder: Encoder) -> None:
    exact = Encoder(pack_folder(E5), "float32")
    assert (encoder.encode_passages(TEXTS) * exact.encode_passages(TEXTS)).sum(axis=1).min() > 0.999


def test_both_runtimes_give_the_same_vectors(encoder: Encoder) -> None:
    assert isinstance(encoder.network, OpenVinoNetwork)
    other = TorchNetwork(pack_folder(E5), "float32")
    assert (other.window, other.pad_id, other.prompts) == (
        encoder.window, encoder.network.pad_id, encoder.network.prompts,
    )  # fmt: skip
    texts = ["query: When does the ferry leave?", "passage: 水泵每四小时检查一次。" * 9]
    encodings = encoder.network.tokenizer.encode_batch(texts)
    assert [e.ids for e in encodings] == [e.ids for e in other.tokenizer.encode_batch(texts)]
    width = max(len(e.ids) for e in encodings)
    ids = np.array([e.ids + [other.pad_id] * (width - len(e.ids)) for e in encodings])
    mask = np.array([[1] * len(e.ids) + [0] * (width - len(e.ids)) for e in encodings])
    assert cosines(other.pooled(ids, mask), encoder.network.pooled(ids, mask)).min() > 0.999
    theirs, ours = other.tokens(ids, mask), encoder.network.tokens(ids, mask)
    assert cosines(theirs[mask == 1], ours[mask == 1]).min() > 0.995


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_a_pack_without_an_exported_network_runs_on_torch(tmp_path: Path, encoder_pack: Path) -> None:
    for entry in encoder_pack.iterdir():
        if entry.name != EXPORT:
            (tmp_path / entry.name).symlink_to(entry)
    assert isinstance(Encoder(tmp_path).network, TorchNetwork)


def test_encoding_loads_neither_torch_nor_telemetry(encoder: Encoder) -> None:
    code = (
        "import sys; from ingest.encode import Encoder; from core.packs import pack_folder\n"
        f"Encoder(pack_folder({E5!r})).encode_query('x')\n"
        "print([m for m in ('torch', 'transformers', 'openvino_telemetry') if sys.modules.get(m)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_window_holds_the_special_tokens_and_the_prompt(encoder: Encoder) -> None:
    """A passage of as many tokens as are left beside them is whole; one more token is cut and counted."""
    counter = ENCODE_TRUNCATED.labels("passage")._value
    words = "word " * 600
    before = counter.get()
    rows = list(encoder._batches([words], "passage"))
    ids = rows[0][1][0].ids
    assert len(ids) == encoder.window
    assert counter.get() == before + 1
    left = encoder.window - 2 - encoder.count_tokens(["passage: word"])[0]
    fitting = " ".join(["word"] * (1 + left))
    assert encoder.count_tokens(["passage: " + fitting])[0] == encoder.window - 2
    list(encoder._batches([fitting], "passage"))
    assert counter.get() == before + 1
    list(encoder._batches([fitting + " word"], "passage"))
    assert counter.get() == before + 2


def test_a_question_is_nearest_to_its_passage_in_both_languages(encoder: Encoder) -> None:
    passages = encoder.encode_passages(TEXTS)
    for question, answers in (("When does the ferry leave?", {0, 1}), ("多久检查一次水泵?", {3})):
        assert int(np.argmax(passages @ encoder.encode_query(question))) in answers


def test_no_texts_give_no_rows(encoder: Encoder) -> None:
    assert encoder.encode_passages([]).shape == (0, encoder.dimension)
    assert encoder.encode_tokens([], "passage") == []


def test_token_vectors_stand_for_pieces_of_the_text(encoder: Encoder) -> None:
    text = "水泵 XY-2080 每四小时检查一次。"
    entry = encoder.encode_tokens_at([TEXTS[2], text], "passage")[1]
    assert entry.vectors.shape == (len(entry.offsets), encoder.dimension)
    assert np.allclose(np.linalg.norm(entry.vectors, axis=1), 1, atol=1e-5)
    pieces = [text[start:end] for start, end in entry.offsets]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


def test_long_texts_are_cut_and_counted(encoder: Encoder) -> None:
    before = ENCODE_TRUNCATED.labels("passage")._value.get()
    vectors = encoder.encode_passages(["word " * 2000, "short"])
    assert np.isfinite(vectors).all()
    assert ENCODE_TRUNCATED.labels("passage")._value.get() == before + 1
    assert encoder.count_tokens(["word " * 2000])[0] > encoder.window


def test_threads_get_their_own_vectors(encoder: Encoder) -> None:
    expected = encoder.encode_queries(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(encoder.encode_query, TEXTS * 4))
    for at, vector in enumerate(found):
        assert float(vector @ expected[at % len(TEXTS)]) > 0.999


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_one_bad_vector_fails_alone_and_a_bad_question_is_an_outage(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    forward = encoder._forward

    def spoiled(run, encodings):
        pooled = forward(run, encodings)
        pooled[-1] = value  # the shortest text of the batch
        return pooled

    monkeypatch.setattr(encoder, "_forward", spoiled)
    before = ENCODE_REJECTED.labels("passage")._value.get()
    vectors = encoder.encode_passages(TEXTS)
    assert np.isnan(vectors[4]).all()
    assert np.isfinite(vectors[:4]).all()
    assert ENCODE_REJECTED.labels("passage")._value.get() == before + 1
    with pytest.raises(TransientError):
        encoder.encode_query("anything")


def test_a_missing_pack_names_the_command_that_fetches_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_PACKS__ENCODER", "nobody/nothing")
    get_settings.cache_clear()
    with pytest.raises(ConfigError, match="geo models fetch nobody/nothing"):
        get_encoder()
