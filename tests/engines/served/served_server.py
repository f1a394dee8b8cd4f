"""A small server over real HTTP that speaks as vLLM, others or llama.cpp do, and fails on demand."""

import json
import socket
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from felicity.engines.served.protocols import LETTERS

NAME = "tiny"
WINDOW = 64
Fault = Callable[[int], str | None]


@lru_cache
def load(folder: Path) -> tuple[Any, Any]:
    """The model and tokenizer, once for all tests."""
    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


class Served:
    """One tiny model behind 127.0.0.1; `style` is `vllm`, `echo`, `text`, `llama` or `top`.

    fault: told how many completions were asked for, names what goes wrong with this one.
    most: next tokens that are told, however many are asked for.
    begins: whether a begin token is put before ids, too, as some servers do; it is echoed.
    change: what becomes of each completion before it is sent.
    """

    def __init__(
        self,
        folder: Path,
        *,
        style: str = "vllm",
        fault: Fault | None = None,
        key: str | None = None,
        delay: float = 0.0,
        shift: float = 0.0,
        port: int = 0,
        most: int = 20,
        begins: bool = False,
        change: Callable[[Any], Any] | None = None,
    ) -> None:
        self.model, self.tokenizer = load(folder)
        self.style, self.fault, self.key, self.delay, self.shift = style, fault, key, delay, shift
        self.most = most
        self.begins, self.change = begins, change
        self.asked: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.authorizations: set[str | None] = set()
        self.under_way = self.most_under_way = 0
        self.lock = threading.Lock()
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Else the body waits 40 ms for the headers to be acknowledged.
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.answer(*served.get(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                served.authorizations.add(self.headers.get("authorization"))
                served.post(self, body)

            def answer(self, status: int, payload: object, *, headers: dict[str, str] | None = None) -> None:
                content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that hangs up is part of the tests."""

        self.http = Quiet(("127.0.0.1", port), Handler)
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> "Served":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def get(self, path: str) -> tuple[int, object]:
        if path == "/v1/models":
            entry = {"id": NAME, "created": time.time(), "max_model_len": WINDOW}
            return 200, {"data": [entry if self.style == "vllm" else {"id": NAME}]}
        if path == "/version" and self.style == "vllm":
            return 200, {"version": "0.0"}
        if path == "/props" and self.style == "llama":
            token = self.tokenizer.bos_token
            props = {"bos_token": token, "eos_token": token, "default_generation_settings": {"n_ctx": WINDOW}}
            return 200, props
        return 404, {"detail": "Not Found"}

    def post(self, handler: Any, body: dict[str, Any]) -> None:
        if self.key and handler.headers.get("authorization") != f"Bearer {self.key}":
            said = f"Incorrect API key provided: {handler.headers.get('authorization')}"
            handler.answer(401, {"error": {"message": said}})
        elif handler.path == "/tokenize":
            handler.answer(*self.tokenize(body))
        elif handler.path == "/v1/completions":
            self.complete(handler, body)
        else:
            handler.answer(404, {"detail": "Not Found"})

    def tokenize(self, body: dict[str, Any]) -> tuple[int, object]:
        if self.style == "vllm" and "prompt" in body:
            ids = self.tokenizer(body["prompt"], add_special_tokens=False)["input_ids"]
            return 200, {"tokens": ids, "token_strs": self.tokenizer.convert_ids_to_tokens(ids)}
        if self.style == "llama" and "content" in body:
            ids = self.tokenizer(body["content"], add_special_tokens=False)["input_ids"]
            return 200, {"tokens": [{"id": i, "piece": self.piece(i)} for i in ids]}
        return 404, {"detail": "Not Found"}

    def piece(self, token: int) -> str | list[int]:
        """As llama.cpp gives it: bytes where it is no text by itself."""
        content = bytes(LETTERS[letter] for letter in self.tokenizer.convert_ids_to_tokens(token))
        try:
            return content.decode()
        except UnicodeDecodeError:
            return list(content)

    def write_out(self, ids: list[int]) -> list[str]:
        """As vLLM gives them: a character that is not yet whole comes with the token that ends it."""
        wholes = ["".join(self.tokenizer.decode(ids[:n])).rstrip("\ufffd") for n in range(len(ids) + 1)]
        return [after[len(before) :] for before, after in pairwise(wholes)]

    def complete(self, handler: Any, body: dict[str, Any]) -> None:
        with self.lock:
            self.asked.append(body)
            self.times.append(time.monotonic())
            number = len(self.asked)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            time.sleep(self.delay)
            fault = self.fault(number) if self.fault else None
            self.answer(handler, body, fault)
        finally:
            with self.lock:
                self.under_way -= 1

    def answer(self, handler: Any, body: dict[str, Any], fault: str | None) -> None:
        if fault == "429":
            handler.answer(429, {"error": {"message": "slow down"}}, headers={"Retry-After": "0.3"})
        elif fault == "500":
            handler.answer(500, {"error": {"message": "boom", "key": handler.headers.get("authorization")}})
        elif fault == "timeout":
            time.sleep(1.0)
            handler.close_connection = True
        elif fault == "json":
            handler.answer(200, b'{"choices": [{"prompt_logprobs": [nul')
        elif fault == "closed":
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
        else:
            status, payload = self.completion(body, short=fault == "length")
            handler.answer(status, self.change(payload) if self.change else payload)

    def completion(self, body: dict[str, Any], *, short: bool) -> tuple[int, object]:
        prompt = body["prompt"]
        if isinstance(prompt, list) and self.style == "text":
            return 400, {"error": {"message": "prompt must be a string"}}
        ids = prompt if isinstance(prompt, list) else self.tokenizer(prompt)["input_ids"]
        if self.begins:
            ids = [self.tokenizer.bos_token_id, *ids]
        if len(ids) + body["max_tokens"] > WINDOW:
            return 400, {"error": {"message": f"more than {WINDOW} tokens"}}
        with torch.inference_mode(), self.lock:
            table = torch.log_softmax(self.model(torch.tensor([ids])).logits[0].double(), dim=-1) + self.shift
        own: list[float | None] = [None, *(float(table[i - 1, ids[i]]) for i in range(1, len(ids)))]
        kept = len(ids) - 1 if short else len(ids)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length", "text": ""}
        if self.style == "vllm" and "prompt_logprobs" in body:
            rows = [
                value if value is None else {str(i): {"logprob": value}}
                for i, value in zip(ids, own, strict=True)
            ]
            choice["prompt_logprobs"] = rows[:kept]
        elif self.style == "llama" and "logprobs" in body:
            choice["logprobs"] = {"content": [self.next_content(table[-1], body)]}
        elif body.get("echo") and self.style == "top":
            return 400, {"error": {"message": "echo is not supported"}}
        elif body.get("echo"):
            texts = self.write_out(ids)
            choice["logprobs"] = {"tokens": texts[:kept], "token_logprobs": own[:kept], "top_logprobs": None}
        elif "logprobs" in body:
            if body["logprobs"] > 20:
                return 400, {"error": {"message": "at most 20 logprobs"}}
            values, tokens = table[-1].topk(min(body["logprobs"], self.most))
            top = {self.tokenizer.decode([int(t)]): float(v) for t, v in zip(tokens, values, strict=True)}
            choice["logprobs"] = {"top_logprobs": [top]}
        else:
            choice |= self.write(ids, body)
        return 200, {"choices": [choice], "usage": {"completion_tokens": body["max_tokens"]}}

    def next_content(self, values: Any, body: dict[str, Any]) -> dict[str, Any]:
        """As llama.cpp does: drawn by the biased logits, told with what it had without the bias."""
        biased = values.clone()
        for token, bias in body.get("logit_bias", {}).items():
            biased[int(token)] += bias
        drawn = int(biased.argmax())
        top = values.topk(body["logprobs"]).indices.tolist()

        def entry(token: int) -> dict[str, Any]:
            return {"id": token, "token": self.tokenizer.decode([token]), "logprob": float(values[token])}

        return entry(drawn) | {"top_logprobs": [entry(token) for token in top]}

    def write(self, ids: list[int], body: dict[str, Any]) -> dict[str, Any]:
        written = list(ids)
        for _ in range(body["max_tokens"]):
            with torch.inference_mode(), self.lock:
                written.append(int(self.model(torch.tensor([written])).logits[0, -1].argmax()))
        return {"text": self.tokenizer.decode(written[len(ids) :]), "stop_reason": None}
