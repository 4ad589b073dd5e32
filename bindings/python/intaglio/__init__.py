# SPDX-License-Identifier: MIT
"""Language models on any Vulkan device: libintaglio (intaglio/c.h) by ctypes. Logits and vectors are numpy arrays.

    import intaglio
    model = intaglio.Model("fable.gguf")
    for piece in model.generate("Once upon a time", max_tokens=40):
        print(piece, end="", flush=True)
"""

from __future__ import annotations

import codecs
import ctypes
import os
import pathlib
import sys
import threading
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence, Union

if TYPE_CHECKING:
    import numpy

__all__ = [
    "ArgumentError",
    "DeviceError",
    "DeviceLost",
    "Error",
    "FileError",
    "Model",
    "OutOfMemory",
    "Stream",
    "version",
]

_OK, _END, _NO_ROOM = 0, 1, 7


class Error(Exception):
    """What the library refuses or what went wrong, in one sentence."""


class ArgumentError(Error, ValueError):
    """An option out of range, or no room in the context."""


class FileError(Error, OSError):
    """The model's file or folder."""


class DeviceError(Error):
    """No device, a missing feature, a kernel that computes wrong numbers."""


class DeviceLost(DeviceError):
    """The device is gone; another model can be opened."""


class OutOfMemory(Error, MemoryError):
    """Of the device or of the host."""


_ERRORS = {2: ArgumentError, 3: FileError, 4: DeviceError, 5: DeviceLost, 6: OutOfMemory}


class _ModelOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("device", ctypes.c_char_p),
        ("allow_cpu", ctypes.c_int),
        ("context", ctypes.c_uint),
    ]


class _GenerateOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_uint),
        ("top_p", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("repeat_penalty", ctypes.c_float),
        ("repeat_last_n", ctypes.c_int),
        ("seed_low", ctypes.c_uint),
        ("seed_high", ctypes.c_uint),
        ("max_tokens", ctypes.c_uint),
        ("stop", ctypes.POINTER(ctypes.c_char_p)),
        ("stop_count", ctypes.c_size_t),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("finish", ctypes.c_int),
        ("prompt_tokens", ctypes.c_uint),
        ("cached_tokens", ctypes.c_uint),
        ("generated_tokens", ctypes.c_uint),
        ("prompt_ms", ctypes.c_double),
        ("decode_ms", ctypes.c_double),
    ]


class _Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


def _open_library() -> ctypes.CDLL:
    name = {"win32": "intaglio.dll", "darwin": "libintaglio.dylib"}.get(sys.platform, "libintaglio.so.1")
    library = ctypes.CDLL(os.environ.get("INTAGLIO_LIBRARY") or str(pathlib.Path(__file__).with_name(name)))
    for function in ("version_text", "last_error", "model_device"):
        getattr(library, "intaglio_" + function).restype = ctypes.c_char_p
    for function in ("c_version", "model_context", "model_position", "model_vocab_size", "model_hidden_size"):
        getattr(library, "intaglio_" + function).restype = ctypes.c_uint
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for function, arguments in {
        "model_open": [ctypes.c_char_p, pointer, pointer],
        "model_close": [pointer],
        "model_device": [pointer],
        "model_context": [pointer],
        "model_position": [pointer],
        "model_vocab_size": [pointer],
        "model_hidden_size": [pointer],
        "model_options_init": [pointer],
        "generate_options_init": [pointer],
        "tokenize": [pointer, ctypes.c_char_p, size, ctypes.c_int, pointer, pointer],
        "tokenize_chat": [pointer, pointer, size, pointer, pointer],
        "detokenize": [pointer, pointer, size, pointer, pointer],
        "stream_open": [pointer, pointer, size, pointer, pointer],
        "stream_next": [pointer, pointer, pointer],
        "stream_result": [pointer, pointer],
        "stream_close": [pointer],
        "logits": [pointer, pointer, size, pointer, size],
        "embed": [pointer, ctypes.c_char_p, size, pointer, size],
        "reset": [pointer],
    }.items():
        getattr(library, "intaglio_" + function).argtypes = arguments
    major = library.intaglio_c_version() // 1000
    if major != 1:
        raise ImportError(f"libintaglio: expected interface 1, found {major}")
    return library


