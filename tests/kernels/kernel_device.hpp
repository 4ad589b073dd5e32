// SPDX-License-Identifier: MIT
// Runs one kernel on the device of the tests: constants, arguments and buffers by the names of the catalogue. Buffers
// carry a guard of poison on both sides that must survive. Which device and subgroup size: the Vulkan loader's
// environment, LP_NATIVE_VECTOR_WIDTH.
#pragma once

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/process_device.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/kernel_set.hpp"

namespace intaglio::testing {

inline constexpr std::byte poison{0xa5};

/// Device memory with the content of a vector.
class guarded_buffer {
 public:
  static constexpr std::size_t guard = 256;

  guarded_buffer(const gpu::device& on, std::size_t bytes)
      : bytes_(bytes), buffer_(on, bytes + 2 * guard, gpu::placement::readback, "a test") {
    std::fill(buffer_.mapped().begin(), buffer_.mapped().end(), poison);
  }
  VkDeviceAddress address() const { return buffer_.address() + guard; }
  std::span<std::byte> bytes() const { return buffer_.mapped().subspan(guard, bytes_); }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> out(bytes_ / sizeof(T));
    std::memcpy(out.data(), bytes().data(), out.size() * sizeof(T));
    return out;
  }
  bool intact() const {
    const auto all = buffer_.mapped();
    const auto clean = [](std::span<const std::byte> part) {
      return std::all_of(part.begin(), part.end(), [](std::byte b) { return b == poison; });
    };
    return clean(all.first(guard)) && clean(all.subspan(guard + bytes_));
  }

 private:
  std::size_t bytes_;
  gpu::buffer buffer_;
};

struct named_value {
  std::string_view name;
  std::variant<std::uint32_t, float, shader::activation_function> value;
};

/// A device, and a way to run a kernel once.
class kernel_device {
 public:
  kernel_device() : queue_(device_), messages_before_(device_.validation_message_count()) {}
  ~kernel_device() { CHECK(device_.validation_message_count() == messages_before_); }
  kernel_device(const kernel_device&) = delete;
  kernel_device& operator=(const kernel_device&) = delete;

  const gpu::device& device() const { return device_; }
  std::uint32_t subgroup_size() const { return runtime::choose_subgroup(device_.limits()).size; }
  /// Workgroup sizes worth a test, in subgroups.
  std::vector<std::uint32_t> widths() const { return {1, 2, 4}; }

  template <class T>
  guarded_buffer filled(const std::vector<T>& content) const {
    guarded_buffer out(device_, content.size() * sizeof(T));
    std::memcpy(out.bytes().data(), content.data(), content.size() * sizeof(T));
    return out;
  }
  /// Bytes of poison.
  guarded_buffer poisoned(std::size_t bytes) const { return {device_, bytes}; }

  /// Runs the kernel with workgroups of `subgroups` subgroups. Every push constant of the interface must be named, or
  /// be unused (0).
  void run(kernels::kernel which, std::uint32_t subgroups, std::vector<named_value> constants,
           const std::vector<std::pair<std::string_view, const guarded_buffer*>>& buffers,
           std::array<std::uint32_t, 3> groups) {
    const kernels::kernel_interface& face = kernels::interface_of(which);
    std::vector<gpu::specialization> values{{0, subgroups * subgroup_size()}};
    const shader::expression* activation = nullptr;
    if (const std::size_t width = face.specialization_index("subgroup_width");
        width < face.specialization_count() && fixed_width)
      values.push_back({static_cast<std::uint32_t>(width), subgroup_size()});
    for (const auto& [name, value] : constants) {
      if (name == "activation") {
        activation = &*std::get<shader::activation_function>(value);
        continue;
      }
      const std::size_t id = face.specialization_index(name);
      REQUIRE(id < face.specialization_count());
      const auto* const real = std::get_if<float>(&value);
      values.push_back({static_cast<std::uint32_t>(id),
                        real != nullptr ? std::bit_cast<std::uint32_t>(*real) : std::get<std::uint32_t>(value)});
    }
    std::vector<std::uint64_t> push = face.unbound_push();
    for (const auto& [name, buffer] : buffers) {
      REQUIRE(face.push_index(name) < face.push_count());
      push[face.push_index(name)] = buffer->address();
    }
    const gpu::pipeline& pipeline = made(variant_of(which), activation, values);
    gpu::recorder commands(device_, std::string(face.name));
    commands.dispatch(pipeline, std::as_bytes(std::span(push)), groups);
    const gpu::recording recorded = commands.finish();
    const VkCommandBuffer handle = recorded.handle();
    queue_.wait(queue_.submit(std::span(&handle, 1), face.name), std::chrono::seconds(120));
    for (const auto& [name, buffer] : buffers) {
      INFO(face.name << ": guard of " << name);
      CHECK(buffer->intact());
    }
  }

  bool fixed_width = true;  ///< give shaders the subgroup size as a constant
  bool integer_dot = true, wide_loads = false, int8_fragments = false, half_matrix = false, narrow_f16 = false,
       half_fragments = false;  ///< which modules; matrices only where usable_classes() has them
  runtime::module_source source = &runtime::modules_of<>;  ///< set before the first run

