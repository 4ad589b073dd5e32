// SPDX-License-Identifier: MIT
// engrave: writes a model's config as a header and builds a tool around it.
#include "child_process.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "known_models.hpp"
#include "model_file.hpp"

#include <intaglio/core/number_text.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/io/atomic_file.hpp>
#include <intaglio/io/model_config.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/platform/program.hpp>
#include <intaglio/runtime/recoding.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#ifndef INTAGLIO_CXX_COMPILER
#error "expected INTAGLIO_CXX_COMPILER from CMake"
#endif

namespace intaglio::tool {
namespace {

namespace fs = std::filesystem;

/// "BitNet-b1.58 (2B).gguf" becomes bitnet_b1_58_2b.
std::string identifier_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    if (letter) out += static_cast<char>(c | 0x20);
    else if (digit) out += c;
    else if (!out.empty() && out.back() != '_') out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out = "model_" + out;
  constexpr std::array<std::string_view, 16> taken{"fable",  "auto",  "bool", "char",    "class", "double",
                                                   "export", "float", "int",  "long",    "new",   "short",
                                                   "this",   "union", "void", "intaglio"};
  if (std::find(taken.begin(), taken.end(), out) != taken.end()) out += "_model";
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

std::string number(float value) {
  std::string out = number_text(value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

std::string enumerator(architecture value) {
  if (value == architecture::gptoss) return "gptoss";
  std::string out(name(value));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}
std::string_view enumerator(rope_type value) { return value == rope_type::plain ? "plain" : name(value); }
std::string_view enumerator(activation value) {
  constexpr std::string_view names[] = {"relu_squared", "silu", "gelu_tanh", "gelu", "xielu"};
  static_assert(std::size(names) == static_cast<std::size_t>(last_activation) + 1);
  return names[static_cast<std::size_t>(value)];
}

/// How the model's type is written: its template, which the header of this name has, and the template's arguments
/// after the config; and what of its matrices is held in other types than those.
struct model_template {
  std::string name, arguments;
  families::weight_types types = {};
};
model_template template_of(const io::checkpoint& model, const families::weight_types& types, const std::string& codec) {
  const decoder_config& c = model.config();
  if (c.model_type == architecture::bitnet) {
    // The ternary matrices stay as they are; the table of floats is f16 unless the file's has more bits.
    const io::checkpoint_tensor& table = model.at("token_embd.weight");
    const dtype stored = table.stored.type;
    if (codec.empty() && stored == dtype::f32)
      return {"bitnet_b158", ", intaglio::dtype::i2_s, intaglio::dtype::" + std::string(name(c.activation_type)) +
                                 ", intaglio::dtype::f32"};
    if (codec.empty() && !runtime::is_exact(stored, dtype::f16))
      throw file_error(model.path(), table.stored.offset, "tensor 'token_embd.weight'",
                       "f32, f16 or bf16, or --codec f16, which rounds its values", std::string(name(stored)));
    return {"bitnet_b158", ""};
  }
  if (const families::file_types found = families::types_of(model); codec.empty() && found.recoded)
    throw file_error(model.path(), std::nullopt, "codecs of the matrices",
                     "those that are computed; --codec " + std::string(name(types.layers)) +
                         " computes all in one, which changes values",
                     found.list);
  const auto argument = [](dtype type) { return ", intaglio::dtype::" + std::string(name(type)); };
  const bool experts = c.num_local_experts != 0 && family_of(c.model_type).layers == "llama";
  const std::string matrices = argument(c.ternary ? dtype::i2_s : types.layers), embedding = argument(types.embedding);
  return {
      experts ? "mixtral" : std::string(family_of(c.model_type).layers),
      matrices + (is_gemma(c.model_type) || family_of(c.model_type).encoder ? "" : argument(types.head)) + embedding};
}

/// Layers' matrices of several codecs, each in its own.
std::string held_text(const families::weight_types& types) {
  if (types.matrices.empty()) return "";
  std::string out = "  static constexpr auto held = std::to_array<intaglio::ir::held_type>({\n", sets;
  for (const families::matrix_type& each : types.matrices)
    out += "      {\"" + each.name + "\", intaglio::dtype::" + std::string(intaglio::name(each.type)) + ", " +
           std::to_string(each.set) + "},\n";
  for (const std::uint8_t set : types.sets) sets += (sets.empty() ? "" : ", ") + std::to_string(set);
  return out + "  });\n  static constexpr std::array<std::uint8_t, " + std::to_string(types.sets.size()) + "> sets{" +
         sets + "};  // by layer\n";
}

std::string set_text(const layer_set& of) {
  std::string words;
  for (const std::uint64_t word : of.words) words += (words.empty() ? "" : ", ") + std::to_string(word) + "u";
  return "{{" + words + "}}";
}

/// What a config says of routers, and what layers of some models of a family alone have. @param field takes a key and
/// its value
template <class Field>
void last_fields(const decoder_config& c, const Field& field) {
  if (!c.norm_topk_prob) field("norm_topk_prob", "false");
  if (c.routed_scaling_factor != 1.f) field("routed_scaling_factor", number(c.routed_scaling_factor));
  if (c.use_expert_bias) field("use_expert_bias", "true");
  if (c.n_group != 0) {
    field("n_group", std::to_string(c.n_group));
    field("topk_group", std::to_string(c.topk_group));
  }
  if (c.dense_features != 0) field("dense_features", std::to_string(c.dense_features));
  if (c.has_dense_layers()) {
    field("num_dense_layers", std::to_string(c.num_dense_layers));
    field("dense_intermediate_size", std::to_string(c.dense_intermediate_size));
  }
  if (c.projection_norm_eps != 0) field("projection_norm_eps", number(c.projection_norm_eps));
  if (c.q_lora_rank != 0) field("q_lora_rank", std::to_string(c.q_lora_rank));
  if (c.kv_lora_rank != 0) {
    field("kv_lora_rank", std::to_string(c.kv_lora_rank));
    field("v_head_dim", std::to_string(c.v_head_dim));
  }
  if (!c.use_qk_norm) field("use_qk_norm", "false");
  if (!c.attention_bias) field("attention_bias", "false");
  if (!c.mamba_rms_norm) field("mamba_rms_norm", "false");
}

/// The rotation by position. @param field takes a key and its value
template <class Field>
void rope_fields(const decoder_config& c, const Field& field) {
  field("rope_theta", number(c.rope_theta));
  if (c.rope_scaling != rope_scaling_config{})
    field("rope_scaling", "{intaglio::rope_type::" + std::string(enumerator(c.rope_scaling.type)) + ", " +
                              number(c.rope_scaling.factor) + ", " + number(c.rope_scaling.low_freq_factor) + ", " +
                              number(c.rope_scaling.high_freq_factor) + ", " +
                              std::to_string(c.rope_scaling.original_max_position_embeddings) + ", " +
                              number(c.rope_scaling.attention_factor) +
                              (c.rope_scaling.truncate ? ", true}" : ", false}"));
  if (c.rope_scaling.type == rope_type::longrope) {
    const auto list = [](const auto& factors) {
      std::string out;
      for (const float factor : factors) out += (out.empty() ? "{" : ", ") + number(factor);
      return out + "}";
    };
    field("rope_factors", "{{" + list(c.rope_factors.short_factor) + "}, {" + list(c.rope_factors.long_factor) + "}}");
  }
  if (c.rotary_dim != 0) field("rotary_dim", std::to_string(c.rotary_dim));
}

/// What differs by layer. @param field takes a key and its value
template <class Field>
void layer_fields(const decoder_config& c, const Field& field) {
  const auto layers = [&](std::string_view key, const layer_set& of) {
    if (!of.empty()) field(key, set_text(of));
  };
  const auto count = [&](std::string_view key, auto value) {
    if (value != 0) field(key, std::to_string(value));
  };
  layers("recurrent_layers", c.recurrent_layers);
  layers("ffn_layers", c.ffn_layers), layers("expert_layers", c.expert_layers);
  count("conv_taps", c.conv_taps);
  count("global_head_dim", c.global_head_dim);
  count("num_global_key_value_heads", c.num_global_key_value_heads);
  count("global_turning_pairs", c.global_turning_pairs);
  if (c.attention_k_eq_v) field("attention_k_eq_v", "true");
  layers("full_attention_layers", c.full_attention_layers);
  count("num_kv_shared_layers", c.num_kv_shared_layers);
  count("shared_intermediate_size", c.shared_intermediate_size);
  count("hidden_size_per_layer_input", c.hidden_size_per_layer_input);
  count("vocab_size_per_layer_input", c.vocab_size_per_layer_input);
  count("altup_num_inputs", c.altup_num_inputs);
  count("laurel_rank", c.laurel_rank);
  layers("sparse_layers", c.sparse_layers);
  if (c.sparse_deviations != 0.f) field("sparse_deviations", number(c.sparse_deviations));
  if (const delta_net_config& delta = c.delta_net; delta.key_heads != 0)
    field("delta_net", "{" + std::to_string(delta.key_heads) + ", " + std::to_string(delta.value_heads) + ", " +
                           std::to_string(delta.key_dim) + ", " + std::to_string(delta.value_dim) +
                           (delta.in_turn ? ", true}" : ", false}"));
  count("shared_expert_intermediate_size", c.shared_expert_intermediate_size);
  count("type_vocab_size", c.type_vocab_size);
}

std::string header_text(const decoder_config& c, const model_template& kind, const std::string& name,
                        const std::string& file) {
  std::string out = "// Config of " + printable(file, 200) +
                    ", written by `intaglio engrave`.\n#pragma once\n\n#include <intaglio/models/" + kind.name +
                    ".hpp>\n\n";
  out += "inline constexpr intaglio::decoder_config " + name + "_config{\n";
  const auto field = [&](std::string_view key, const std::string& value) {
    out += "    ." + std::string(key) + " = " + value + ",\n";
  };
  field("model_type", "intaglio::architecture::" + enumerator(c.model_type));
  field("hidden_size", std::to_string(c.hidden_size));
  field("intermediate_size", std::to_string(c.intermediate_size));
  field("num_hidden_layers", std::to_string(c.num_hidden_layers));
  field("num_attention_heads", std::to_string(c.num_attention_heads));
  field("num_key_value_heads", std::to_string(c.num_key_value_heads));
  field("head_dim", std::to_string(c.head_dim));
  field("vocab_size", std::to_string(c.vocab_size));
  field("max_position_embeddings", std::to_string(c.max_position_embeddings));
  rope_fields(c, field);
  if (c.no_rope_layer_interval != 0) field("no_rope_layer_interval", std::to_string(c.no_rope_layer_interval));
  field("rms_norm_eps", number(c.rms_norm_eps));
  field("hidden_act", "intaglio::activation::" + std::string(enumerator(c.hidden_act)));
  field("tie_word_embeddings", c.tie_word_embeddings ? "true" : "false");
  if (c.ternary) field("ternary", "true");
  if (is_ternary(c)) field("activation_type", "intaglio::dtype::" + std::string(intaglio::name(c.activation_type)));
  if (c.sliding_window != 0) field("sliding_window", std::to_string(c.sliding_window));
  if (c.sliding_window_pattern != 0) field("sliding_window_pattern", std::to_string(c.sliding_window_pattern));
  if (c.rope_local_base_freq != 0) field("rope_local_base_freq", number(c.rope_local_base_freq));
  if (c.query_pre_attn_scalar != 0) field("query_pre_attn_scalar", std::to_string(c.query_pre_attn_scalar));
  if (c.embedding_multiplier != 1.f) field("embedding_multiplier", number(c.embedding_multiplier));
  if (c.attention_multiplier != 0.f) field("attention_multiplier", number(c.attention_multiplier));
  if (c.residual_multiplier != 1.f) field("residual_multiplier", number(c.residual_multiplier));
  if (c.logits_scaling != 1.f) field("logits_scaling", number(c.logits_scaling));
  if (c.attn_logit_softcapping != 0.f) field("attn_logit_softcapping", number(c.attn_logit_softcapping));
  if (c.final_logit_softcapping != 0.f) field("final_logit_softcapping", number(c.final_logit_softcapping));
  if (c.num_local_experts != 0)
    field("num_local_experts", std::to_string(c.num_local_experts)),
        field("num_experts_per_tok", std::to_string(c.num_experts_per_tok));
  layer_fields(c, field);
  last_fields(c, field);
  out += "};\nstruct " + name + " : intaglio::models::" + kind.name + "<" + name + "_config" + kind.arguments +
         "> {\n  static constexpr std::string_view name = \"" + name + "\";\n" + held_text(kind.types) + "};\n";
  return out;
}

std::string list_text(const std::string& name) {
  return "// The models of the tool in bin/, written by `intaglio engrave`.\n#pragma once\n\n#include \"" + name +
         ".hpp\"\n#include <named_model.hpp>\n\n#include <intaglio/models/bitnet_b158.hpp>\n\n#include "
         "<tuple>\n\ninline constexpr std::tuple engraved_models{\n    "
         "intaglio::tool::named_model<" +
         name + ">{},\n    intaglio::tool::named_model<intaglio::models::fable>{},\n};\n";
}

void write_file(const fs::path& path, std::string_view text) {
  io::atomic_file file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

/// Where the tool's sources are, and its compiled ones where there are such.
struct tool_home {
  fs::path sources, archive;
};

/// The tool's sources: in the tree that INTAGLIO_SOURCE names, else beside this program, in DIR/share/intaglio/tool for
/// DIR/bin/intaglio. Installations, build folders and what engrave makes are all laid out so.
tool_home find_home() {
  std::error_code failure;
  const char* const chosen = std::getenv("INTAGLIO_SOURCE");
  if (chosen != nullptr && *chosen != '\0') {
    const fs::path sources = platform::path_of(chosen) / "examples" / "tool";
    if (!fs::exists(sources / "CMakeLists.txt", failure))
      throw input_error(printable(chosen, 240) +
                        ": INTAGLIO_SOURCE: expected the sources of intaglio, found no examples/tool/CMakeLists.txt");
    return {fs::canonical(sources), {}};
  }
  const fs::path program = platform::own_program(), top = program.parent_path().parent_path(),
                 sources = top / "share" / "intaglio" / "tool", archive = top / "lib" / "intaglio";
  if (program.empty() || !fs::exists(sources / "CMakeLists.txt", failure))
    throw input_error(
        printable(sources.string(), 240) +
        ": expected the tool's sources beside this program, found no CMakeLists.txt; install intaglio whole, or set "
        "INTAGLIO_SOURCE to its source tree");
  return {fs::canonical(sources), fs::exists(archive, failure) ? fs::canonical(archive, failure) : fs::path{}};
}

/// Lays the folder out as an installation, so that the tool made there can engrave too.
void link_home(const tool_home& home, const fs::path& directory) {
  std::error_code failure;
  const auto link = [&](const fs::path& to, const fs::path& link_path) {
    fs::create_directories(link_path.parent_path(), failure);
    if (fs::is_symlink(link_path, failure)) fs::remove(link_path, failure);
    if (!fs::exists(link_path, failure)) fs::create_directory_symlink(to, link_path, failure);
    if (failure)
      throw file_error(link_path.string(), std::nullopt,
                       "cannot link to " + printable(to.string(), 240) + ": " + failure.message());
  };
  link(home.sources, directory / "share" / "intaglio" / "tool");
  if (!home.archive.empty()) link(home.archive, directory / "lib" / "intaglio");
}

/// Runs one step of the build; the log keeps every line, the bar follows ninja's "[3/12]".
void run_step(const std::vector<std::string>& command, const fs::path& log_path, const char* label) {
  std::ofstream log(log_path, std::ios::app);
  std::vector<std::string> last;
  progress_bar bar(label);
  bar.show(0, "");
  const int status = run_program(command, [&](const std::string& line) {
    log << line << '\n';
    last.push_back(line);
    if (last.size() > 400) last.erase(last.begin(), last.begin() + 200);
    unsigned done = 0, all = 0;
    if (line.size() < 4 || line[0] != '[') return;
    const auto [slash, first] = std::from_chars(line.data() + 1, line.data() + line.size(), done);
    if (first != std::errc{} || slash == line.data() + line.size() || *slash != '/') return;
    const auto [end, second] = std::from_chars(slash + 1, line.data() + line.size(), all);
    if (second == std::errc{} && all != 0)
      bar.show(static_cast<double>(done) / all, std::to_string(done) + " of " + std::to_string(all) + " steps");
  });
  bar.clear();
  if (status == 0) return;
  std::string text =
      printable(log_path.string(), 240) + ": " + command.front() + " ended with status " + std::to_string(status);
  const auto wrong = std::find_if(last.begin(), last.end(),
                                  [](const std::string& line) { return line.find("error") != std::string::npos; });
  std::size_t shown = 0;
  for (auto line = wrong == last.end() && last.size() > 12 ? last.end() - 12
                   : wrong == last.end()                   ? last.begin()
                                                           : wrong;
       line != last.end() && shown < 12; ++line, ++shown)
    text += "\n  " + printable(*line, 300);
  throw input_error(text);
}

}  // namespace

void engrave(const engrave_options& options) {
  const io::checkpoint model = open_model({options.file, "block128"});
  if (model.packed() != nullptr)
    throw file_error(model.path(), 0, "packed file",
                     "the model that it was packed from: the tool that packed it runs it", "weights of plans");
  const families::weight_types types = computed_types(model, options.codec);
  model_template kind = template_of(model, types, options.codec);
  kind.types = types;
  fs::path base = platform::path_of(options.file);
  if (!base.has_filename()) base = base.parent_path();
  const std::string name = identifier_of(!options.name.empty()         ? options.name
                                         : base.extension() == ".gguf" ? base.stem().string()
                                                                       : base.filename().string());
  const tool_home home = find_home();
  const fs::path directory = fs::absolute(options.directory.empty() ? fs::path("engraved") / platform::path_of(name)
                                                                    : platform::path_of(options.directory));
  std::error_code failure;
  fs::create_directories(directory / "bin", failure);
  if (failure) throw file_error(directory.string(), std::nullopt, "cannot make the folder: " + failure.message());
  write_file(directory / platform::path_of(name + ".hpp"),
             header_text(model.config(), kind, name, base.filename().string()));
  write_file(directory / "engraved_models.hpp", list_text(name));
  note("wrote " + printable((directory / platform::path_of(name + ".hpp")).string(), 240));

  const fs::path build = directory / "build", log = directory / "build.log";
  fs::remove(log, failure);
  std::vector<std::string> configure{"cmake",
                                     "-S",
                                     home.sources.string(),
                                     "-B",
                                     build.string(),
                                     "-DCMAKE_BUILD_TYPE=Release",
                                     "-DINTAGLIO_ENGRAVED_HEADER=" + (directory / "engraved_models.hpp").string(),
                                     "-DINTAGLIO_TOOL_ARCHIVE=" + home.archive.string()};
  if (std::getenv("CXX") == nullptr && fs::exists(INTAGLIO_CXX_COMPILER, failure))
    configure.push_back(std::string("-DCMAKE_CXX_COMPILER=") + INTAGLIO_CXX_COMPILER);
  if (platform::program_exists("ninja")) configure.insert(configure.end(), {"-G", "Ninja"});
  if (platform::program_exists("ccache")) configure.emplace_back("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache");
  if (!platform::program_exists("cmake"))
    throw input_error(
        "cmake: expected it on the PATH to build the tool, found none (Debian, Ubuntu: apt install cmake ninja-build "
        "g++)");
  run_step(configure, log, "configuring");
  run_step({"cmake", "--build", build.string(), "--target", "intaglio", "--parallel"}, log, "engraving");

  const fs::path result = directory / "bin" / "intaglio", made = build / "bin" / "intaglio";
  const fs::path partial = directory / "bin" / ".intaglio.partial";
  fs::copy_file(made, partial, fs::copy_options::overwrite_existing, failure);
  if (!failure) fs::rename(partial, result, failure);
  if (failure) throw file_error(result.string(), std::nullopt, "cannot write: " + failure.message());
  link_home(home, directory);
  print_line(result.string());
  note("try: " + result.string() + " run --model " + printable(options.file, 240) +
       (options.codec.empty() ? "" : " --codec " + options.codec) + " --prompt \"Once upon a time\"");
}

}  // namespace intaglio::tool