_library = _open_library()
#: The library's version.
version: str = _library.intaglio_version_text().decode()


def _check(status: int) -> None:
    if status != _OK:
        raise _ERRORS.get(status, Error)(_library.intaglio_last_error().decode(errors="replace"))


Prompt = Union[str, Sequence[int], Sequence[Mapping[str, str]]]


class Stream(Iterator[str]):
    """Pieces of text as they come. After the end, or in between, `finish` and the counts say how far it is."""

    def __init__(self, model: "Model", ids: Sequence[int], options: _GenerateOptions, kept: object) -> None:
        self._model, self._kept = model, kept
        self._handle = ctypes.c_void_p()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        array = (ctypes.c_int * len(ids))(*ids)
        with model._lock:
            _check(
                _library.intaglio_stream_open(
                    model._open(), array, len(ids), ctypes.byref(options), ctypes.byref(self._handle)
                )
            )

    def __next__(self) -> str:
        if not self._handle:
            raise StopIteration
        piece, length = ctypes.c_void_p(), ctypes.c_size_t()
        with self._model._lock:
            status = _library.intaglio_stream_next(self._handle, ctypes.byref(piece), ctypes.byref(length))
            if status == _END:
                self._read_result()
                self.close()
                raise StopIteration
            if status != _OK:
                message = _library.intaglio_last_error().decode(errors="replace")
                self.close()
                raise _ERRORS.get(status, Error)(message)
            return self._decoder.decode(ctypes.string_at(piece, length.value))

    def _read_result(self) -> None:
        self._result = _Result(size=ctypes.sizeof(_Result))
        _check(_library.intaglio_stream_result(self._handle, ctypes.byref(self._result)))

    def _now(self) -> _Result:
        if self._handle:
            self._read_result()
        return self._result

    @property
    def finish(self) -> str:
        """"none", "stop" or "length"."""
        return ("none", "stop", "length")[self._now().finish]

    @property
    def generated_tokens(self) -> int:
        return int(self._now().generated_tokens)

    @property
    def cached_tokens(self) -> int:
        """Of the prompt, those that were there from the last call."""
        return int(self._now().cached_tokens)

    @property
    def tokens_per_second(self) -> float:
        now = self._now()
        return now.generated_tokens / now.decode_ms * 1e3 if now.decode_ms > 0 else 0.0

    def close(self) -> None:
        """Ends the generation; the model takes other calls then."""
        if self._handle:
            self._read_result()
            _library.intaglio_stream_close(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library.intaglio_stream_close(self._handle)
            self._handle = ctypes.c_void_p()


class Model:
    """A model's file or folder on a device, with one history of tokens. Calls from several threads wait for each
    other."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        device: Union[str, None] = None,
        allow_cpu: bool = True,
        context: int = 0,
    ) -> None:
        self._lock = threading.RLock()
        self._handle = ctypes.c_void_p()
        options = _ModelOptions()
        _library.intaglio_model_options_init(ctypes.byref(options))
        options.device = device.encode() if device is not None else None
        options.allow_cpu = int(allow_cpu)
        options.context = _unsigned("context", context)
        _check(
            _library.intaglio_model_open(os.fspath(path).encode(), ctypes.byref(options), ctypes.byref(self._handle))
        )

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ArgumentError("model: expected one that is open, found a closed one")
        return self._handle

    @property
    def device(self) -> str:
        return _library.intaglio_model_device(self._open()).decode(errors="replace")

    @property
    def context(self) -> int:
        return int(_library.intaglio_model_context(self._open()))

    @property
    def position(self) -> int:
        """Tokens of the history."""
        return int(_library.intaglio_model_position(self._open()))

    @property
    def vocab_size(self) -> int:
        return int(_library.intaglio_model_vocab_size(self._open()))

    @property
    def hidden_size(self) -> int:
        return int(_library.intaglio_model_hidden_size(self._open()))

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Tokens of a text; with special=False texts of control tokens are plain text and there is no BOS."""
        data = text.encode()
        return self._ids(
            lambda ids, count: _library.intaglio_tokenize(self._open(), data, len(data), int(special), ids, count),
            len(data) + 8,
        )

    def tokenize_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Tokens of a conversation ([{"role": "user", "content": "..."}]) up to where the answer begins."""
        turns = (_Message * len(messages))(
            *[_Message(turn["role"].encode(), turn["content"].encode()) for turn in messages]
        )
        return self._ids(
            lambda ids, count: _library.intaglio_tokenize_chat(self._open(), turns, len(messages), ids, count), 256
        )

    def _ids(self, call, room: int) -> list[int]:
        while True:
            ids, count = (ctypes.c_int * room)(), ctypes.c_size_t(room)
            with self._lock:
                status = call(ids, ctypes.byref(count))
                if status != _NO_ROOM:
                    _check(status)
                    return list(ids[:count.value])
            room = count.value

    def detokenize(self, ids: Sequence[int]) -> str:
        array, room = (ctypes.c_int * len(ids))(*ids), 64 + 16 * len(ids)
        while True:
            text, length = ctypes.create_string_buffer(room), ctypes.c_size_t(room)
            with self._lock:
                status = _library.intaglio_detokenize(self._open(), array, len(ids), text, ctypes.byref(length))
                if status != _NO_ROOM:
                    _check(status)
                    return text.raw[:length.value].decode(errors="replace")
            room = length.value

    def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: int = 0,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        repeat_last_n: int = -1,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Stream:
        """Continues a text, tokens or a conversation. What it has in common with the history is not computed again."""
        if isinstance(prompt, str):
            ids: Sequence[int] = self.tokenize(prompt)
        elif len(prompt) != 0 and isinstance(prompt[0], Mapping):
            ids = self.tokenize_chat(prompt)  # type: ignore[arg-type]
        else:
            ids = prompt  # type: ignore[assignment]
        options = _GenerateOptions()
        _library.intaglio_generate_options_init(ctypes.byref(options))
        options.temperature, options.top_p, options.min_p = temperature, top_p, min_p
        options.repeat_penalty, options.repeat_last_n = repeat_penalty, repeat_last_n
        options.top_k, options.max_tokens = _unsigned("top_k", top_k), _unsigned("max_tokens", max_tokens)
        if not 0 <= seed < 2**64:
            raise ArgumentError(f"seed: expected 0 to 2^64 - 1, found {seed}")
        options.seed_low, options.seed_high = seed & 0xFFFFFFFF, seed >> 32
        texts = (ctypes.c_char_p * len(stop))(*[each.encode() for each in stop])
        options.stop, options.stop_count = ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p)), len(stop)
        return Stream(self, ids, options, texts)

    def logits(self, ids: Sequence[int]) -> "numpy.ndarray":
        """Appends tokens to the history and gives the logits after each: float32 [tokens, vocab_size]."""
        import numpy

        out = numpy.empty((len(ids), self.vocab_size), dtype=numpy.float32)
        array = (ctypes.c_int * len(ids))(*ids)
        with self._lock:
            _check(_library.intaglio_logits(self._open(), array, len(ids), out.ctypes.data, out.size))
        return out

    def embed(self, text: str) -> "numpy.ndarray":
        """A vector of length 1 for a text: float32 [hidden_size]. The history is forgotten."""
        import numpy

        out, data = numpy.empty(self.hidden_size, dtype=numpy.float32), text.encode()
        with self._lock:
            _check(_library.intaglio_embed(self._open(), data, len(data), out.ctypes.data, out.size))
        return out

    def reset(self) -> None:
        """Forgets the history."""
        with self._lock:
            _check(_library.intaglio_reset(self._open()))

    def close(self) -> None:
        with self._lock:
            if self._handle:
                _library.intaglio_model_close(self._handle)
                self._handle = ctypes.c_void_p()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _library.intaglio_model_close(self._handle)
            self._handle = ctypes.c_void_p()


def _unsigned(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise ArgumentError(f"{name}: expected 0 to 2^32 - 1, found {value}")
    return value
