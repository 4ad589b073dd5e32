// SPDX-License-Identifier: MIT
// Times all 30 layers of BitNet 2B as one persistent kernel over synthetic weights (docs/performance.md). The kernel is a study: it is
// in no plan yet. usage: persistent LAYERS.spv [workgroups], made by
//   $(tools/get_glslc build/.glslc) --target-env=vulkan1.3 -O -I shaders/include bench/persistent/layers.comp -o LAYERS.spv
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

constexpr const plan::table& table = plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table;
constexpr std::uint64_t kind_qkv = 0, kind_attention = 1, kind_add = 2, kind_gated = 3;

/// The period's steps as the kernel reads them: 16 words each.
class step_table {
 public:
  step_table(const runtime::weight_memory& weights, const gpu::buffer& keys, const gpu::buffer& values) : weights_(weights), keys_(keys), values_(values) {}

  void add(std::uint64_t kind, std::uint64_t columns, std::uint64_t rows, std::uint64_t slices, std::uint64_t input, std::uint64_t output,
           std::string_view matrix, std::string_view norm) {
    for (const auto word : {kind, columns, rows, slices, input, output}) words.push_back(word);
    if (matrix.empty()) {
      words.insert(words.end(), 6, 0);
    } else {
      add_weight(norm, plan::weight_layout::vector_f32);
      add_weight(matrix, plan::weight_layout::ternary_tiles);
      add_weight(matrix, plan::weight_layout::ternary_scales);
    }
    for (const auto word : {keys_.address(), table.cache_layer_bytes, values_.address(), table.cache_layer_bytes}) words.push_back(word);
  }

  std::vector<std::uint64_t> words;

 private:
  void add_weight(std::string_view source, plan::weight_layout layout) {
    for (std::uint32_t slot = 0; slot < table.weights.size(); ++slot)
      if (table.weights[slot].sources[0] == source && table.weights[slot].layout == layout) {
        const std::uint64_t first = weights_.address(table, slot, 0), second = weights_.address(table, slot, 1);
        words.push_back(first);
        words.push_back(second - first);
        return;
      }
    throw argument_error("tensor of the plan", "one of its weights", std::string(source));
  }

  const runtime::weight_memory& weights_;
  const gpu::buffer& keys_;
  const gpu::buffer& values_;
};

void measure(const gpu::device& device, std::span<const char> spirv, std::uint32_t workgroups) {
  const decoder_config& c = *table.config;
  const auto weights = runtime::synthetic_weights(device, table);
  const gpu::buffer arena(device, 1 << 20, gpu::placement::device_local, "the arena"), state(device, 1 << 12, gpu::placement::device_local, "the state"),
      counter(device, 256, gpu::placement::device_local, "the barrier's counter"), steps(device, 4096, gpu::placement::device_local, "the steps"),
      keys(device, c.num_hidden_layers * table.cache_layer_bytes, gpu::placement::device_local, "the keys"),
      values(device, c.num_hidden_layers * table.cache_layer_bytes, gpu::placement::device_local, "the values");
  const std::uint64_t stream = arena.address(), query = stream + 65536, attention = stream + 131072, gated = stream + 262144;
  step_table period(weights, keys, values);
  period.add(kind_qkv, 2560, 3840, 4, stream, query, "attn_q.weight", "attn_norm.weight");
  period.add(kind_attention, 0, 0, 0, query, attention, {}, {});
  period.add(kind_add, 2560, 2560, 5, attention, stream, "attn_output.weight", "attn_sub_norm.weight");
  period.add(kind_gated, 2560, 13824, 1, stream, gated, "ffn_gate.weight", "ffn_norm.weight");
  period.add(kind_add, 6912, 2560, 6, gated, stream, "ffn_down.weight", "ffn_sub_norm.weight");

  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const gpu::specialization constants[] = {{0, 1024}, {1, c.num_hidden_layers}, {2, 6912}, {3, c.num_attention_heads}, {4, c.num_key_value_heads}, {5, c.head_dim},
                                           {6, table.context}, {7, bits(c.rope_theta)}, {8, bits(c.rms_norm_eps)}, {9, 0}, {10, 5}};
  const gpu::pipeline_description description{.name = "layers", .spirv = std::as_bytes(spirv), .constants = constants, .push_constant_bytes = 24, .required_subgroup_size = 32};
  const auto kernels = gpu::build_pipelines(device, {&description, 1});
  const std::uint64_t push[] = {steps.address(), state.address(), counter.address()};

  gpu::transfer copies(device);
  copies.upload(steps, 0, std::as_bytes(std::span(period.words)));
  std::vector<float> input(c.hidden_size);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = 0.01f * static_cast<float>(static_cast<int>(i * 37 % 201) - 100);
  gpu::queue queue(device);
  const auto run = [&](const gpu::recording& commands) {
    const VkCommandBuffer handle = commands.handle();
    queue.wait(queue.submit({&handle, 1}, commands.name()));
  };
  for (const std::uint32_t position : {0u, 127u, 1023u, 4095u}) {
    gpu::recorder clear(device, "clear");
    clear.fill(counter, 0, 256, 0).fill(keys, 0, keys.size_bytes(), 0).fill(values, 0, values.size_bytes(), 0);
    run(clear.finish());
    const std::uint32_t words[64] = {position, 1};
    copies.upload(state, 0, std::as_bytes(std::span(words)));
    const gpu::timestamps times(device, 2);
    gpu::recorder to(device, "layers", &times);
    to.dispatch(kernels[0], std::as_bytes(std::span(push)), {workgroups, 1, 1});
    const gpu::recording commands = to.finish();
    std::vector<double> found;
    std::vector<float> first(input.size()), output(input.size());
    for (int repeat = 0; repeat < 20; ++repeat) {
      copies.upload(arena, 0, std::as_bytes(std::span(input)));
      copies.finish();
      run(commands);
      found.push_back(times.read(2)[1]);
      copies.download(arena, 0, std::as_writable_bytes(std::span(repeat == 0 ? first : output)));
      if (repeat != 0 && output != first) std::printf("run %d gave other numbers than the first\n", repeat);
    }
    std::sort(found.begin(), found.end());
    std::printf("position %4u: %.1f us\n", position, found[found.size() / 2] / 1e3);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) return std::fprintf(stderr, "usage: persistent LAYERS.spv [workgroups]\n"), 2;
  std::ifstream file(arguments[1], std::ios::binary);
  const std::vector<char> spirv{std::istreambuf_iterator<char>(file), {}};
  const gpu::device device;
  std::printf("%s\n", device.label().c_str());
  measure(device, spirv, static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 132));
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
