// SPDX-License-Identifier: MIT
// Opens a Hugging Face folder as a checkpoint: config.json, safetensors or PyTorch's files (single or sharded),
// tokenizer.json or tokenizer.model.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/fused_tensors.hpp"
#include "intaglio/io/hf_config.hpp"
#include "intaglio/io/hf_modules.hpp"
#include "intaglio/io/hf_names.hpp"
#include "intaglio/io/hf_tokenizer.hpp"
#include "intaglio/io/joined_experts.hpp"
#include "intaglio/io/original_names.hpp"
#include "intaglio/io/safetensors_model.hpp"
#include "intaglio/io/sentencepiece_model.hpp"
#include "intaglio/io/tiktoken_list.hpp"
#include "intaglio/io/torch_model.hpp"
#include "intaglio/io/xielu_parameters.hpp"

namespace intaglio::io {

/// Adds the tensors of a folder to a builder, under GGUF's names.
class hf_tensor_collector {
 public:
  hf_tensor_collector(checkpoint_builder& builder, const hf_config& config)
      : builder_(builder), config_(config), xielu_(config.config.num_hidden_layers) {}

  /// Notes the head of an encoder that gives one number. It is read; other heads are not.
  void has_score(score_layers head) { score_ = head; }

  /// @param tensor of a safetensors_file or a torch_file
  [[gnu::cold]] void add(const folder_tensor& tensor, const mapped_file* file) {
    if (is_unread(tensor.name)) return;
    if (family_of(config_.config.model_type).encoder) {
      if (is_position_list(tensor.name)) return;
      if (is_encoder_head(tensor.name) && !is_score_head(tensor.name, score_)) {
        ++heads_;
        return;
      }
    }
    const std::string shown = printable(tensor.name, 100);
    if (is_parameter(tensor, file)) return;
    if (family_of(config_.config.model_type).block_biases)
      if (const auto at = tensor.name.find(own_experts); at != std::string::npos)
        return add_all_experts(tensor, file, tensor.name.substr(0, at), tensor.name.substr(at + own_experts.size()));
    if (config_.config.num_local_experts != 0)
      for (const std::string_view experts : expert_folders)
        if (const auto expert = expert_of(tensor.name, layers_of_experts(experts), experts))
          return add_expert(tensor, file, *expert);
    const auto name = gguf_name(tensor.name, config_.config.model_type);
    if (!name) return builder_.fault("not part of the model: " + shown);
    if (!tensor.type)
      return builder_.fault("type of " + shown + ": found " + std::string(tensor.stored_type) + ", which is not read");
    if (name->ends_with(".weight_scale")) return add_scale(tensor, file, *name);
    if (tensor.shape.size() == 3 && tensor.shape[1] == 1 && tensor.bytes != 0 && is_taps(*name))
      return add_taps(tensor, file, *name);
    const bool all_experts = name->ends_with("_exps.weight");
    if (tensor.shape.empty() || tensor.shape.size() > (all_experts ? 3 : 2) || tensor.bytes == 0)
      return builder_.fault("shape of " + shown + ": expected 1 or 2 dimensions above 0, found " +
                            shape_text(tensor.shape));
    if (tensor.shape.size() == 3 && !tensor.contiguous())
      return builder_.fault("strides of " + shown + ": expected those of elements in a row");
    if (all_experts && add_transposed_experts(tensor, file, *name)) return;
    checkpoint_tensor out;
    out.stored_name = tensor.name;
    out.dimensions = static_cast<std::uint32_t>(tensor.shape.size());
    // ERNIE 4.5's files hold this vector as a matrix of one row.
    if (name->ends_with(".exp_probs_b.bias") && tensor.shape.front() == 1) out.dimensions = 1;
    const bool packed = *tensor.type == dtype::u8 && is_ternary(config_.config) && out.dimensions == 2;
    // A row of bytes holds four rows of codes.
    out.stored = {*name,
                  *tensor.type,
                  out.dimensions == 3   ? tensor.shape[0] * tensor.shape[1]
                  : out.dimensions == 2 ? tensor.shape[0] * (packed ? 4 : 1)
                                        : 1,
                  tensor.shape.back(),
                  file,
                  tensor.offset,
                  tensor.bytes};
    set_pieces(out, pieces_of(tensor, file), family_of(config_.config.model_type));
    if (*name == "position_embd.weight" && !skip_positions(out)) return;
    out.negative_exp = name->ends_with(".ssm_a");
    if (name->ends_with("norm.weight") && !name->ends_with(".ssm_norm.weight"))
      out.addend = family_of(config_.config.model_type).hf_norm_addend;
    add_parts(builder_, std::move(out), [&](checkpoint_tensor& part) { note_order(part); });
  }

