"""A sentence-transformers pack of any width with random weights: a real encoder that knows nothing."""

from __future__ import annotations

import json
import string
from pathlib import Path

_MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = string.ascii_lowercase + string.digits + string.punctuation


def write_tiny_encoder(folder: Path, *, dimension: int, seed: int = 7) -> Path:
    """Write a one-layer BERT with mean pooling that reads text letter by letter.

    Args:
        folder: made; what `pack_path` then finds.
        dimension: a multiple of 4.
        seed: of the weights.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    folder.mkdir(parents=True)
    vocabulary = [*_MARKS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=dimension,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=2 * dimension,
        max_position_embeddings=256,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 256, "pad_token": "[PAD]",
            "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
        },
    )  # fmt: skip
    module = "sentence_transformers.models"
    _write(
        folder / "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": f"{module}.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{module}.Pooling"},
        ],
    )
    _write(folder / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dimension})
    return folder


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
