// SPDX-License-Identifier: MIT
// inspect, check and convert: what needs files alone.
#include "commands.hpp"
#include "console.hpp"
#include "engraved_models.hpp"
#include "model_cache.hpp"
#include "model_file.hpp"

#include <intaglio/io/check.hpp>
#include <intaglio/io/convert.hpp>
#include <intaglio/io/inspect.hpp>
#include <intaglio/plan/bytes_moved.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/runtime/recoding.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <optional>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

std::string one_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

io::i2s_layout layout_of(const std::string& wanted) {
  return wanted == "block64" ? io::i2s_layout::block64
         : wanted == "rows4" ? io::i2s_layout::rows4
                             : io::i2s_layout::block128;
}

/// The config with the keys of config.json; keys that only some models have appear only where they differ from their
/// default.
json config_json(const decoder_config& c) {
  json out{{"model_type", name(c.model_type)},
           {"hidden_size", c.hidden_size},
           {"intermediate_size", c.intermediate_size},
           {"num_hidden_layers", c.num_hidden_layers},
           {"num_attention_heads", c.num_attention_heads},
           {"num_key_value_heads", c.num_key_value_heads},
           {"head_dim", c.head_dim},
           {"vocab_size", c.vocab_size},
           {"max_position_embeddings", c.max_position_embeddings},
           {"rope_theta", c.rope_theta},
           {"rms_norm_eps", c.rms_norm_eps},
           {"hidden_act", name(c.hidden_act)},
           {"tie_word_embeddings", c.tie_word_embeddings},
           // int8 or f32 are what a ternary model was trained with; all others compute in f32.
           {"activation_type", name(is_ternary(c) ? c.activation_type : dtype::f32)}};
  if (c.rope_scaling.type != rope_type::plain) out["rope_scaling"] = io::scaling_text(c.rope_scaling);
  const auto count = [&](const char* key, auto value) {
    if (value != decltype(value){}) out[key] = value;
  };
  count("sliding_window", c.sliding_window), count("sliding_window_pattern", c.sliding_window_pattern);
  if (c.rope_local_base_freq != 0.f) out["rope_local_base_freq"] = c.rope_local_base_freq;
  if (c.query_pre_attn_scalar != 0) out["query_pre_attn_scalar"] = c.query_pre_attn_scalar;
  if (c.ternary) out["ternary"] = true;
  if (c.rotary_dim != 0) out["rotary_dim"] = c.rotary_dim;
  if (family_of(c.model_type).optional_norms) out["use_qk_norm"] = c.use_qk_norm;
  if (family_of(c.model_type).optional_biases) out["attention_bias"] = c.attention_bias;
  if (c.no_rope_layer_interval != 0) out["no_rope_layer_interval"] = c.no_rope_layer_interval;
  if (const std::uint32_t layers = layers_with_state(c); layers != 0)
    out["recurrent_layers"] = layers, out["conv_taps"] = c.conv_taps;
  if (!c.mamba_rms_norm) out["mamba_rms_norm"] = false;
  for (const auto& [key, of] : {std::pair{"ffn_layers", &c.ffn_layers}, {"expert_layers", &c.expert_layers}})
    if (!of->empty()) out[key] = of->count(c.num_hidden_layers);
  if (const delta_net_config& delta = c.delta_net; delta.key_heads != 0)
    out["linear_num_key_heads"] = delta.key_heads, out["linear_num_value_heads"] = delta.value_heads,
    out["linear_key_head_dim"] = delta.key_dim, out["linear_value_head_dim"] = delta.value_dim;
  if (c.shared_expert_intermediate_size != 0)
    out["shared_expert_intermediate_size"] = c.shared_expert_intermediate_size;
  if (c.embedding_multiplier != 1.f) out["embedding_multiplier"] = c.embedding_multiplier;
  if (c.residual_multiplier != 1.f) out["residual_multiplier"] = c.residual_multiplier;
  if (c.logits_scaling != 1.f) out["logits_scaling"] = c.logits_scaling;
  count("attention_multiplier", c.attention_multiplier), count("projection_norm_eps", c.projection_norm_eps);
  count("type_vocab_size", c.type_vocab_size), count("global_head_dim", c.global_head_dim);
  count("num_global_key_value_heads", c.num_global_key_value_heads);
  if (c.attention_k_eq_v) out["attention_k_eq_v"] = true;
  count("num_kv_shared_layers", c.num_kv_shared_layers);
  count("shared_intermediate_size", c.shared_intermediate_size);
  count("hidden_size_per_layer_input", c.hidden_size_per_layer_input);
  count("vocab_size_per_layer_input", c.vocab_size_per_layer_input);
  count("altup_num_inputs", c.altup_num_inputs), count("laurel_rank", c.laurel_rank);
  count("q_lora_rank", c.q_lora_rank), count("kv_lora_rank", c.kv_lora_rank), count("v_head_dim", c.v_head_dim);
  if (!c.sparse_layers.empty())
    out["sparse_layers"] = c.sparse_layers.count(c.num_hidden_layers), out["sparse_deviations"] = c.sparse_deviations;
  if (c.attn_logit_softcapping != 0.f) out["attn_logit_softcapping"] = c.attn_logit_softcapping;
  if (c.final_logit_softcapping != 0.f) out["final_logit_softcapping"] = c.final_logit_softcapping;
  if (c.num_local_experts != 0)
    out["num_local_experts"] = c.num_local_experts, out["num_experts_per_tok"] = c.num_experts_per_tok,
    out["norm_topk_prob"] = c.norm_topk_prob;
  return out;
}