  [[gnu::cold]] void finish() {
    for (auto& [name, parts] : experts_) {
      if (parts.pieces.size() != config_.config.num_local_experts)
        builder_.fault("experts of " + printable(name, 100) + ": expected " +
                       std::to_string(config_.config.num_local_experts) + ", found " +
                       std::to_string(parts.pieces.size()));
      else builder_.add(std::move(parts));
    }
    for (auto& [name, parts] : split_experts_) {
      if (parts.stored.file == nullptr || !parts.split || parts.split->scales == nullptr)
        builder_.fault("experts of " + printable(name, 100) + ": expected blocks and scales, found one of them");
      else builder_.add(std::move(parts));
    }
    if (config_.config.hidden_act == activation::xielu) xielu_.finish(builder_);
    if (heads_ != 0)
      builder_.warn(std::to_string(heads_) + " tensors of heads are not read: embeddings are made of states");
    if (drafts_ != 0) builder_.warn(draft_warning(drafts_));
    if (vision_ != 0) builder_.warn(std::to_string(vision_) + " tensors of the vision model are not read");
    for (const auto& [owner, found] : scales_) {
      checkpoint_tensor* matrix = builder_.find(owner);
      if (matrix == nullptr || matrix->stored.type != dtype::u8)
        builder_.fault("a scale without its packed matrix: " + printable(found.name, 100));
      else matrix->packed_scale = found.value;
    }
    for (const tensor_rule& rule : tensor_rules(config_.config)) {
      checkpoint_tensor* const tensor = builder_.find(rule.name);
      if (tensor == nullptr) continue;
      tensor->factors = factors_of(config_.factors, rule.name);
      if (tensor->stored.type == dtype::u8 && !tensor->packed_scale)
        builder_.fault("missing: " + printable(tensor->stored_name, 100) + "_scale");
    }
  }

 private:
  /// Counts tensors that are named in warnings and not read. Buffers are not counted.
  bool is_unread(std::string_view name) {
    if (has_rotary_tables(family_of(config_.config.model_type), config_.model_type) && is_rotary_table(name))
      return true;
    const bool vision = is_vision_name(name),
               draft = is_draft_name(name, "model.layers.", config_.config.num_hidden_layers, config_.draft_layers) ||
                       (family_of(config_.config.model_type).moe_keys && is_draft_head(name));
    vision_ += vision;
    drafts_ += draft;
    return vision || draft || is_decoder_buffer(name, family_of(config_.config.model_type));
  }
  /// Notes the order of the rows of a tensor of q or k.
  void note_order(checkpoint_tensor& part) const {
    const decoder_config& c = config_.config;
    const family& of = family_of(c.model_type);
    if (of.latent) {
      part.rows_in_pairs = config_.rotated_halves ? 0 : c.rotary_dim;
      return;
    }
    if (c.rotary_dim == 0 && !of.hf_rows_in_pairs) return;
    part.rows_in_pairs = c.head_dim, part.rotary_dim = c.rotary_dim;
    part.neighbours = part.rotary_dim != 0 && of.hf_rows_in_pairs;
  }
  /// Leaves out the rows of positions that no token has. @return false where there are no other rows, which is a fault
  bool skip_positions(checkpoint_tensor& table) {
    const std::uint64_t skipped = config_.position_offset;
    if (skipped == 0) return true;
    if (table.stored.rows <= skipped)
      return builder_.fault("shape of " + printable(table.stored_name, 100) + ": expected more than " +
                            std::to_string(skipped) + " rows, found " + std::to_string(table.stored.rows)),
             false;
    const std::uint64_t bytes = table.stored.bytes / table.stored.rows, element = info(table.stored.type).block_bytes;
    table.stored.rows -= skipped;
    table.stored.bytes -= skipped * bytes;
    if (table.pieces.empty()) table.stored.offset += skipped * bytes;
    for (tensor_piece& piece : table.pieces)
      piece.rows -= skipped, piece.offset += skipped * piece.row_stride * element;
    return true;
  }
  struct scale {
    std::string name;
    float value;
  };

