// SPDX-License-Identifier: MIT
// Times all 30 layers of BitNet 2B as one persistent kernel over synthetic weights (docs/performance.md). The kernel is a study: it is
// in no plan yet. usage: persistent LAYERS.spv[:workgroups[:clocked workgroup + 1]]..., each made by
//   $(tools/get_glslc build/.glslc) --target-env=vulkan1.3 -O -DCLOCK=0 -I shaders/include bench/persistent/layers.comp -o LAYERS.spv
// CLOCK=1 prints the cycles between the stamps of one workgroup.
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
    for (const auto word : {keys_.address(), table.key_layer_bytes, values_.address(), table.value_layer_bytes}) words.push_back(word);
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


constexpr std::uint64_t generation_bytes = 524288;  ///< as in layers.comp

class study {
 public:
  explicit study(const gpu::device& device)
      : device_(device), weights_(runtime::synthetic_weights(device, table)), copies_(device), queue_(device), arena_(device, 1 << 16, gpu::placement::device_local, "the stream"),
        state_(device, 1 << 12, gpu::placement::device_local, "the state"), counter_(device, 256, gpu::placement::device_local, "the counters"),
        steps_(device, 4096, gpu::placement::device_local, "the steps"), exchange_(device, 10 * generation_bytes, gpu::placement::device_local, "the exchanged vectors"),
        clocks_(device, 1 << 16, gpu::placement::device_local, "the clocks"),
        keys_(device, c.num_hidden_layers * table.key_layer_bytes, gpu::placement::device_local, "the keys"),
        values_(device, c.num_hidden_layers * table.value_layer_bytes, gpu::placement::device_local, "the values") {
    const std::uint64_t stream = arena_.address(), base = exchange_.address();
    const auto vector = [&](std::uint64_t i) { return base + 2 * i * generation_bytes; };
    step_table period(weights_, keys_, values_);
    period.add(kind_qkv, 2560, 3840, 4, stream, vector(0), "attn_q.weight", "attn_norm.weight");
    period.add(kind_attention, 0, 0, 0, vector(0), vector(1), {}, {});
    period.add(kind_add, 2560, 2560, 5, vector(1), vector(2), "attn_output.weight", "attn_sub_norm.weight");
    period.add(kind_gated, 2560, 13824, 1, vector(2), vector(3), "ffn_gate.weight", "ffn_norm.weight");
    period.add(kind_add, 6912, 2560, 6, vector(3), vector(4), "ffn_down.weight", "ffn_sub_norm.weight");
    copies_.upload(steps_, 0, std::as_bytes(std::span(period.words)));
    copies_.finish();
  }