/// How a plan for GPUs computes a file; what keeps it from being planned, instead of that.
struct computed_facts {
  std::vector<plan::codec_bytes> codecs;
  std::uint64_t weight_bytes = 0, bytes_per_token = 0;
  std::string text, recoded;  ///< recoded: the first tensors that a plan would hold in another codec
};
computed_facts computed_of(const std::string& path) {
  computed_facts out;
  try {
    const io::checkpoint file = io::checkpoint::open(platform::path_of(path));
    const plan::table& table = engraved_model_of(file).portable;
    out = {plan::weights_by_codec(table),
           table.weight_bytes(),
           plan::bytes_moved(table, table.decode, 0, 1),
           computed_text(table),
           {}};
    for (const runtime::recoding& each : runtime::recodings(file, table))
      if (!runtime::is_exact(each.stored, each.computed))
        (out.recoded += out.recoded.empty() ? "" : "; ") += runtime::recoding_text(each);
  } catch (const error& problem) { out.text = std::string("not planned: ") + problem.what(); }
  return out;
}
json computed_json(const computed_facts& of) {
  json out{{"codecs", json::object()}, {"weight_bytes", of.weight_bytes}, {"bytes_per_token", of.bytes_per_token}};
  for (const plan::codec_bytes& each : of.codecs) out["codecs"][std::string(each.codec)] = each.bytes;
  if (of.codecs.empty()) out["problem"] = of.text;
  if (!of.recoded.empty()) out["recoded"] = of.recoded;
  return out;
}

