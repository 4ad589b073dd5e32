// SPDX-License-Identifier: MIT
#include "known_models.hpp"

#include <intaglio/families/mixes.hpp>
#include <intaglio/families/published_models.hpp>
#include <intaglio/io/codec_encode.hpp>
#include <intaglio/platform/path_text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <list>
#include <mutex>

namespace intaglio::tool {
namespace {

/// More is planned where --context asks for it.
constexpr std::uint32_t most_context = 16'384;

/// The two plans of a model, the inputs of planning, and pointers to the plans.
struct kept_plans {
  decoder_config config;
  families::weight_types types;
  std::string name;
  cache_choice cache;  ///< with a context
  shape_rule shape;
  plan::adapter_room adapters;
  std::optional<plan::planned> cpu, portable;
  engraved_model tables;
  plan::planned planned(const plan::profile& target, plan::ffn_form form) const {
    // A batch walks nothing and keeps no trace.
    const bool batched = shape.of != nullptr && form.traced == 0 && !form.walk;
    plan::profile own = cache.type ? plan::with_cache(target, *cache.type) : target;
    if (own.long_prefill_tokens > cache.chunk && cache.chunk != 0) own.prefill_tokens = cache.chunk;
    return families::planned_of(config, types, name, own, cache.context,
                                batched ? shape.of(config, own, cache.context, shape.slot_count) : plan::batch_shape{},
                                form, adapters);
  }
};

}  // namespace

std::vector<dtype> known_codecs() {
  std::vector<dtype> out(families::planned_codecs.begin(), families::planned_codecs.end());
  out.push_back(dtype::bcml1);
  return out;
}

std::vector<dtype> known_codecs(std::string_view model) {
  const families::published_model* found = families::find_published_model(model);
  return found != nullptr && found->ternary() ? std::vector{dtype::f16} : known_codecs();
}

std::vector<std::string_view> known_models() {
  const auto engraved = [](std::string_view name) {
    return std::any_of(engraved_models().begin(), engraved_models().end(),
                       [&](const engraved_model& each) { return each.name == name; });
  };
  std::vector<std::string_view> out;
  for (const families::published_model& each : families::published_models)
    if (!each.ternary() || !engraved(each.name)) out.push_back(each.name);
  return out;
}

std::uint32_t default_context(const decoder_config& config) {
  return std::min(config.max_position_embeddings, most_context);
}

const engraved_model& planned_model(const decoder_config& config, const families::weight_types& types,
                                    std::string_view name, const cache_choice& asked, shape_rule shape,
                                    const plan::adapter_room& adapters) {
  static std::list<kept_plans> made;
  static std::mutex one_at_a_time;  // a server loads several models at once
  const std::lock_guard lock(one_at_a_time);
  cache_choice cache = asked;
  if (cache.context == 0) cache.context = default_context(config);
  if (cache.context > config.max_position_embeddings)
    throw argument_error("--context", "at most " + std::to_string(config.max_position_embeddings) + " (the model's)",
                         std::to_string(cache.context));
  for (const kept_plans& each : made)
    if (each.config == config && each.types == types && each.name == name && each.cache == cache &&
        each.shape == shape && each.adapters == adapters)
      return each.tables;
  std::list<kept_plans> fresh;  // joins the others when it is whole
  kept_plans& out =
      fresh.emplace_back(kept_plans{config, types, std::string(name), cache, shape, adapters, {}, {}, {}});
  out.cpu = out.planned(plan::profiles::cpu, {});
  out.portable = out.planned(plan::profiles::portable, {});
  out.tables = {out.name, out.cpu->table(), out.portable->table(),
                [&out](const plan::profile& target, plan::ffn_form form) { return out.planned(target, form); }};
  made.splice(made.end(), fresh);
  return made.back().tables;
}

const engraved_model* known_model(std::string_view name, std::optional<dtype> codec, const cache_choice& cache) {
  const families::published_model* found = families::find_published_model(name);
  if (found == nullptr) return nullptr;
  const dtype type = families::computed_in(codec.value_or(found->ternary() ? dtype::f16 : dtype::q8_0));
  if (!families::is_planned(type) || (found->ternary() && type != dtype::f16)) return nullptr;
  return &planned_model(*found->config, found->types(type), found->name, cache);
}

const engraved_model* known_mix(std::string_view name, std::string_view mix, const cache_choice& cache) {
  const families::published_model* found = families::find_published_model(name);
  if (found == nullptr || found->ternary()) return nullptr;
  const auto types = families::mix_of(*found->config, mix);
  return types ? &planned_model(*found->config, *types, found->name, cache) : nullptr;
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

const engraved_model& planned_model_of(const io::checkpoint& file, const cache_choice& cache, shape_rule shape,
                                       const std::string& codec, const plan::adapter_room& adapters) {
  const decoder_config& config = file.config();
  const families::weight_types types = computed_types(file, codec);
  std::string name = platform::path_of(file.path()).lexically_normal().stem().string();
  for (const families::published_model& each : families::published_models)
    if (file.differences(*each.config).empty()) {
      name = each.name;
      break;
    }
  return planned_model(config, types, name, cache, shape, adapters);
}

void require_decoder(const engraved_model& model) {
  if (family_of(model.config().model_type).encoder)
    throw argument_error("model", "a decoder, whose texts have a next token",
                         printable(model.name, 100) + ", an encoder (" + std::string(name(model.config().model_type)) +
                             "): `intaglio embed` gives its vectors");
}

std::optional<dtype> layer_codec(const plan::table& of) {
  for (const plan::weight& each : of.weights)
    if (each.per_layer &&
        (each.layout == plan::weight_layout::matrix || each.layout == plan::weight_layout::row_groups))
      return kernels::info(each.codec).type;
  return std::nullopt;
}

}  // namespace intaglio::tool