  void measure(const char* name, std::span<const char> spirv, std::uint32_t workgroups, std::uint32_t clocked) {
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    const gpu::specialization constants[] = {{1, c.num_hidden_layers}, {2, 6912}, {3, c.num_attention_heads}, {4, c.num_key_value_heads}, {5, c.head_dim},
                                             {6, table.context}, {7, bits(c.rope_theta)}, {8, bits(c.rms_norm_eps)}, {9, 0}, {10, clocked}, {11, c.hidden_size}, {12, workgroups}};
    const gpu::pipeline_description description{.name = "layers", .spirv = std::as_bytes(spirv), .constants = constants, .push_constant_bytes = 32, .required_subgroup_size = 32, .keep_statistics = true};
    const auto kernels = gpu::build_pipelines(device_, {&description, 1});
    const std::uint64_t push[] = {steps_.address(), state_.address(), counter_.address(), clocks_.address()};
    std::vector<float> input(c.hidden_size);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = 0.01f * static_cast<float>(static_cast<int>(i * 37 % 201) - 100);
    std::printf("%s:", name);
    for (const auto& line : kernels[0].statistics()) std::printf(" %s;", line.c_str());
    std::printf("\n");
    for (const std::uint32_t position : {0u, 127u, 1023u, 4095u}) {
      gpu::recorder clear(device_, "clear");
      clear.fill(counter_, 0, 256, 0).fill(keys_, 0, keys_.size_bytes(), 0).fill(values_, 0, values_.size_bytes(), 0).fill(clocks_, 0, clocks_.size_bytes(), 0).fill(exchange_, 0, exchange_.size_bytes(), 0xffffffffu);
      run(clear.finish());
      const std::uint32_t words[64] = {position, 1};
      copies_.upload(state_, 0, std::as_bytes(std::span(words)));
      const gpu::timestamps times(device_, 2);
      gpu::recorder to(device_, "layers", &times);
      to.dispatch(kernels[0], std::as_bytes(std::span(push)), {workgroups, 1, 1});
      const gpu::recording commands = to.finish();
      std::vector<double> found;
      std::vector<float> first(input.size()), output(input.size());
      std::size_t differing = 0;
      for (int repeat = 0; repeat < 40; ++repeat) {
        copies_.upload(arena_, 0, std::as_bytes(std::span(input)));
        copies_.finish();
        run(commands);
        found.push_back(times.read(2)[1]);
        copies_.download(arena_, 0, std::as_writable_bytes(std::span(repeat == 0 ? first : output)));
        differing += repeat != 0 && output != first;
      }
      std::uint32_t counters[4];
      copies_.download(counter_, 0, std::as_writable_bytes(std::span(counters)));
      std::sort(found.begin(), found.end());
      double sum = 0;
      for (const float x : first) sum += static_cast<double>(x) * x;
      std::printf("position %4u: %.1f us, shortest %.1f; %zu differ; gave up %u; |x|^2 %.6g, %.7g %.7g\n", position, found[found.size() / 2] / 1e3, found[0] / 1e3, differing,
                  counters[2], sum, static_cast<double>(first[0]), static_cast<double>(first[2559]));
      if (clocked != 0 && position == 127) print_clocks();
      if (counters[2] != 0) break;
    }
    std::fflush(stdout);
  }

 private:
  void run(const gpu::recording& commands) {
    const VkCommandBuffer handle = commands.handle();
    queue_.wait(queue_.submit({&handle, 1}, commands.name()));
  }
  void print_clocks() {
    std::vector<std::uint64_t> all(4096);
    copies_.download(clocks_, 0, std::as_writable_bytes(std::span(all)));
    std::size_t count = 0;
    while (count < all.size() && all[count] != 0) ++count;
    const std::size_t per_layer = (count - 1) / c.num_hidden_layers;
    std::printf("  %zu stamps a layer, cycles:", per_layer);
    for (std::size_t i = 0; i < per_layer; ++i) {
      double total = 0;
      for (std::size_t layer = 4; layer + 1 < c.num_hidden_layers; ++layer) total += static_cast<double>(all[layer * per_layer + i + 1] - all[layer * per_layer + i]);
      std::printf(" %.0f", total / (c.num_hidden_layers - 5));
    }
    std::printf("\n");
  }

  static constexpr const decoder_config& c = *table.config;
  gpu::device device_;
  runtime::weight_memory weights_;
  gpu::transfer copies_;
  gpu::queue queue_;
  gpu::buffer arena_, state_, counter_, steps_, exchange_, clocks_, keys_, values_;
};

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) return std::fprintf(stderr, "usage: persistent LAYERS.spv[:workgroups[:clocked workgroup + 1]]...\n"), 2;
  const gpu::device device;
  std::printf("%s\n", device.label().c_str());
  study all(device);
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i];
    std::uint32_t numbers[2] = {132, 0};
    std::size_t n = 0;
    std::string path = name.substr(0, name.find(':'));
    for (std::size_t at = name.find(':'); at != std::string::npos && n < 2; at = name.find(':', at + 1)) numbers[n++] = static_cast<std::uint32_t>(std::atoi(name.c_str() + at + 1));
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> spirv{std::istreambuf_iterator<char>(file), {}};
    all.measure(name.c_str(), spirv, numbers[0], numbers[1]);
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