  static bool is_taps(std::string_view name) {
    return name.ends_with(".shortconv.conv.weight") || name.ends_with(".ssm_conv1d.weight");
  }
  /// Adds a convolution of each channel separately, [channels, 1, taps].
  void add_taps(const folder_tensor& tensor, const mapped_file* file, const std::string& name) {
    if (!tensor.contiguous())
      return builder_.fault("strides of " + printable(tensor.name, 100) + ": expected those of elements in a row");
    checkpoint_tensor out;
    out.stored_name = tensor.name;
    out.stored = {name, *tensor.type, tensor.shape[0], tensor.shape[2], file, tensor.offset, tensor.bytes};
    builder_.add(std::move(out));
  }

  /// Adds one expert's matrix, [rows, columns], to the tensor that holds all of them.
  [[gnu::cold]] void add_expert(const folder_tensor& tensor, const mapped_file* file, const expert_name& name) {
    const std::string shown = printable(tensor.name, 100);
    const decoder_config& c = config_.config;
    const bool down = name.gguf.ends_with("ffn_down_exps.weight");
    const std::uint64_t rows = down ? c.hidden_size : c.intermediate_size,
                        columns = down ? c.intermediate_size : c.hidden_size;
    if (name.number >= c.num_local_experts) return builder_.fault("not part of the model: " + shown);
    if (!tensor.type || info(*tensor.type).block_elements != 1)
      return builder_.fault("type of " + shown + ": found " + std::string(tensor.stored_type) + ", which is not read");
    if (tensor.shape.size() != 2 || tensor.shape[0] != rows || tensor.shape[1] != columns)
      return builder_.fault("shape of " + shown + ": expected [" + std::to_string(rows) + ", " +
                            std::to_string(columns) + "], found " + shape_text(tensor.shape));
    checkpoint_tensor& all = experts_[name.gguf];
    if (all.pieces.empty()) {
      all.stored_name = name.gguf;
      all.dimensions = 3;
      all.stored = {name.gguf,
                    *tensor.type,
                    rows * c.num_local_experts,
                    columns,
                    file,
                    tensor.offset,
                    row_bytes(*tensor.type, columns) * rows * c.num_local_experts};
    }
    if (all.stored.type != *tensor.type)
      return builder_.fault("type of " + shown + ": expected that of the other experts, " +
                            std::string(intaglio::name(all.stored.type)) + ", found " +
                            std::string(tensor.stored_type));
    tensor_piece piece{.file = file, .offset = tensor.offset, .rows = rows, .columns = columns, .row_stride = columns};
    if (const auto strided = pieces_of(tensor, file); !strided.empty()) piece = strided.front();
    piece.row0 = rows * name.number;
    for (const tensor_piece& other : all.pieces)
      if (other.row0 == piece.row0) return builder_.fault("twice in the model: " + shown);
    all.pieces.push_back(piece);
  }

  /// Adds a tensor that holds something of all experts of a layer: their biases, or their matrices, transposed or as
  /// MXFP4. The rows of gate and up alternate.
  /// @param layer "model.layers.3"  @param what "gate_up_proj_blocks"
  [[gnu::cold]] void add_all_experts(const folder_tensor& tensor, const mapped_file* file, const std::string& layer,
                                     std::string_view what) {
    constexpr std::string_view layers = "model.layers.";
    const std::string shown = printable(tensor.name, 100);
    const auto its = joined_experts::of(config_.config, what);
    if (!its || !layer.starts_with(layers)) return builder_.fault("not part of the model: " + shown);
    if (tensor.shape != its->shape() || (its->coded() && its->columns % 32 != 0))
      return builder_.fault("shape of " + shown + ": expected " + shape_text(its->shape()) + ", found " +
                            shape_text(tensor.shape));
    const bool plain = tensor.type && info(*tensor.type).block_elements == 1 && *tensor.type != dtype::u8;
    if (its->coded() ? tensor.type != dtype::u8 : !plain)
      return builder_.fault("type of " + shown + ": found " + std::string(tensor.stored_type) + ", which is not read");
    if (!tensor.contiguous()) return builder_.fault("strides of " + shown + ": expected those of elements in a row");
    for (std::uint64_t part = 0; part < its->parts; ++part) {
      const std::string name = its->name("blk." + layer.substr(layers.size()), part);
      if (its->coded()) add_coded_experts(tensor, file, *its, name, part);
      else builder_.add(its->plain_tensor(tensor, file, name, part));
    }
  }
  /// Adds matrices of all experts of a layer of a Qwen3-VL, whose files hold each transposed, and gate's in front of
  /// up's. @param name "blk.3.ffn_gate_up_exps.weight"  @return false for another model or shape
  [[gnu::cold]] bool add_transposed_experts(const folder_tensor& tensor, const mapped_file* file,
                                            std::string_view name) {
    if (!config_.model_type.starts_with("qwen3_vl_moe")) return false;
    auto its =
        joined_experts::of(config_.config, name.find(".ffn_down_exps.") == name.npos ? "gate_up_proj" : "down_proj");
    if (!its || tensor.shape != its->shape()) return false;
    its->alternating = false;
    for (std::uint64_t part = 0; part < its->parts; ++part)
      builder_.add(
          its->plain_tensor(tensor, file, its->name(std::string(name.substr(0, name.find(".ffn_"))), part), part));
    return true;
  }
  /// Notes the codes or the scales of a matrix in MXFP4, which are two tensors of a folder.
  void add_coded_experts(const folder_tensor& tensor, const mapped_file* file, const joined_experts& its,
                         const std::string& name, std::uint64_t part) {
    checkpoint_tensor& all = split_experts_[name];
    if (!all.split) all.split.emplace();
    all.split->row0 = part, all.split->row_step = its.parts;
    if (its.scales) {
      all.split->scales = file, all.split->scales_offset = tensor.offset;
      return;
    }
    all.stored_name = tensor.name;
    all.dimensions = 3;
    all.stored = {name, dtype::mxfp4,  its.experts * its.rows,  its.columns,
                  file, tensor.offset, tensor.bytes / its.parts};
  }

