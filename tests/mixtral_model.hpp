// SPDX-License-Identifier: MIT
// A small Mixtral: a seeded generator of its weights, its forward pass in double precision, which shares no code with
// the library's kernels or their reference, and its files, GGUF and a Hugging Face folder.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/io/gguf_model_keys.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/safetensors_writer.hpp"

namespace intaglio::testing {

inline constexpr decoder_config mixtral_tiny{.model_type = architecture::llama,
                                             .hidden_size = 64,
                                             .intermediate_size = 96,
                                             .num_hidden_layers = 2,
                                             .num_attention_heads = 4,
                                             .num_key_value_heads = 2,
                                             .head_dim = 16,
                                             .vocab_size = 288,
                                             .max_position_embeddings = 128,
                                             .rope_theta = 10'000.f,
                                             .hidden_act = activation::silu,
                                             .tie_word_embeddings = false,
                                             .num_local_experts = 6,
                                             .num_experts_per_tok = 2};

class mixtral_model {
 public:
  explicit mixtral_model(const decoder_config& c, std::uint32_t seed) : c_(c), random_(seed) {
    matrix("token_embd.weight", c.vocab_size, c.hidden_size, 1);
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const std::string in = "blk." + std::to_string(layer) + ".";
      norm(in + "attn_norm.weight");
      matrix(in + "attn_q.weight", c.q_size(), c.hidden_size, 2);
      matrix(in + "attn_k.weight", c.kv_size(), c.hidden_size, 2);
      matrix(in + "attn_v.weight", c.kv_size(), c.hidden_size, 2);
      matrix(in + "attn_output.weight", c.hidden_size, c.q_size(), 1);
      norm(in + "ffn_norm.weight");
      matrix(in + "ffn_gate_inp.weight", c.num_local_experts, c.hidden_size, 3);
      matrix(in + "ffn_gate_exps.weight", c.num_local_experts * c.intermediate_size, c.hidden_size, 2);
      matrix(in + "ffn_up_exps.weight", c.num_local_experts * c.intermediate_size, c.hidden_size, 2);
      matrix(in + "ffn_down_exps.weight", c.num_local_experts * c.hidden_size, c.intermediate_size, 2);
    }
    norm("output_norm.weight");
    matrix("output.weight", c.vocab_size, c.hidden_size, 3);
  }

  /// Logits after every token of a sequence, [tokens, vocab_size].
  std::vector<std::vector<double>> logits(std::span<const std::int32_t> ids) const {
    std::vector<std::vector<double>> out;
    std::vector<std::vector<std::vector<double>>> keys(c_.num_hidden_layers), values(c_.num_hidden_layers);
    for (std::size_t position = 0; position < ids.size(); ++position) {
      std::vector<double> x(c_.hidden_size);
      for (std::uint32_t i = 0; i < c_.hidden_size; ++i)
        x[i] = at("token_embd.weight").values[static_cast<std::size_t>(ids[position]) * c_.hidden_size + i];
      for (std::uint32_t layer = 0; layer < c_.num_hidden_layers; ++layer) {
        const std::string in = "blk." + std::to_string(layer) + ".";
        add(x, attention(in, normed(x, in + "attn_norm.weight"), position, keys[layer], values[layer]));
        add(x, experts(in, normed(x, in + "ffn_norm.weight")));
      }
      out.push_back(times("output.weight", normed(x, "output_norm.weight")));
    }
    return out;
  }

