// SPDX-License-Identifier: MIT
// config.json of a Hugging Face model as a decoder_config. Keys and defaults: transformers' configuration classes.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "intaglio/io/model_config.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// What a config.json states.
struct hf_config {
  decoder_config config;
  std::string model_type;                      ///< of the text model
  std::optional<bool> tie_word_embeddings;     ///< absent where the file leaves it to the family and the tensors
  bool scale_divides = false;                  ///< packed ternary matrices: W = code / weight_scale (linear_class bitlinear), else times it
  std::vector<std::string> warnings;
};

/// Reads the fields; every error names file, key, expected and found.
class hf_config_reader {
 public:
  explicit hf_config_reader(const std::filesystem::path& path) : document_(path.string()) {
    constexpr std::uint64_t most = std::uint64_t{1} << 20;
    const mapped_file file(path);
    if (file.size() > most) throw file_error(file.path(), std::nullopt, "too large for a config", "at most " + std::to_string(most) + " bytes", std::to_string(file.size()));
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    document_.read_text(text);
  }

  hf_config read() {
    const json_place root(document_.path(), "", &document_.root());
    if (!root.is_object()) document_.refuse("config.json", "a JSON object", std::string(document_.root().type_name()));
    // Multimodal repositories keep the text model's fields in an object of their own.
    const json_place text = root["text_config"].present() ? root["text_config"] : root;
    out_.model_type = text["model_type"].text_or(root["model_type"].text_or(""));
    if (out_.model_type == "bitnet") out_.config.model_type = architecture::bitnet;
    else if (out_.model_type == "llama" || out_.model_type == "mistral") out_.config.model_type = architecture::llama;
    else if (out_.model_type == "gemma3" || out_.model_type == "gemma3_text") out_.config.model_type = architecture::gemma3;
    else document_.refuse("model_type", "one of: bitnet, llama, mistral, gemma3, gemma3_text", "'" + printable(out_.model_type, 60) + "'");
    read_sizes(text);
    read_rope(text);
    read_activation(text);
    for (const char* key : {"attention_bias", "mlp_bias"})
      if (text[key].boolean_or(false)) document_.refuse(key, "false", "true");
    for (const char* key : {"num_experts", "num_local_experts"})
      if (text[key].present() && text[key].natural() != 0) document_.refuse(key, "0", std::to_string(text[key].natural()));
    const json_place tied = root["tie_word_embeddings"].present() ? root["tie_word_embeddings"] : text["tie_word_embeddings"];
    if (tied.present()) out_.tie_word_embeddings = tied.boolean_or(true);
    else if (out_.config.model_type == architecture::gemma3) out_.tie_word_embeddings = true;
    if (out_.config.model_type == architecture::bitnet) read_quantization(root["quantization_config"]);
    if (text["sliding_window"].present()) out_.warnings.push_back("sliding_window is not part of the config that was read");
    check_config(out_.config, document_.path());
    return out_;
  }

 private:
  void read_sizes(const json_place& text) {
    decoder_config& c = out_.config;
    c.hidden_size = size(text["hidden_size"]);
    c.intermediate_size = size(text["intermediate_size"]);
    c.num_hidden_layers = size(text["num_hidden_layers"]);
    c.num_attention_heads = size(text["num_attention_heads"]);
    c.num_key_value_heads = text["num_key_value_heads"].present() ? size(text["num_key_value_heads"]) : c.num_attention_heads;
    c.vocab_size = size(text["vocab_size"]);
    c.max_position_embeddings = size(text["max_position_embeddings"]);
    if (text["head_dim"].present()) {
      c.head_dim = size(text["head_dim"]);
    } else {
      if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
        document_.refuse("num_attention_heads", "a divisor of hidden_size " + std::to_string(c.hidden_size), std::to_string(c.num_attention_heads));
      c.head_dim = c.hidden_size / c.num_attention_heads;
    }
    c.rms_norm_eps = static_cast<float>(text["rms_norm_eps"].number());
  }
  std::uint32_t size(const json_place& place) const {
    const std::uint64_t value = place.natural();
    if (value > std::numeric_limits<std::uint32_t>::max()) place.refuse("a number below 2^32");
    return static_cast<std::uint32_t>(value);
  }

  /// transformers 4 has rope_theta and rope_scaling, transformers 5 rope_parameters, for Gemma one set for each kind of layer.
  void read_rope(const json_place& text) {
    json_place parameters = text["rope_parameters"];
    if (parameters["full_attention"].present()) parameters = parameters["full_attention"];
    const json_place theta = parameters["rope_theta"].present() ? parameters["rope_theta"] : text["rope_theta"];
    out_.config.rope_theta = theta.present() ? static_cast<float>(theta.number()) : 10'000.f;
    const json_place scaling = text["rope_scaling"].present() ? text["rope_scaling"] : parameters;
    if (!scaling.present()) return;
    const std::string type = scaling["rope_type"].text_or(scaling["type"].text_or("default"));
    if (type == "default") return;
    if (out_.config.model_type == architecture::bitnet || (type != "linear" && type != "llama3" && type != "yarn" && type != "dynamic" && type != "longrope"))
      document_.refuse(scaling.where() + ".rope_type", out_.config.model_type == architecture::bitnet ? "default" : "default, linear, llama3, yarn, dynamic or longrope",
                       "'" + printable(type, 40) + "'");
    out_.warnings.push_back("RoPE scaling '" + type + "' is not part of the config that was read");
  }

  void read_activation(const json_place& text) {
    const bool gemma = out_.config.model_type == architecture::gemma3;
    const json_place place = gemma && text["hidden_activation"].present() ? text["hidden_activation"] : text["hidden_act"];
    const std::string act = gemma ? place.text_or("gelu_pytorch_tanh") : out_.config.model_type == architecture::bitnet ? place.text_or("relu2") : place.text_or("silu");
    if (act == "relu2") out_.config.hidden_act = activation::relu_squared;
    else if (act == "silu") out_.config.hidden_act = activation::silu;
    else if (act == "gelu_pytorch_tanh") out_.config.hidden_act = activation::gelu_tanh;
    else document_.refuse(place.where(), "relu2, silu or gelu_pytorch_tanh", "'" + printable(act, 40) + "'");
  }

  /// BitNetQuantConfig: the packed form's scale multiplies for autobitlinear and divides for bitlinear, which is the default.
  void read_quantization(const json_place& quantization) {
    if (!quantization.present()) return;
    if (const std::string method = quantization["quant_method"].text_or("bitnet"); method != "bitnet")
      document_.refuse("quantization_config.quant_method", "bitnet", "'" + printable(method, 40) + "'");
    const std::string linear = quantization["linear_class"].text_or("bitlinear");
    if (linear != "bitlinear" && linear != "autobitlinear")
      document_.refuse("quantization_config.linear_class", "bitlinear or autobitlinear", "'" + printable(linear, 40) + "'");
    if (quantization["use_rms_norm"].boolean_or(false)) document_.refuse("quantization_config.use_rms_norm", "false", "true");
    out_.scale_divides = linear == "bitlinear";
  }

  strict_json document_;
  hf_config out_;
};

/// @throws file_error
inline hf_config read_hf_config(const std::filesystem::path& path) { return hf_config_reader(path).read(); }

}  // namespace intaglio::io
