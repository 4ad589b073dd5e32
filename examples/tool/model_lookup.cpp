// SPDX-License-Identifier: MIT
// Which model is meant: by its name and codec, or by a file's config.
#include "console.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"

#include <intaglio/families/mixes.hpp>
#include <intaglio/plan/bytes_moved.hpp>
#include <intaglio/runtime/choose_table.hpp>
#include <intaglio/runtime/packed_weights.hpp>
#include <intaglio/runtime/recoding.hpp>

#include <algorithm>
#include <vector>

namespace intaglio::tool {
namespace {

std::string codec_list(const std::vector<dtype>& codecs) {
  std::string out;
  for (const dtype each : codecs) out += (out.empty() ? "" : ", ") + std::string(name(each));
  return out;
}

/// Whether the file's weights are what the plans take as they are.
bool fits(const io::checkpoint& file, const engraved_model& plans, const std::string& codec) {
  if (file.packed() != nullptr)
    return runtime::holds_weights(*file.packed(), plans.cpu) || runtime::holds_weights(*file.packed(), plans.portable);
  const families::weight_types wanted = computed_types(file, codec);  // refuses a codec that there is not
  return wanted.matrices.empty() && layer_codec(plans.cpu).value_or(wanted.layers) == wanted.layers;
}

/// Whether plans have the cache that is asked for.
bool holds(const engraved_model& plans, const cache_choice& cache) {
  return (cache.context == 0 || cache.context == plans.cpu.context) &&
         (cache.chunk == 0 || std::min(cache.chunk, plans.portable.context) == plans.portable.prefill.max_tokens) &&
         (!cache.type || (*cache.type == plans.cpu.cache_element && *cache.type == plans.portable.cache_element));
}

/// The codecs of files whose matrices a plan's kernels take as they are on the device.
std::vector<dtype> codecs_of(const plan::table& of) {
  if (const auto one = layer_codec(of))
    return *one == dtype::q4_1 ? std::vector<dtype>{*one, dtype::bcml1} : std::vector<dtype>{*one};
  return {dtype::i2_s, dtype::tq1_0, dtype::tq2_0};
}

}  // namespace

cache_choice cache_of(std::uint32_t context, std::string_view type) {
  std::string known;
  for (const kernels::cache_codec& each : kernels::cache_codecs) {
    if (each.name == type) return {context, each.type};
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  if (type.empty()) return {context};
  throw argument_error("--cache-type", "one of " + known, "'" + printable(type, 40) + "'");
}

std::uint32_t chunk_of_stages(const std::vector<std::string>& devices) {
  const auto takes_turns = [&](const std::string& each) {
    return std::count(devices.begin(), devices.end(), each) >= 3;
  };
  return std::any_of(devices.begin(), devices.end(), takes_turns) ? 1024 : 0;
}

const plan::table& engraved_model::table(const plan::device_class& device) const {
  const plan::table* const both[] = {&cpu, &portable};
  return runtime::choose_table(both, device);
}

const engraved_model& engraved_model_by_name(const std::string& wanted, const std::string& codec,
                                             const cache_choice& cache) {
  const std::optional<dtype> type = dtype_from_name(codec);
  std::string known, mixes;
  std::vector<dtype> engraved;
  bool other_cache = false;  // an engraved model is meant, whose own differs
  for (const auto& each : engraved_models()) {
    if (each.name == wanted) {
      const std::vector<dtype> its = codecs_of(each.cpu);
      const bool takes = codec.empty() || (type && std::find(its.begin(), its.end(), *type) != its.end());
      if (takes && holds(each, cache)) return each;
      other_cache = other_cache || takes;
      engraved.insert(engraved.end(), its.begin(), its.end());
    }
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  for (const std::string_view each : known_models()) {
    if (each == wanted) {
      if (const engraved_model* found =
              codec.empty() || type ? known_model(wanted, type, cache) : known_mix(wanted, codec, cache))
        return *found;
      engraved = known_codecs(wanted);
      if (engraved.size() > 1)
        for (const families::mix& mixed : families::mixes) mixes += ", " + std::string(mixed.name);
    }
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  if (other_cache)
    throw argument_error("--cache-type and --positions",
                         "those that " + wanted + " is engraved with, or a file of it, whose plan is made for them",
                         "its name alone");
  if (!engraved.empty())
    throw argument_error("--codec", "one that " + wanted + " is engraved for: " + codec_list(engraved) + mixes,
                         "'" + printable(codec, 40) + "'");
  throw argument_error("name of an engraved model", "one of: " + known, "'" + printable(wanted, 60) + "'");
}

const engraved_model* engraved_for(const io::checkpoint& file, const cache_choice& cache, const std::string& codec) {
  for (const auto& each : engraved_models())
    if (file.differences(each.config()).empty() && holds(each, cache) && fits(file, each, codec)) return &each;
  return nullptr;
}

const engraved_model& engraved_model_of(const io::checkpoint& file, const cache_choice& cache,
                                        const std::string& codec) {
  const engraved_model* const engraved = engraved_for(file, cache, codec);
  return engraved != nullptr ? *engraved : planned_model_of(file, cache, {}, codec);
}

std::string computed_text(const plan::table& of) {
  std::string out;
  for (const plan::codec_bytes& each : plan::weights_by_codec(of))
    if (each.codec != "vectors")
      (out += out.empty() ? "" : ", ") += std::string(each.codec) + ' ' + bytes_text(static_cast<double>(each.bytes));
  return out + "; " + bytes_text(static_cast<double>(plan::bytes_moved(of, of.decode, 0, 1))) + " a token";
}

void judge_codecs(const io::checkpoint& file, const engraved_model& plans, const std::string& codec) {
  std::vector<std::string> lossy;
  const dtype asked = layer_codec(plans.cpu) ? computed_types(file, {}).layers : dtype::f16;  // ternary: of its table
  for (const runtime::recoding& each : runtime::recodings(file, plans.cpu)) {
    const std::string text = runtime::recoding_text(each);
    if (!runtime::is_exact(each.stored, each.computed)) lossy.push_back(text);
    else note(in_file(file.path(), text + ", with the same values"));
  }
  if (!codec.empty())
    for (const std::string& line : lossy) warn(in_file(file.path(), line));
  else if (!lossy.empty())
    throw file_error(file.path(), std::nullopt,
                     std::string(plans.name) + " would compute " + lossy.front() + "; --codec " +
                         std::string(name(asked)) + " asks for that",
                     {}, {}, lossy);
}

}  // namespace intaglio::tool