  std::vector<std::int32_t> greedy(std::vector<std::int32_t> ids, std::size_t count) const {
    std::vector<std::int32_t> out;
    for (; out.size() < count; ids.push_back(out.back())) {
      const auto last = logits(ids).back();
      out.push_back(static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
    }
    return out;
  }

  /// Experts that tokens had, each counted.
  const std::map<std::size_t, std::size_t>& chosen() const { return chosen_; }

  /// All experts of a kind in one tensor, rows of q and k in pairs.
  void write_gguf(const std::filesystem::path& path, const io::vocabulary& words) const {
    io::gguf_writer out(path);
    out.set("general.architecture", "llama");
    const auto set = [&](const char* key, auto value) { out.set(std::string("llama.") + key, value); };
    set("vocab_size", c_.vocab_size), set("context_length", c_.max_position_embeddings),
        set("embedding_length", c_.hidden_size), set("block_count", c_.num_hidden_layers);
    set("feed_forward_length", c_.intermediate_size), set("attention.head_count", c_.num_attention_heads),
        set("attention.head_count_kv", c_.num_key_value_heads);
    set("attention.layer_norm_rms_epsilon", c_.rms_norm_eps), set("rope.freq_base", c_.rope_theta),
        set("expert_count", c_.num_local_experts), set("expert_used_count", c_.num_experts_per_tok);
    std::vector<std::string> warnings;
    io::write_vocabulary_keys(out, words, warnings);
    for (const auto& [name, t] : tensors_) {
      const std::uint64_t experts = name.find("_exps") != name.npos ? c_.num_local_experts : 1;
      const std::array<std::uint64_t, 3> shape{t.columns, t.rows / experts, experts};
      out.add_tensor(name, dtype::f32, std::span(shape).first(t.rows == 1 ? 1 : experts == 1 ? 2 : 3));
    }
    out.begin();
    for (const auto& [name, t] : tensors_) {
      auto values = t.values;
      if (name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight"))
        for (std::size_t row = 0; row < t.rows; ++row) {
          const std::size_t head = row / c_.head_dim * c_.head_dim, i = row - head, half = c_.head_dim / 2;
          std::copy_n(t.values.begin() + static_cast<std::ptrdiff_t>(row * t.columns), t.columns,
                      values.begin() + static_cast<std::ptrdiff_t>((head + 2 * (i % half) + i / half) * t.columns));
        }
      out.write(std::as_bytes(std::span(values)));
    }
    out.finish();
  }

  /// config.json and model.safetensors, each expert's matrices by themselves; no tokenizer.
  void write_hf(const std::filesystem::path& folder) const {
    std::ofstream(folder / "config.json") << nlohmann::json{{"model_type", "mixtral"},
                                                            {"hidden_size", c_.hidden_size},
                                                            {"intermediate_size", c_.intermediate_size},
                                                            {"num_hidden_layers", c_.num_hidden_layers},
                                                            {"num_attention_heads", c_.num_attention_heads},
                                                            {"num_key_value_heads", c_.num_key_value_heads},
                                                            {"vocab_size", c_.vocab_size},
                                                            {"max_position_embeddings", c_.max_position_embeddings},
                                                            {"rope_theta", c_.rope_theta},
                                                            {"rms_norm_eps", c_.rms_norm_eps},
                                                            {"hidden_act", "silu"},
                                                            {"tie_word_embeddings", false},
                                                            {"sliding_window", nullptr},
                                                            {"num_local_experts", c_.num_local_experts},
                                                            {"num_experts_per_tok", c_.num_experts_per_tok}};
    struct part {
      std::string name;
      std::vector<std::uint64_t> shape;
      std::span<const float> values;
    };
    std::vector<part> parts;
    const std::map<std::string, std::string> names{
        {"attn_norm", "input_layernorm"},         {"attn_q", "self_attn.q_proj"},
        {"attn_k", "self_attn.k_proj"},           {"attn_v", "self_attn.v_proj"},
        {"attn_output", "self_attn.o_proj"},      {"ffn_norm", "post_attention_layernorm"},
        {"ffn_gate_inp", "block_sparse_moe.gate"}};
    const std::map<std::string, std::string> of_expert{
        {"ffn_gate_exps", "w1"}, {"ffn_down_exps", "w2"}, {"ffn_up_exps", "w3"}};
    for (const auto& [name, t] : tensors_) {
      std::vector<std::uint64_t> shape{t.rows, t.columns};
      if (t.rows == 1) shape = {t.columns};
      if (name == "token_embd.weight") parts.push_back({"model.embed_tokens.weight", shape, t.values});
      else if (name == "output.weight") parts.push_back({"lm_head.weight", shape, t.values});
      else if (name == "output_norm.weight") parts.push_back({"model.norm.weight", shape, t.values});
      if (!name.starts_with("blk.")) continue;
      const std::string layer = name.substr(4, name.find('.', 4) - 4),
                        what = name.substr(name.find('.', 4) + 1, name.rfind('.') - name.find('.', 4) - 1),
                        front = "model.layers." + layer + ".";
      if (names.contains(what)) parts.push_back({front + names.at(what) + ".weight", shape, t.values});
      else
        for (std::size_t e = c_.num_local_experts; e-- > 0;)  // the last one first
          parts.push_back(
              {front + "block_sparse_moe.experts." + std::to_string(e) + "." + of_expert.at(what) + ".weight",
               {t.rows / c_.num_local_experts, t.columns},
               std::span(t.values).subspan(e * t.values.size() / c_.num_local_experts,
                                           t.values.size() / c_.num_local_experts)});
    }
    io::safetensors_writer out(folder / "model.safetensors");
    for (const part& each : parts) out.add_tensor(each.name, dtype::f32, each.shape);
    out.begin();
    for (const part& each : parts) out.write(std::as_bytes(each.values));
    out.finish();
  }

 private:
  struct tensor {
    std::size_t rows = 1, columns = 0;
    std::vector<float> values;
  };
  float uniform() { return static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f; }
  void matrix(const std::string& name, std::size_t rows, std::size_t columns, float size) {
    tensor& t = tensors_[name];
    t.rows = rows, t.columns = columns;
    for (std::size_t i = 0; i < rows * columns; ++i)
      t.values.push_back(uniform() * size / std::sqrt(static_cast<float>(columns)));
  }
  void norm(const std::string& name) {
    tensor& t = tensors_[name];
    t.columns = c_.hidden_size;
    for (std::size_t i = 0; i < t.columns; ++i) t.values.push_back(1.0f + 0.3f * uniform());
  }
  const tensor& at(const std::string& name) const { return tensors_.at(name); }

  /// Rows [first, first + count) of a matrix times x.
  std::vector<double> times(const std::string& name, const std::vector<double>& x, std::size_t first = 0,
                            std::size_t count = 0) const {
    const tensor& t = at(name);
    std::vector<double> y(count == 0 ? t.rows : count);
    for (std::size_t row = 0; row < y.size(); ++row)
      for (std::size_t i = 0; i < t.columns; ++i)
        y[row] += static_cast<double>(t.values[(first + row) * t.columns + i]) * x[i];
    return y;
  }
  std::vector<double> normed(const std::vector<double>& x, const std::string& name) const {
    double squares = 0;
    for (const double each : x) squares += each * each;
    std::vector<double> y(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] *= static_cast<double>(at(name).values[i]) /
              std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(c_.rms_norm_eps));
    return y;
  }
  static void add(std::vector<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  void turn(std::vector<double>& heads, std::size_t position) const {
    const std::size_t d = c_.head_dim;
    for (std::size_t head = 0; head < heads.size(); head += d)
      for (std::size_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(static_cast<double>(c_.rope_theta), -2.0 * static_cast<double>(i) / static_cast<double>(d));
        const double a = heads[head + i], b = heads[head + i + d / 2];
        heads[head + i] = a * std::cos(angle) - b * std::sin(angle);
        heads[head + i + d / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
  }
  std::vector<double> attention(const std::string& in, const std::vector<double>& h, std::size_t position,
                                std::vector<std::vector<double>>& keys,
                                std::vector<std::vector<double>>& values) const {
    const std::size_t d = c_.head_dim, shared = c_.num_attention_heads / c_.num_key_value_heads;
    auto q = times(in + "attn_q.weight", h), k = times(in + "attn_k.weight", h);
    turn(q, position), turn(k, position);
    keys.push_back(k), values.push_back(times(in + "attn_v.weight", h));
    std::vector<double> y(q.size());
    for (std::size_t head = 0; head < c_.num_attention_heads; ++head) {
      const std::size_t kv = head / shared * d;
      std::vector<double> p;
      for (const auto& key : keys) {
        double score = 0;
        for (std::size_t i = 0; i < d; ++i) score += q[head * d + i] * key[kv + i];
        p.push_back(score / std::sqrt(static_cast<double>(d)));
      }
      softmax(p);
      for (std::size_t t = 0; t < p.size(); ++t)
        for (std::size_t i = 0; i < d; ++i) y[head * d + i] += p[t] * values[t][kv + i];
    }
    return times(in + "attn_output.weight", y);
  }
  static void softmax(std::vector<double>& p) {
    const double largest = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& each : p) sum += each = std::exp(each - largest);
    for (double& each : p) each /= sum;
  }
  std::vector<double> experts(const std::string& in, const std::vector<double>& h) const {
    // As transformers has it: the softmax of all, the largest of it, normalised.
    auto p = times(in + "ffn_gate_inp.weight", h);
    softmax(p);
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
    order.resize(c_.num_experts_per_tok);
    double all = 0;
    for (const std::size_t e : order) all += p[e];
    std::vector<double> out(c_.hidden_size);
    for (const std::size_t e : order) {
      ++chosen_[e];
      const std::size_t inner = c_.intermediate_size;
      auto gate = times(in + "ffn_gate_exps.weight", h, e * inner, inner);
      const auto up = times(in + "ffn_up_exps.weight", h, e * inner, inner);
      for (std::size_t i = 0; i < inner; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      const auto y = times(in + "ffn_down_exps.weight", gate, e * c_.hidden_size, c_.hidden_size);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += p[e] / all * y[i];
    }
    return out;
  }

  decoder_config c_;
  std::mt19937 random_;
  std::map<std::string, tensor> tensors_;
  mutable std::map<std::size_t, std::size_t> chosen_;
};

}  // namespace intaglio::testing
