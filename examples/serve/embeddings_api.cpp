// SPDX-License-Identifier: MIT
// Vectors of texts, by OpenAI's API and Ollama's: the model's states after the last norm, pooled. Scores of a query
// and documents, by Jina's and Cohere's: what a cross-encoder's head makes of both.
#include <intaglio/io/prompt.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

#include "api.hpp"
#include "later_reply.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

json as_numbers(const std::vector<float>& of) {
  json out = json::array();
  for (const float each : of) out.push_back(as_double(each));
  return out;
}

/// Base64 of the bytes of little-endian f32, as in OpenAI's API.
std::string as_base64(const std::vector<float>& of) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes, out;
  for (const float each : of)
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(std::bit_cast<std::uint32_t>(each) >> (8 * i) & 0xFF);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

/// The first numbers alone, scaled to a length of 1.
void cut_to(std::vector<float>& of, std::uint32_t dimensions) {
  of.resize(dimensions);
  double square = 0;
  for (const float each : of) square += static_cast<double>(each) * each;
  if (square > 0)
    for (float& each : of) each = static_cast<float>(each / std::sqrt(square));
}

}  // namespace

http_reply api::embedded(const asked& of, std::vector<std::vector<std::int32_t>> texts,
                         std::function<json(vectors&&, std::uint64_t)> write, std::vector<std::uint32_t> seconds,
                         const std::string& input) {
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string field = texts.size() == 1 && seconds.empty() ? input : index(input, i);
    if (texts[i].empty()) throw api_error(400, field + ": expected at least one token, found none", input);
    if (texts[i].size() > of.facts().context)
      throw api_error(400,
                      field + ": expected at most " + std::to_string(of.facts().context) +
                          " tokens (this model's maximum context length), found " + std::to_string(texts[i].size()) +
                          (seconds.empty() ? "" : " with the query"),
                      input, "context_length_exceeded");
    tokens += texts[i].size();
  }
  const auto reply = std::make_shared<later_reply>(of.wake);
  of.model->engine.embed(
      {std::move(texts),
       [reply, tokens, write = std::move(write), &counts = counts_, model = of.model](vectors found) {
         if (tokens <= UINT32_MAX) counts.generated(static_cast<std::uint32_t>(tokens), 0, 0, 0);
         reply->give(json_reply(write(std::move(found), tokens)));
       },
       [reply](const api_error& error) { reply->refuse(error); }, [reply] { return reply->cancelled(); },
       std::move(seconds)});
  http_reply out;
  out.pending = reply;
  return out;
}

http_reply api::embeddings(const asked& of) {
  const embedding_request wanted = read_embedding_request(of.body, of.facts(), options_.limit);
  std::vector<std::vector<std::int32_t>> texts;
  for (const prompt_input& each : wanted.input)
    texts.push_back(each.index() == 0 ? io::encode_for_embedding(of.words().tokens, std::get<0>(each))
                                      : std::get<1>(each));
  return embedded(of, std::move(texts),
                  [base64 = wanted.base64, dimensions = wanted.dimensions, name = of.facts().id](vectors&& found,
                                                                                                 std::uint64_t tokens) {
                    json data = json::array();
                    for (std::size_t i = 0; i < found.size(); ++i) {
                      if (dimensions) cut_to(found[i], *dimensions);
                      data.push_back({{"object", "embedding"},
                                      {"index", i},
                                      {"embedding", base64 ? json(as_base64(found[i])) : as_numbers(found[i])}});
                    }
                    return json{{"object", "list"},
                                {"data", std::move(data)},
                                {"model", name},
                                {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
                  });
}

/// /api/embed, and /api/embeddings of older clients.
http_reply api::ollama_embed(const asked& of) {
  const bool older = of.request.path == "/api/embeddings";
  const fields from(of.body, {});
  json ours{{"input", older ? json(from.text("prompt")) : from.need("input", "a string")}};
  if (const json* const dimensions = from.find("dimensions")) ours["dimensions"] = *dimensions;
  const bool cut = from.boolean("truncate", true);
  from.without_effect({"model", "keep_alive", "options"});  // options of loading and drawing
  from.refuse_unknown(options_.limit.ignore_unknown);
  const embedding_request wanted = read_embedding_request(ours, of.facts(), options_.limit);
  std::vector<std::vector<std::int32_t>> texts;
  for (const prompt_input& each : wanted.input) {
    if (each.index() != 0) refuse_field("input", "a string or strings", "token ids");
    std::vector<std::int32_t> ids = io::encode_for_embedding(of.words().tokens, std::get<0>(each));
    if (cut && ids.size() > of.facts().context) {  // the end's token stays, where there is one
      const std::int32_t last = ids.back();
      ids.resize(of.facts().context);
      if (of.words().tokens.adds_eos()) ids.back() = last;
    }
    texts.push_back(std::move(ids));
  }
  return embedded(of, std::move(texts),
                  [older, dimensions = wanted.dimensions, name = of.facts().id, start = steady::now()](
                      vectors&& found, std::uint64_t tokens) {
                    json all = json::array();
                    for (std::vector<float>& each : found) {
                      if (dimensions) cut_to(each, *dimensions);
                      all.push_back(as_numbers(each));
                    }
                    if (older) return json{{"embedding", std::move(all[0])}};
                    return json{{"model", name},
                                {"embeddings", std::move(all)},
                                {"total_duration",
                                 std::chrono::duration_cast<std::chrono::nanoseconds>(steady::now() - start).count()},
                                {"load_duration", 0},
                                {"prompt_eval_count", tokens}};
                  });
}

/// {"query", "documents": [texts, or objects with a text], "top_n", "return_documents"}
http_reply api::rerank(const asked& of) {
  const rerank_request wanted = read_rerank_request(of.body, options_.limit);
  std::vector<std::vector<std::int32_t>> texts;
  std::vector<std::uint32_t> seconds;
  for (const std::string& each : wanted.documents) {
    io::text_pair both = io::encode_pair(of.words().tokens, wanted.query, each);
    texts.push_back(std::move(both.ids)), seconds.push_back(both.second);
  }
  return embedded(
      of, std::move(texts),
      [wanted, name = of.facts().id](vectors&& found, std::uint64_t tokens) {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < found.size(); ++i) order.push_back(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return found[a][0] > found[b][0]; });
        if (wanted.top_n) order.resize(std::min<std::size_t>(order.size(), *wanted.top_n));
        json results = json::array();
        for (const std::size_t i : order) {
          json one{{"index", i}, {"relevance_score", as_double(found[i][0])}};
          if (wanted.return_documents) one["document"] = {{"text", wanted.documents[i]}};
          results.push_back(std::move(one));
        }
        return json{{"model", name},
                    {"object", "list"},
                    {"results", std::move(results)},
                    {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
      },
      std::move(seconds), "documents");
}

}  // namespace intaglio::serve
