# SPDX-License-Identifier: MIT
"""Files of tensors as checkpoints have them, for scripts that make tiny models."""

import json
import struct

import numpy as np


def write_safetensors(path, tensors):
    """Writes tensors by name, those of halves as F16 and the others as F32."""
    header, at = {}, 0
    for name, values in tensors.items():
        kind = "F16" if values.dtype == np.float16 else "F32"
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            out.write(np.ascontiguousarray(values, "<f2" if values.dtype == np.float16 else "<f4").tobytes())
