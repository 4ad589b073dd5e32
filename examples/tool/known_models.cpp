// SPDX-License-Identifier: MIT
#include "known_models.hpp"

#include <intaglio/io/codec_encode.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <list>

namespace intaglio::tool {
namespace {

/// More is planned where --context asks for it.
constexpr std::uint32_t most_context = 16'384;

struct known {
  std::string_view name;
  const decoder_config* config;
};
template <template <dtype> class Model>
constexpr known entry() {
  return {Model<dtype::f16>::name, &Model<dtype::f16>::config};
}

constexpr std::array all{
    entry<models::mistral_7b>(),    entry<models::mistral_7b_v01>(),  entry<models::llama_3_8b>(),
    entry<models::llama_31_8b>(),   entry<models::llama_32_1b>(),     entry<models::stories260k>(),
    entry<models::gemma3_270m>(),   entry<models::gemma3_1b>(),       entry<models::gemma3_4b>(),
    entry<models::mixtral_8x7b>(),  entry<models::qwen3_06b>(),       entry<models::qwen3_17b>(),
    entry<models::qwen3_4b>(),      entry<models::qwen3_8b>(),        entry<models::qwen3_30b_a3b>(),
    entry<models::qwen25_05b>(),    entry<models::qwen25_15b>(),      entry<models::qwen25_3b>(),
    entry<models::qwen25_7b>(),     entry<models::smollm3_3b>(),      entry<models::granite_33_2b>(),
    entry<models::granite_33_8b>(), entry<models::granite_4_micro>(), entry<models::olmo2_1b>(),
    entry<models::olmo2_7b>(),      entry<models::phi_4>(),           entry<models::phi_4_mini>(),
    entry<models::phi_35_mini>()};

/// The two plans of a model, what they were made of and what points to them.
struct kept_plans {
  decoder_config config;
  families::weight_types types;
  std::string name;
  std::uint32_t context = 0;
  shape_rule shape = nullptr;
  std::optional<plan::planned> cpu, portable;
  engraved_model tables;
  plan::planned planned(const plan::profile& target, plan::ffn_form form) const {
    // A batch walks nothing and keeps no trace.
    const bool batched = shape != nullptr && form.traced == 0 && !form.walk;
    return families::planned_of(config, types, name, target, context,
                                batched ? shape(config, target, context) : plan::batch_shape{}, form);
  }
};

}  // namespace

std::vector<dtype> known_codecs() {
  std::vector<dtype> out(families::planned_codecs.begin(), families::planned_codecs.end());
  out.push_back(dtype::bcml1);
  return out;
}

std::vector<std::string_view> known_models() {
  std::vector<std::string_view> out;
  for (const known& each : all) out.push_back(each.name);
  return out;
}

std::uint32_t default_context(const decoder_config& config) {
  return std::min(config.max_position_embeddings, most_context);
}

const engraved_model& planned_model(const decoder_config& config, const families::weight_types& types,
                                    std::string_view name, std::uint32_t context, shape_rule shape) {
  static std::list<kept_plans> made;
  if (context == 0) context = default_context(config);
  if (context > config.max_position_embeddings)
    throw argument_error("--context", "at most " + std::to_string(config.max_position_embeddings) + " (the model's)",
                         std::to_string(context));
  for (const kept_plans& each : made)
    if (each.config == config && each.types == types && each.name == name && each.context == context &&
        each.shape == shape)
      return each.tables;
  std::list<kept_plans> fresh;  // joins the others when it is whole
  kept_plans& out = fresh.emplace_back(kept_plans{config, types, std::string(name), context, shape, {}, {}, {}});
  out.cpu = out.planned(plan::profiles::cpu, {});
  out.portable = out.planned(plan::profiles::portable, {});
  out.tables = {out.name, out.cpu->table(), out.portable->table(),
                [&out](const plan::profile& target, plan::ffn_form form) { return out.planned(target, form); }};
  made.splice(made.end(), fresh);
  return made.back().tables;
}

const engraved_model* known_model(std::string_view name, dtype codec) {
  codec = families::computed_in(codec);
  const auto found = std::find_if(all.begin(), all.end(), [&](const known& each) { return each.name == name; });
  if (found == all.end() || !families::is_planned(codec)) return nullptr;
  const dtype head = graph::head_type(codec, found->config->hidden_size);
  return &planned_model(*found->config, {codec, head, head}, found->name);
}

families::weight_types computed_types(const io::checkpoint& file, const std::string& codec) {
  families::weight_types out = families::types_of(file).types;
  if (codec.empty()) return out;
  const auto type = dtype_from_name(codec);
  const bool ternary = is_ternary(file.config());
  std::vector<dtype> known = known_codecs();
  if (ternary) known = {dtype::f16};
  std::string list;
  for (const dtype each : known) list += (list.empty() ? "" : ", ") + std::string(name(each));
  if (!type || std::find(known.begin(), known.end(), *type) == known.end())
    throw argument_error("--codec", ternary ? "f16, of a ternary model's embedding" : list,
                         "'" + printable(codec, 40) + "'");
  const dtype wanted = families::computed_in(*type);
  if (!ternary && !io::is_encodable(wanted) && (out.layers != wanted || !out.matrices.empty()))
    throw argument_error("--codec", "one that is written, of: " + io::encodable_types(),
                         "'" + codec + "', which is computed where the file has it");
  if (!ternary) out.layers = wanted, out.matrices.clear(), out.sets.clear();
  return out;
}

const engraved_model& planned_model_of(const io::checkpoint& file, std::uint32_t context, shape_rule shape,
                                       const std::string& codec) {
  const decoder_config& config = file.config();
  const families::weight_types types = computed_types(file, codec);
  const auto named =
      std::find_if(all.begin(), all.end(), [&](const known& each) { return file.differences(*each.config).empty(); });
  const std::string name = named != all.end() ? std::string(named->name)
                                              : std::filesystem::path(file.path()).lexically_normal().stem().string();
  return planned_model(config, types, name, context, shape);
}

std::optional<dtype> layer_codec(const plan::table& of) {
  constexpr std::array in_order{dtype::f16,  dtype::f32,  dtype::bf16, dtype::q8_0,
                                dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k};
  for (const plan::weight& each : of.weights)
    if (each.per_layer &&
        (each.layout == plan::weight_layout::matrix || each.layout == plan::weight_layout::row_groups))
      return in_order[static_cast<std::size_t>(each.codec)];
  return std::nullopt;
}

}  // namespace intaglio::tool
