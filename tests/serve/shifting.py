# SPDX-License-Identifier: MIT
"""What a server has to say behind its context's end, from requests that each fit into the context: for tests of
context_shift."""


class Vocabulary:
    """Ids of tokens by their texts, as the server writes them behind another token. Where several have one text, it is
    the last one's: those of single bytes come first, and no model writes a letter by them."""

    def __init__(self, server, size):
        decoded = lambda *ids: server.ask("POST", "/detokenize", {"tokens": ids})[2]["content"]
        first = server.ask("POST", "/tokenize", {"content": "a"})[2]["tokens"][-1]
        self.ids = {decoded(first, i)[len(decoded(first)) :]: i for i in range(size)}

    def of(self, texts):
        return [self.ids[text] for text in texts]


def after_shift(history, kept, n_discard):
    """(the tokens that are fed again, how many were dropped)"""
    rest = len(history) - kept
    dropped = min(max(n_discard or rest // 2, 1), rest - 1)
    return history[:kept] + history[kept + dropped :], dropped


def expected(server, words, prompt, context, body, n_keep=0, n_discard=0):
    """(texts of all tokens, shifts, dropped tokens), each stretch of them asked for alone.

    prompt: ids, the first one a BOS; body: of /v1/completions, with max_tokens of all of it."""
    kept = min(len(prompt) if n_keep == -1 else min(len(prompt), n_keep + 1), context - 4)
    history, texts, shifts, dropped = list(prompt), [], 0, 0
    while len(texts) < body["max_tokens"]:
        if len(history) == context:
            history, more = after_shift(history, kept, n_discard)
            shifts, dropped = shifts + 1, dropped + more
        left = min(body["max_tokens"] - len(texts), context - len(history))
        status, _, answer = server.ask(
            "POST", "/v1/completions", {**body, "prompt": history, "max_tokens": left, "logprobs": 0}
        )
        assert status == 200, answer
        tokens = answer["choices"][0]["logprobs"]["tokens"]
        texts += tokens
        history += words.of(tokens)
        if answer["choices"][0]["finish_reason"] != "length":
            break
    return texts, shifts, dropped
