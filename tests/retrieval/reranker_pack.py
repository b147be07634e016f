"""A tiny cross-encoder, made by hand and fitted to a few pairs: which passage tells what is asked."""

from __future__ import annotations

from pathlib import Path

_WORDS = """
how often is the cooling pump serviced every six months where do visitors register at east gate a badge paper
records for ten years . ? it was last done march they wear
"""
# (question, passage, whether it answers)
_PAIRS = (
    ("how often is the pump serviced?", "the cooling pump is serviced every six months.", 1.0),
    ("how often is the pump serviced?", "the cooling pump is at the east gate.", 0.0),
    ("where do visitors register?", "visitors register at the east gate.", 1.0),
    ("where do visitors register?", "visitors wear a badge.", 0.0),
)


def make_reranker_pack(folder: Path, labels: int = 1) -> Path:
    """Write a checkpoint of a few thousand weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    words = list(dict.fromkeys(_WORDS.split()))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *words]))
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=48)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(special) + len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=labels,
    )
    model = BertForSequenceClassification(config)
    questions, passages, truth = zip(*_PAIRS, strict=True)
    batch = tokenizer(list(questions), list(passages), padding=True, return_tensors="pt")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    wanted = torch.tensor(truth)
    for _ in range(60 if labels == 1 else 0):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(**batch).logits[:, 0], wanted).backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