json inspection_json(const io::inspection& of) {
  json out{{"form", of.form}, {"architecture", of.architecture}};
  if (of.version != 0) out["version"] = of.version;
  for (const auto& each : of.files) out["files"].push_back({{"path", each.path}, {"bytes", each.bytes}});
  out["config"] = of.config ? config_json(*of.config) : json(nullptr);
  out["parameters"] = of.parameters;
  out["tokens"] = of.tokens ? json(*of.tokens) : json(nullptr);
  out["types"] = json::object();
  for (const auto& [type, sum] : of.types) out["types"][type] = {{"tensors", sum.first}, {"bytes", sum.second}};
  out["metadata"] = json::array();
  for (const auto& each : of.metadata) {
    json entry{{"key", each.key}, {"type", each.type}, {"value", each.text}};
    if (each.count != 1) entry["count"] = each.count;
    out["metadata"].push_back(std::move(entry));
  }
  out["unused"] = json::array();
  for (const auto& each : of.unused) out["unused"].push_back({{"key", each.key}, {"value", each.text}});
  out["tensors"] = json::array();
  for (const auto& each : of.tensors)
    out["tensors"].push_back({{"name", each.name},
                              {"type", each.type},
                              {"shape", each.shape},
                              {"file", each.file},
                              {"offset", each.offset},
                              {"bytes", each.bytes}});
  out["warnings"] = of.warnings;
  out["problem"] = of.problem ? json(*of.problem) : json(nullptr);
  return out;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i != 0 ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

void print_inspection(const io::inspection& of, const std::optional<computed_facts>& computed, bool all_tensors) {
  const auto row = [](const std::string& key, const std::string& value) { print_line("  " + padded(key, 26) + value); };
  std::uint64_t bytes = 0;
  for (const auto& each : of.files) bytes += each.bytes;
  print_line(printable(of.files.empty() ? "" : of.files.front().path, 240) +
             (of.files.size() > 1 ? " and " + std::to_string(of.files.size() - 1) + " more" : ""));
  row("form", of.form + (of.version != 0 ? " version " + std::to_string(of.version) : ""));
  row("size", bytes_text(static_cast<double>(bytes)));
  row("architecture", of.architecture.empty() ? "not stated" : printable(of.architecture));
  if (of.config) {
    if (of.parameters != 0) row("parameters", std::to_string(of.parameters));
    const json config = config_json(*of.config);
    for (const auto& [key, value] : config.items())
      row(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  row("tokens", of.tokens ? std::to_string(*of.tokens) : "no tokenizer");
  for (const auto& [type, sum] : of.types)
    row("tensors of " + printable(type),
        std::to_string(sum.first) + ", " + bytes_text(static_cast<double>(sum.second)));
  if (computed) row("computed in", printable(computed->text, 300));
  if (computed && !computed->recoded.empty()) row("needs --codec for", printable(computed->recoded, 300));
  print_line("metadata");
  for (const auto& each : of.metadata)
    row(printable(each.key),
        printable(each.text, 100) + (each.count != 1 ? "  (" + std::to_string(each.count) + " values)" : ""));
  if (!of.unused.empty()) print_line("not used");
  for (const auto& each : of.unused) row(printable(each.key), printable(each.text, 100));
  if (all_tensors) {
    print_line("tensors");
    for (const auto& each : of.tensors)
      print_line("  " + padded(printable(each.name), 40) + padded(printable(each.type), 8) +
                 padded(shape_text(each.shape), 18) + hexadecimal(each.offset) + "  " +
                 bytes_text(static_cast<double>(each.bytes)));
  }
}

std::function<void(const io::file_progress&)> drawn_by(progress_bar& bar) {
  return [&bar](const io::file_progress& at) {
    bar.show(at.total_bytes == 0 ? 0 : static_cast<double>(at.bytes) / static_cast<double>(at.total_bytes),
             bytes_text(static_cast<double>(at.bytes)) + " of " + bytes_text(static_cast<double>(at.total_bytes)) +
                 ", " + std::to_string(at.tensors) + " of " + std::to_string(at.total_tensors) + " tensors");
  };
}

json loss_json(const io::conversion_loss& of) {
  return {
      {"values", of.values}, {"max_error", of.largest}, {"rms_error", of.rms()}, {"relative_rms_error", of.relative()}};
}

json conversion_json(const convert_options& options, const io::convert_report& of) {
  json out{{"out", options.out}, {"codec", options.codec}, {"bytes", of.bytes}};
  out["kinds"] = json::array();
  for (const auto& each : of.kinds) {
    json kind{{"name", each.name}, {"from", name(each.from)}, {"to", name(each.to)}, {"tensors", each.tensors}};
    kind.update(loss_json(each.loss));
    out["kinds"].push_back(std::move(kind));
  }
  out["all"] = loss_json(of.loss);
  out["warnings"] = of.warnings;
  return out;
}

void print_conversion(const io::convert_report& of) {
  const auto figure = [](const char* format, double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return padded(text.data(), 12);
  };
  const auto row = [&](const std::string& kind, const std::string& types, std::size_t tensors,
                       const io::conversion_loss& loss) {
    print_line(padded(kind, 22) + padded(types, 18) + padded(std::to_string(tensors), 9) +
               figure("%.3g", loss.largest) + figure("%.3g", loss.rms()) + figure("%.3g%%", 100 * loss.relative()));
  };
  print_line(padded("tensor", 22) + padded("codec", 18) + padded("tensors", 9) + padded("max error", 12) +
             padded("RMS error", 12) + "of RMS value");
  std::size_t tensors = 0;
  for (const auto& each : of.kinds) {
    row(printable(each.name), std::string(name(each.from)) + " to " + std::string(name(each.to)), each.tensors,
        each.loss);
    tensors += each.tensors;
  }
  row("all", "", tensors, of.loss);
}

}  // namespace

void inspect(const inspect_options& options) {
  const std::string path = local_model(options.file);
  const io::inspection found = io::inspect(platform::path_of(path));
  for (const auto& line : found.warnings) warn(line);
  std::optional<computed_facts> computed;
  if (found.config && !found.problem) computed = computed_of(path);
  if (options.json) {
    json out = inspection_json(found);
    if (computed) out["computed"] = computed_json(*computed);
    print_line(one_line(out));
  } else {
    print_inspection(found, computed, options.tensors);
  }
  if (found.problem) note("note: this model cannot be run: " + *found.problem);
}

void check(const check_options& options) {
  progress_bar bar("checking");
  const io::check_report report = io::check(platform::path_of(local_model(options.file)),
                                            {.layout = layout_of(options.i2s_layout), .progress = drawn_by(bar)});
  bar.clear();
  for (const auto& each : report.warnings) warn(each.text);
  if (!report.ok()) {
    std::vector<std::string> lines;
    for (const auto& each : report.errors) {
      if (each.details.empty()) lines.push_back(each.text);
      lines.insert(lines.end(), each.details.begin(), each.details.end());
    }
    throw input_error(error_text(report.errors.front().text, lines));
  }
  print_line(printable(options.file, 240) + ": sound: " + std::to_string(report.tensors) + " tensors, " +
             std::to_string(report.values) + (report.packed ? " bytes, " : " values, ") +
             std::to_string(report.warnings.size()) + (report.warnings.size() == 1 ? " warning" : " warnings"));
}

std::string converted_codecs() { return io::encodable_types() + " bcml1 i2_s"; }

void convert(const convert_options& options) {
  const auto named = [](const char* option, const std::string& text) {
    const auto codec = dtype_from_name(text);
    if (!codec) throw argument_error(option, "one of " + converted_codecs(), "'" + printable(text, 40) + "'");
    return *codec;
  };
  io::convert_options wanted{
      .codec = named("--codec", options.codec), .layout = layout_of(options.i2s_layout), .threads = options.threads};
  if (!options.embedding.empty()) wanted.embedding = named("--embedding", options.embedding);
  progress_bar bar("converting");
  wanted.progress = drawn_by(bar);
  naming_file(options.in, [&] {
    const io::convert_report report =
        io::convert(platform::path_of(options.in), platform::path_of(options.out), wanted);
    bar.clear();
    for (const auto& line : report.warnings) warn(line);
    if (options.json) print_line(one_line(conversion_json(options, report)));
    else print_conversion(report);
    note("wrote " + printable(options.out, 240) + ", " + bytes_text(static_cast<double>(report.bytes)) + " of tensors");
  });
}

}  // namespace intaglio::tool