  /// Notes a parameter of xIELU. @return whether the tensor is one
  bool is_parameter(const folder_tensor& tensor, const mapped_file* file) {
    const auto at = config_.config.hidden_act == activation::xielu ? xielu_number_of(tensor.name) : std::nullopt;
    if (!at) return false;
    if (const auto value = number_of(tensor, file, "parameter"); value && !xielu_.note(*at, *value))
      builder_.fault("not part of the model: " + printable(tensor.name, 100));
    return true;
  }
  /// Reads a tensor of one number; absent after a fault. @param what it is, for messages
  std::optional<float> number_of(const folder_tensor& tensor, const mapped_file* file, std::string_view what) {
    const bool one = tensor.shape.empty() || (tensor.shape.size() == 1 && tensor.shape[0] == 1);
    const bool plain =
        tensor.type && (*tensor.type == dtype::f32 || *tensor.type == dtype::f16 || *tensor.type == dtype::bf16);
    if (!one || !plain) {
      builder_.fault(std::string(what) + " " + printable(tensor.name, 100) + ": expected one f32, f16 or bf16, found " +
                     std::string(tensor.stored_type) + " " + shape_text(tensor.shape));
      return std::nullopt;
    }
    std::array<std::byte, 4> bytes{};
    const auto stored = std::span(bytes).first(info(*tensor.type).block_bytes);
    file->read(tensor.offset, stored);
    float value = 0.f;
    decode_row(*tensor.type, stored, {&value, 1});
    return value;
  }

  void add_scale(const folder_tensor& tensor, const mapped_file* file, const std::string& name) {
    const std::optional<float> read = number_of(tensor, file, "scale");
    if (!read) return;
    const float value = *read;
    const float multiplier = config_.scale_divides ? 1.f / value : value;
    if (!(value > 0.f) || !std::isfinite(value) || !std::isfinite(multiplier))
      throw file_error(file->path(), tensor.offset, "tensor '" + printable(tensor.name, 70) + "'",
                       "a finite number above 0", number_text(value));
    scales_.emplace_back(name.substr(0, name.size() - std::string_view("_scale").size()),
                         scale{tensor.name, multiplier});
  }

