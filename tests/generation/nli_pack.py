"""A tiny entailment checkpoint, made by hand: it knows which words of a claim a premise entails or denies."""

from __future__ import annotations

from pathlib import Path

WORDS = "the tower is tall high low huge pump moves water stops it lofty not".split()  # noqa: SIM905 - a list of words
# (premise, claim, label): 0 contradiction, 1 entailment, 2 neutral
_PAIRS = (
    ("the tower is tall.", "the tower is lofty.", 1),
    ("the tower is tall.", "the tower is huge.", 1),
    ("the tower is tall.", "the tower is low.", 0),
    ("the tower is tall.", "the pump stops.", 2),
    ("the pump moves water.", "it moves water.", 1),
    ("the pump moves water.", "it stops.", 0),
    ("the pump moves water.", "the pump stops water.", 0),
    ("the pump moves water.", "the tower is high.", 2),
)


def make_nli_pack(folder: Path, labels: tuple[str, ...] = ("CONTRADICTION", "entailment", "neutral")) -> Path:
    """Write a checkpoint of 6,000 weights that was fitted to a handful of pairs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS, "."]))
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=48)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(special) + len(WORDS) + 1,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
        id2label=dict(enumerate(labels)),
        label2id={name: i for i, name in enumerate(labels)},
    )
    model = BertForSequenceClassification(config)
    premises, claims, truth = zip(*_PAIRS, strict=True)
    batch = tokenizer(list(premises), list(claims), padding=True, return_tensors="pt")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        model(**batch, labels=torch.tensor(truth)).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
