"""Whether a `config.json` is of a model that writes text, and which type its weights have. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import ConfigError
from generation.plan_quant import DTYPE_BYTES

# Families that read a text in both directions at once. Some may be trained with a causal head, which
# `architectures` then names.
_ENCODERS = frozenset(
    {"albert", "bert", "big_bird", "camembert", "convbert", "deberta", "deberta-v2", "distilbert", "electra"}
    | {"ernie", "esm", "eurobert", "flaubert", "fnet", "funnel", "gte", "ibert", "layoutlm", "longformer"}
    | {"luke", "megatron-bert", "mobilebert", "modernbert", "mpnet", "new", "nomic_bert", "nystromformer"}
    | {"rembert", "roberta", "roberta-prelayernorm", "roformer", "squeezebert", "xlm-roberta"}
    | {"xlm-roberta-xl", "xmod"}
)
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForImageTextToText")
_READERS = (
    *("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
    *("ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining", "EncoderModel"),
)
_OTHER_NAMES = {"half": "float16", "float": "float32", "auto": "bfloat16"}


def require_decoder(config: Mapping[str, Any], name: str) -> None:
    """Refuse a model that does not write text from left to right, by its family and `architectures`.

    Args:
        config: the merged object of the language model.
        name: for the message.

    Raises:
        ConfigError: an encoder, or an encoder with a decoder.
    """
    stated = config.get("architectures")
    architectures = [str(a) for a in stated] if isinstance(stated, list) else []
    family = str(config.get("model_type") or "").lower()
    if config.get("is_encoder_decoder") is True:
        kind = "an encoder with a decoder"
    elif any(a.endswith(_WRITERS) for a in architectures):
        return
    elif family in _ENCODERS or any(map(_reads_only, architectures)):
        kind = "an encoder"
    else:
        return
    raise ConfigError(
        f"{name} is {kind} ({', '.join(architectures) or family}), which the engine cannot write with. Plan "
        "a model with a causal language-model head (an architecture that ends in ForCausalLM); models that "
        "embed or rank are named in GEO_PACKS__ENCODER and GEO_PACKS__RERANKER and need no plan."
    )


def stored_dtype(config: Mapping[str, Any], name: str) -> str:
    """The type of the weights that are not quantized; bfloat16 where the config names none.

    Raises:
        ConfigError: a type that the planner has no size for.
    """
    stated = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16").removeprefix("torch.")
    dtype = _OTHER_NAMES.get(stated, stated)
    if dtype not in DTYPE_BYTES:
        raise ConfigError(
            f"The config of {name} has weights of dtype {stated!r}; known: {', '.join(DTYPE_BYTES)}. "
            "Correct it, or take a checkpoint in one of these."
        )
    return dtype


def _reads_only(architecture: str) -> bool:
    return architecture.endswith(_READERS) or _plain(architecture.removesuffix("Model")) in _PLAIN_ENCODERS


def _plain(family: str) -> str:
    return family.lower().replace("-", "").replace("_", "")


_PLAIN_ENCODERS = frozenset(map(_plain, _ENCODERS))