  checkpoint_builder& builder_;
  const hf_config& config_;
  std::map<std::string, checkpoint_tensor> split_experts_;  ///< as experts_, for MXFP4
  std::map<std::string, checkpoint_tensor> experts_;        ///< by GGUF's name, as far as their parts were read
  std::vector<std::pair<std::string, scale>> scales_;
  xielu_collector xielu_;
  std::size_t vision_ = 0, heads_ = 0, drafts_ = 0;
  score_layers score_ = score_layers::none;
};

/// Gives the files of weights to the builder, which keeps them open.
template <class File>
[[gnu::cold]] std::vector<const mapped_file*> adopt_files(weight_files<File> model, checkpoint_builder& builder) {
  std::vector<const mapped_file*> files;
  for (File& file : std::move(model).release_files()) {
    if constexpr (requires { file.members(); }) {
      const auto members = file.members();
      files.push_back(builder.adopt(std::move(file).release_file()));
      builder.checksums(files.back(), members);
    } else {
      files.push_back(builder.adopt(std::move(file).release_file()));
    }
  }
  return files;
}

/// Adds the matrix of a product after the last norm. @param number 2 for the first one
template <class File>
[[gnu::cold]] void collect_dense_module(weight_files<File> model, std::size_t number, checkpoint_builder& builder,
                                        const hf_config& config) {
  std::vector<typename File::tensor> tensors = model.tensors();
  const auto files = adopt_files(std::move(model), builder);
  hf_tensor_collector collector(builder, config);
  for (auto& tensor : tensors) {
    tensor.name = std::to_string(number) + "_Dense." + tensor.name;
    collector.add(tensor, files[tensor.file]);
  }
}

/// Finds norms in front of single matrices. No key of bitnet-embedding's config.json states them: its matrices are
/// BitLinear's, ternary with int8 inputs.
template <class Tensor>
[[gnu::cold]] void note_projection_norms(const std::vector<Tensor>& tensors, checkpoint_builder& builder,
                                         decoder_config& config) {
  if (!family_of(config.model_type).may_be_ternary || config.projection_norm_eps != 0 ||
      std::none_of(tensors.begin(), tensors.end(),
                   [](const Tensor& each) { return each.name.ends_with("layers.0.self_attn.q_proj.norm.weight"); }))
    return;
  config.projection_norm_eps = config.rms_norm_eps;
  if (config.ternary) return;
  config.ternary = true;
  config.activation_type = dtype::i8;
  builder.warn("matrices have norms of their own: they are computed as BitNet's, ternary and with int8 inputs");
}

/// Adds the weights of one form to the builder, and what they say about the head.
template <class File>
[[gnu::cold]] void collect_hf_weights(weight_files<File> model, checkpoint_builder& builder, hf_config& config) {
  const std::vector<typename File::tensor> tensors = model.tensors();
  const bool has_head = std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    return gguf_name(tensor.name, config.config.model_type) == "output.weight";
  });
  const bool encodes = family_of(config.config.model_type).encoder;  // encoders have no head, whatever the config says
  config.config.tie_word_embeddings = encodes || config.tie_word_embeddings.value_or(!has_head);
  // An embedding model is stored without a head, whatever its config says (Qwen3-Embedding-8B).
  const bool headless = !has_head && !encodes && std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.name == "embed_tokens.weight";
  });
  if (headless && !config.config.tie_word_embeddings) {
    config.config.tie_word_embeddings = true;
    builder.warn(
        "the model has no head: its embedding is used as the head, and only its embeddings of texts are useful");
  }
  note_projection_norms(tensors, builder, config.config);
  builder.config() = config.config;
  for (const std::string& line : model.warnings()) builder.add_warning(line);
  const auto files = adopt_files(std::move(model), builder);
  hf_tensor_collector collector(builder, config);
  for (const auto& tensor : tensors)
    if (family_of(config.config.model_type).learned_positions && tensor.shape.size() == 2 && tensor.shape[0] == 1) {
      if (tensor.name == "classifier.weight") collector.has_score(score_layers::pooler_and_classifier);
      if (tensor.name == "classifier.out_proj.weight") collector.has_score(score_layers::classifier);
    }
  for (const auto& tensor : tensors) collector.add(tensor, files[tensor.file]);
  collector.finish();
}

/// Reads the tokenizer of a folder, where it has one; vocab_size must be known. @throws file_error
[[gnu::cold]] inline void read_folder_vocabulary(const std::filesystem::path& folder, checkpoint_builder& builder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / "tokenizer.json", ignored)) {
    builder.vocabulary() = vocabulary_from_hf_directory(folder);
  } else if (std::filesystem::exists(folder / "tokenizer.model", ignored)) {
    const mapped_file file(folder / "tokenizer.model");
    std::string begin(static_cast<std::size_t>((std::min<std::uint64_t>)(file.size(), 256)), '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    builder.vocabulary() = is_tiktoken_list(begin) ? vocabulary_from_tiktoken_file(folder / "tokenizer.model")
                                                   : vocabulary_from_sentencepiece_file(folder / "tokenizer.model");
    builder.vocabulary()->architecture = builder.stated_architecture();
    hf::read_config(folder, hf::vocabulary_form::model, *builder.vocabulary());
    hf::read_model_config(folder, *builder.vocabulary());
  } else {
    builder.warn("neither tokenizer.json nor tokenizer.model in this folder");
    return;
  }
  if (const auto& vocabulary = builder.vocabulary(); vocabulary->tokens.size() > builder.config().vocab_size)
    throw file_error(vocabulary->source, std::nullopt, "more tokens than the embedding has rows",
                     "at most " + std::to_string(builder.config().vocab_size),
                     std::to_string(vocabulary->tokens.size()));
}

