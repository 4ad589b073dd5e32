# SPDX-License-Identifier: MIT
"""Activations and scaled frequencies of the rotary embedding, as transformers computes them, for decoders.py."""
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def relu_squared(x):
    return np.maximum(x, 0) ** 2


def yarn(rope, width):
    """Frequencies of pairs: those that turn often stay, those that turn seldom are divided."""
    own = float(rope["rope_theta"]) ** (-np.arange(width // 2) * 2 / width)
    pair = lambda turns: (width * np.log(rope["original_max_position_embeddings"] / (turns * 2 * np.pi))
                          / (2 * np.log(rope["rope_theta"])))
    low, high = max(np.floor(pair(rope["beta_fast"])), 0), min(np.ceil(pair(rope["beta_slow"])), width - 1)
    share = np.clip((np.arange(width // 2) - low) / max(high - low, 1e-3), 0, 1)
    return own / rope["factor"] * share + own * (1 - share)


def llama3(rope, width):
    """Frequencies of pairs; frequencies with a small number of turns in the original context are divided."""
    own = float(rope["rope_theta"]) ** (-np.arange(width // 2) * 2 / width)
    turns = rope["original_max_position_embeddings"] * own / (2 * np.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = np.clip((turns - low) / (high - low), 0, 1)
    return own / rope["factor"] * (1 - share) + own * share


def longrope(rope, width):
    """Frequencies of pairs up to the original context, each divided by a factor."""
    return float(rope["rope_theta"]) ** (-np.arange(width // 2) * 2 / width) / np.array(rope["short_factor"])
