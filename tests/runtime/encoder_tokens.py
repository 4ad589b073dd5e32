# SPDX-License-Identifier: MIT
"""Tokenizers of the tiny encoders of encoder.py: WordPiece, unigram and byte-level BPE, their tokenizer.json and their
texts in GGUF. Written from the papers and from transformers; nothing here is the library's."""

import base64
import math
import re
import struct
import unicodedata

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "naive",
    "cafe",
    "un",
    "##aff",
    "##able",
    "##s",
    "hello",
    "world",
    ",",
    ".",
    "!",
    "中",
    "国",
]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = (
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + WORDS
    + [c for c in LETTERS if c not in WORDS]
    + ["##" + c for c in LETTERS if "##" + c not in WORDS]
)
TEXTS = ["", "cat", "Hello, world!", "The unaffable cats sat on a naïve CAFÉ mat.", "中国 ♥ the cat",
         " ".join(["the cat sat on a mat , un ##able"] * 20), " ".join(["hello world . "] * 100)]
PAIRS = [("the cat", "sat on a mat ."), ("hello world", "unaffable"), ("cafe", "")]


def tokens_of(text):
    """BERT's: clean, lower case without accents, words and punctuation, longest pieces first."""
    plain = "".join(f" {c} " if 0x4E00 <= ord(c) <= 0x9FFF else c for c in text)
    plain = "".join(c for c in unicodedata.normalize("NFD", plain) if unicodedata.category(c) != "Mn").lower()
    for c in set(plain):
        if unicodedata.category(c)[0] == "P" or (ord(c) < 128 and not c.isalnum() and not c.isspace()):
            plain = plain.replace(c, f" {c} ")
    out = []
    for word in plain.split():
        pieces, rest, mark = [], word, ""
        while rest:
            best = next((n for n in range(len(rest), 0, -1) if mark + rest[:n] in VOCABULARY), 0)
            if best == 0:
                pieces = ["[UNK]"]
                break
            pieces.append(mark + rest[:best])
            rest, mark = rest[best:], "##"
        out += [VOCABULARY.index(p) for p in pieces]
    return out


# A Unigram vocabulary: texts with scores; characters without a token are 10 worse than the worst token.
PIECES = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("\u2581", -2.0),
    ("\u2581the", -3.0),
    ("\u2581cat", -4.0),
    ("at", -3.5),
    ("\u2581sat", -4.5),
    ("\u2581on", -4.0),
    ("\u2581hello", -5.0),
    ("\u2581world", -5.5),
    ("un", -4.25),
    ("aff", -5.0),
    ("able", -4.75),
    ("fa", -4.5),
    ("fe", -4.5),
    (",", -3.0),
    (".", -3.0),
    ("中", -6.0),
]
PIECES += [(c, -6.0 - i / 8) for i, c in enumerate("abcdefghijklmnopqrstuvwxyz")]
RULES = {"ï": "i", "\u00c9": "e", "\t": " ", "!": "...", "C": "c", "CA": "ca"}


def unigram_tokens(text):
    """SentencePiece's: rules by the longest key, spaces merged, then the best sum of scores."""
    plain = ""
    while text:
        key = next((text[:n] for n in (2, 1) if text[:n] in RULES), None)
        plain += RULES[key] if key else text[0]
        text = text[len(key) if key else 1:]
    words = plain.split(" ")
    plain = "".join("\u2581" + w for w in words if w)
    score = dict(PIECES[4:])
    lowest = min(score.values()) - 10
    best = [(0.0, [])] + [(-math.inf, [])] * len(plain)
    for end in range(1, len(plain) + 1):
        for begin in range(max(0, end - 8), end):
            piece = plain[begin:end]
            if piece in score or end - begin == 1:
                sum_ = best[begin][0] + score.get(piece, lowest)
                if sum_ > best[end][0]:
                    best[end] = (sum_, best[begin][1] + [piece])
    out = []
    ids = {t: i for i, (t, _) in enumerate(PIECES)}
    for piece in best[-1][1]:
        if piece in score or not out or out[-1] != 3:
            out.append(ids.get(piece, 3))
    return out


def charsmap():
    """The rules as a double array: a block of 256 units for the children of each start of a key."""
    starts = sorted({k.encode()[:n] for k in RULES for n in range(len(k.encode()) + 1)})
    block = {s: 256 * (i + 1) for i, s in enumerate(starts)}
    units, texts = [0] * (256 * (len(starts) + 1)), b""
    where = lambda s: block[s[:-1]] + s[-1] if s else 0
    for s in starts:
        units[where(s)] = (where(s) ^ block[s]) << 10 | (s[-1] if s else 0)
    for key, text in RULES.items():
        units[where(key.encode())] |= 0x100
        units[block[key.encode()]] = 0x80000000 | len(texts)
        texts += text.encode() + b"\0"
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + texts


# A byte-level BPE: letters of bytes and pairs that become one, in their order.
OWN = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
REST = [b for b in range(256) if b not in OWN]
LETTER = [chr(b) if b in OWN else chr(256 + REST.index(b)) for b in range(256)]
MERGES = ["a t", "t h", "th e", "\u0120 the", "\u0120 c", "\u0120c at", "h e", "l l", "he ll", "hell o", "\u0120 s",
    "\u0120s at", "a b", "ab l", "abl e", ". ."]
BYTES = ["<s>", "<pad>", "</s>", "<unk>"] + LETTER + [m.replace(" ", "") for m in MERGES] + ["<mask>"]
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+| ?_+|\s+(?!\S)|\s+")


def byte_tokens(text):
    """GPT-2's: words, their bytes as letters, then the pair that was merged first, again and again."""
    out = []
    for word in WORD.findall(text):
        parts = [LETTER[b] for b in word.encode()]
        while True:
            joined = [f"{a} {b}" for a, b in zip(parts, parts[1:])]
            pairs = [(MERGES.index(pair), i) for i, pair in enumerate(joined) if pair in MERGES]
            if not pairs:
                break
            _, i = min(pairs)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        out += [BYTES.index(p) for p in parts]
    return out


def tokenizer_json():
    special = [
        {
            "id": i,
            "content": t,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, t in enumerate(VOCABULARY[:5])
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [],
            "special_tokens": {},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {t: i for i, t in enumerate(VOCABULARY)},
        },
    }


def unigram_json():
    special = [
        {
            "id": i,
            "content": PIECES[i][0],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i in range(4)
    ]
    token = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    text = lambda t: {"Sequence": {"id": t, "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap()).decode()},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("<s>"), text("A"), token("</s>")],
            "pair": [token("<s>"), text("A"), token("</s>"), token("</s>"), text("B"), token("</s>")],
            "special_tokens": {},
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": PIECES, "byte_fallback": False},
    }


def bytes_json():
    special = [{"id": i, "content": BYTES[i], "single_word": False, "lstrip": BYTES[i] == "<mask>", "rstrip": False,
                "normalized": False, "special": True} for i in [0, 1, 2, 3, len(BYTES) - 1]]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                           "add_prefix_space": False},
        "decoder": level, "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                                    "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                                    "vocab": {t: i for i, t in enumerate(BYTES)}, "merges": MERGES}}


def gguf_tokens():
    return [t if t[0] == "[" and t[-1] == "]" else t[2:] if t.startswith("##") else "\u2581" + t for t in VOCABULARY]