/// The pooling of sentence-transformers, from its module's config.json. Where it differs from what this library can do,
/// `builder` gets a warning. @throws file_error: malformed
[[gnu::cold]] inline std::optional<pooling> folder_pooling(const std::filesystem::path& folder,
                                                           checkpoint_builder& builder) {
  const auto path = pooling_folder(folder) / "config.json";
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return std::nullopt;
  strict_json document(path.string());
  document.read_file(path);
  const located_json root(document.path(), "", &document.root());
  if (!root.is_object()) document.refuse("config.json of Pooling", "a JSON object", document.root().type_name());
  constexpr std::string_view prefix = "pooling_mode_";
  std::vector<std::string> modes;
  for (const std::string& key : root.keys())
    if (key.starts_with(prefix) && root[key.c_str()].boolean_or(false)) modes.push_back(key.substr(prefix.size()));
  if (root["pooling_mode"].present()) modes.push_back(root["pooling_mode"].text());
  const std::string mode = modes.size() == 1 ? modes.front() : "";
  if (mode == "lasttoken") return pooling::last;
  if (mode == "mean_tokens" || mode == "mean") return pooling::mean;
  if (mode == "cls_token" || mode == "cls") return pooling::first;
  std::string list;
  for (const std::string& each : modes) list += (list.empty() ? "" : ", ") + printable(each, 40);
  builder.add_warning(in_file(path.string(), "expected one of lasttoken, mean_tokens and cls_token, found " +
                                                 (list.empty() ? std::string("none") : list) +
                                                 ": embeddings are of the last token unless another way is asked for"));
  return std::nullopt;
}

inline checkpoint checkpoint::open_hf(const std::filesystem::path& folder, const checkpoint_options& options) {
  checkpoint_builder builder(folder.string(), options);
  hf_config config = read_hf_config(folder / "config.json");
  builder.stated_architecture() = config.model_type;
  const std::vector<dense_module> dense = read_modules(folder, config.config, config.warnings);
  judge_sentence_keys(folder, config.config, config.warnings);
  for (const std::string& line : config.warnings) builder.add_warning(line);
  if (const auto path = folder / "generation_config.json"; std::filesystem::exists(path))
    for (const std::string& line : read_generation_config(path).warnings) builder.add_warning(line);
  if (std::filesystem::exists(folder / "adapter_config.json"))
    builder.warn("the adapter beside the model, of adapter_config.json, is not applied");
  for (const char* each : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"})
    if (std::filesystem::exists(folder / each))
      builder.warn(std::string(each) + " is not read: weights are computed as they are stored");
  if (config.states_biases) builder.biases_stated();
  builder.config() = config.config;
  builder.pooling() = folder_pooling(folder, builder);
  read_folder_vocabulary(folder, builder);
  if (!options.weights.empty() && options.weights_are_torch)
    collect_hf_weights(torch_model::open_file(options.weights), builder, config);
  else if (!options.weights.empty()) collect_hf_weights(safetensors_model::open_file(options.weights), builder, config);
  else if (safetensors_model::are_in(folder)) collect_hf_weights(safetensors_model::open(folder), builder, config);
  else if (torch_model::are_in(folder)) collect_hf_weights(torch_model::open(folder), builder, config);
  else
    throw file_error(
        folder.string(), std::nullopt, "no weights in this folder",
        "model.safetensors, pytorch_model.bin or " + safetensors_model::index_name() + ", " + torch_model::index_name(),
        "none of them");
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const std::filesystem::path& where = dense[i].folder;
    if (torch_model::are_in(where) && !safetensors_model::are_in(where))
      collect_dense_module(torch_model::open(where), i + 2, builder, config);
    else collect_dense_module(safetensors_model::open(where), i + 2, builder, config);
  }
  return std::move(builder).finish();
}

}  // namespace intaglio::io