 private:
  /// The module that a device has which offers what is set above.
  kernels::variant variant_of(kernels::kernel which) const {
    using kernels::demand;
    const bool wide = wide_loads && device_.description().type == gpu::device_type::cpu;
    kernels::demands offers = wide ? demand::wide_loads : demand::narrow_loads;
    if (integer_dot) offers = offers | demand::integer_dot;
    if (int8_fragments) offers = offers | demand::int8_fragments;
    if (half_matrix) offers = offers | demand::f16_matrices;
    if (narrow_f16) offers = offers | demand::narrow_f16;
    if (half_fragments) offers = offers | demand::f16_fragments;
    kernels::variant out{};
    kernels::visit(which,
                   [&]<class Kernel>(std::type_identity<Kernel>) { out = kernels::first_candidate<Kernel>(offers); });
    return out;
  }
  /// The pipeline of these constants, compiled once: CPU drivers take seconds for one.
  const gpu::pipeline& made(kernels::variant which, const shader::expression* activation,
                            const std::vector<gpu::specialization>& values) {
    const kernels::kernel_interface& face = kernels::interface_of(kernels::kernel_of(which));
    std::vector<std::uint32_t> key{static_cast<std::uint32_t>(which),
                                   activation == nullptr ? 0u : static_cast<std::uint32_t>(activation->hash())};
    for (const auto& each : values) key.insert(key.end(), {each.id, each.value});
    const auto found = pipelines_.find(key);
    if (found != pipelines_.end()) return found->second;
    const auto module = source(which);
    const auto gating =
        activation == nullptr ? std::vector<std::uint32_t>{} : runtime::patched_module(module, *activation, which);
    return pipelines_
        .emplace(
            std::move(key),
            gpu::pipeline(device_, {.name = face.name,
                                    .spirv = activation == nullptr ? module : std::as_bytes(std::span(gating)),
                                    .constants = values,
                                    .push_constant_bytes = face.push_bytes(),
                                    .required_subgroup_size = runtime::choose_subgroup(device_.limits()).required}))
        .first->second;
  }

  gpu::device device_ = process_device();
  std::map<std::vector<std::uint32_t>, gpu::pipeline> pipelines_;
  gpu::queue queue_;
  std::size_t messages_before_;
};

/// Repeatable random numbers, the same with every standard library.
class random_numbers {
 public:
  explicit random_numbers(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>((std::uint64_t{engine_()} * end) >> 32); }
  float between(float low, float high) { return low + (high - low) * (static_cast<float>(engine_() >> 8) * 0x1p-24f); }
  std::vector<float> floats(std::size_t count, float low, float high) {
    std::vector<float> out(count);
    for (float& x : out) x = between(low, high);
    return out;
  }

 private:
  std::mt19937 engine_;
};

/// The state of a batch whose slots are at these positions.
struct slots_of_batch {
  std::vector<std::uint32_t> positions;
  std::uint32_t slot_words = kernels::state::slot_words(64, 8);
  std::vector<std::uint32_t> words;

  /// @param rows of a pass  @param idle a slot that does not run
  slots_of_batch(std::vector<std::uint32_t> at, std::uint32_t rows, std::uint32_t idle) : positions(std::move(at)) {
    namespace state = kernels::state;
    words.resize(state::first_slot + positions.size() * slot_words);
    words[state::count] = rows;
    for (std::uint32_t slot = 0; slot < positions.size(); ++slot) {
      std::uint32_t* const own = words.data() + state::first_slot + std::size_t{slot} * slot_words;
      own[state::position] = positions[slot];
      own[state::count] = slot == idle ? 0 : 1;
    }
  }
};

/// The words of a state: parameters zero, tokens and history poison.
inline std::vector<std::uint32_t> fresh_state(std::uint32_t position, std::uint32_t count, std::uint32_t max_tokens,
                                              std::uint32_t context) {
  std::vector<std::uint32_t> words(kernels::state::words(max_tokens, context), 0xa5a5a5a5u);
  std::fill(words.begin(), words.begin() + kernels::state::tokens, 0u);
  words[kernels::state::position] = position;
  words[kernels::state::count] = count;
  return words;
}

/// Weights as the device has them, of the given type.
inline std::vector<std::byte> elements_of(const std::vector<float>& values, kernels::element type) {
  std::vector<std::byte> out;
  for (const float value : values) {
    const std::uint32_t bits = type == kernels::element::f32   ? std::bit_cast<std::uint32_t>(value)
                               : type == kernels::element::f16 ? f16_from_f32(value)
                                                               : bf16_from_f32(value);
    for (std::uint32_t b = 0; b < (type == kernels::element::f32 ? 4u : 2u); ++b)
      out.push_back(static_cast<std::byte>(bits >> (8 * b)));
  }
  return out;
}

/// How many floats differ in their bits, and the largest difference relative to the largest value.
struct difference {
  std::size_t bits = 0;
  double relative = 0;
};
inline difference compare(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  difference out;
  double largest = 1e-30;
  for (const float x : expected) largest = std::max(largest, std::abs(static_cast<double>(x)));
  for (std::size_t i = 0; i < found.size(); ++i) {
    out.bits += std::bit_cast<std::uint32_t>(found[i]) != std::bit_cast<std::uint32_t>(expected[i]);
    const double apart = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) / largest;
    out.relative = apart > out.relative || apart != apart ? apart : out.relative;
  }
  return out;
}

}  // namespace intaglio::testing

/// On a CPU driver divisions and roots are exact, so every bit must equal the reference; on a GPU results may differ by
/// a small number of units in the last place.
#define CHECK_SAME(on, found, expected)                                                              \
  do {                                                                                               \
    const auto apart = intaglio::testing::compare(found, expected);                                  \
    INFO("differing floats: " << apart.bits << ", largest difference: " << apart.relative);          \
    if ((on).device().description().type == intaglio::gpu::device_type::cpu) CHECK(apart.bits == 0); \
    CHECK(apart.relative < 1e-5);                                                                    \
  } while (false)
