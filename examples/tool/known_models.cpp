// SPDX-License-Identifier: MIT
#include "known_models.hpp"

#include <intaglio/models/gemma3.hpp>
#include <intaglio/models/llama.hpp>
#include <intaglio/models/mixtral.hpp>
#include <intaglio/plan/planned.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace intaglio::tool {
namespace {

/// From the coarsest to the finest.
constexpr std::array codecs{dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k,
                            dtype::q8_0, dtype::bf16, dtype::f16,  dtype::f32};

/// Longer contexts have to be engraved: a cache for 131,072 positions takes 16 GB.
constexpr std::uint32_t most_context = 16'384;

struct known {
  std::string_view name;
  const decoder_config* config;
  plan::planned (*plan)(dtype codec, const plan::profile& target, shape_rule shape, plan::ffn_form form);
};

template <template <dtype> class Model, std::size_t... I>
plan::planned plan_in(dtype codec, const plan::profile& target, shape_rule shape, plan::ffn_form form,
                      std::index_sequence<I...>) {
  std::optional<plan::planned> out;
  const std::uint32_t context = std::min(Model<dtype::f16>::config.max_position_embeddings, most_context);
  const auto in = [&]<dtype W>() {
    if (codec == W)
      out = plan::planned::of<Model<W>>(
          target, context, shape == nullptr ? plan::batch_shape{} : shape(Model<W>::config, target, context), form);
  };
  (in.template operator()<codecs[I]>(), ...);
  return std::move(*out);
}
template <template <dtype> class Model>
constexpr known entry() {
  return {Model<dtype::f16>::name, &Model<dtype::f16>::config,
          [](dtype codec, const plan::profile& target, shape_rule shape, plan::ffn_form form) {
            return plan_in<Model>(codec, target, shape, form, std::make_index_sequence<codecs.size()>{});
          }};
}

constexpr std::array all{entry<models::mistral_7b>(),  entry<models::mistral_7b_v01>(), entry<models::llama_3_8b>(),
                         entry<models::llama_31_8b>(), entry<models::llama_32_1b>(),    entry<models::stories260k>(),
                         entry<models::gemma3_270m>(), entry<models::gemma3_1b>(),      entry<models::gemma3_4b>(),
                         entry<models::mixtral_8x7b>()};

/// The two plans of a model and what they point to.
struct planned_model {
  plan::planned cpu, portable;
  engraved_model tables;
};

bool is_engravable(dtype type) { return std::find(codecs.begin(), codecs.end(), type) != codecs.end(); }

}  // namespace

dtype computed_in(dtype type) { return type == dtype::bcml1 ? dtype::q4_1 : type; }

std::vector<dtype> known_codecs() {
  std::vector<dtype> out(codecs.begin(), codecs.end());
  out.push_back(dtype::bcml1);
  return out;
}

std::vector<std::string_view> known_models() {
  std::vector<std::string_view> out;
  for (const known& each : all) out.push_back(each.name);
  return out;
}

const engraved_model* known_model(std::string_view name, dtype codec, shape_rule shape) {
  static std::map<std::tuple<std::string_view, dtype, std::uintptr_t>, planned_model> made;
  codec = computed_in(codec);
  const auto found = std::find_if(all.begin(), all.end(), [&](const known& each) { return each.name == name; });
  if (found == all.end() || !is_engravable(codec)) return nullptr;
  const auto by = reinterpret_cast<std::uintptr_t>(shape);
  if (const auto before = made.find({found->name, codec, by}); before != made.end()) return &before->second.tables;
  planned_model plans{
      found->plan(codec, plan::profiles::cpu, shape, {}), found->plan(codec, plan::profiles::portable, shape, {}), {}};
  plans.tables = {found->name, plans.cpu.table(), plans.portable.table(),
                  [found, codec, shape](const plan::profile& target, plan::ffn_form form) {
                    return found->plan(codec, target, form.traced == 0 && !form.walk ? shape : nullptr,
                                       form);  // a batch walks nothing and keeps no trace
                  }};
  return &made.emplace(std::tuple{found->name, codec, by}, std::move(plans)).first->second.tables;
}

const engraved_model* known_model_of(const io::checkpoint& file) {
  for (const known& each : all)
    if (file.differences(*each.config).empty()) return known_model(each.name, codecs_of_file(file).layers);
  return nullptr;
}

engraving_codecs codecs_of_file(const io::checkpoint& file) {
  engraving_codecs out;
  if (file.packed() != nullptr) {
    out.layers = out.embedding = out.head = dtype_from_name(file.packed()->codec).value_or(dtype::f16);
    return out;
  }
  std::size_t finest = 0, seen = 0;
  bool any = false;
  for (const auto& tensor : file.tensors()) {
    const dtype stored = computed_in(tensor.stored.type), type = is_engravable(stored) ? stored : dtype::f16;
    const auto rank = static_cast<std::size_t>(std::find(codecs.begin(), codecs.end(), type) - codecs.begin());
    if (tensor.stored.name.ends_with(".ffn_gate_inp.weight")) continue;  // the router's is f32 whatever the others are
    if (tensor.stored.name == "token_embd.weight") out.embedding = out.head = type;
    else if (tensor.stored.name == "output.weight") out.head = type;
    else if (tensor.role == io::tensor_role::matrix && !any) any = true, finest = seen = rank;
    else if (tensor.role == io::tensor_role::matrix)
      out.mixed = out.mixed || rank != seen, finest = std::max(finest, rank);
  }
  if (any) out.layers = codecs[finest];
  return out;
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
