// SPDX-License-Identifier: MIT
// Every pipeline of a plan shows on the device, before it is used, that it computes what its kernel says: made-up activations, the
// model's own weights of layer 0, and the CPU reference for a few rows of each product. Takes some milliseconds beside compiling.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/reference/attention.hpp"
#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/head_screen.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/reference/sample.hpp"
#include "intaglio/reference/ternary_float.hpp"
#include "intaglio/reference/ternary_matmul.hpp"
#include "intaglio/reference/ternary_walk.hpp"
#include "intaglio/reference/walk_kernels.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// What a pipeline did wrong; empty kernel: nothing.
struct kernel_fault {
  std::string kernel, label;
  double apart = 0;  ///< largest difference, in units of the largest expected value
};

/// @error device_error naming the kernel, always
[[noreturn]] inline void refuse(const gpu::device& on, const kernel_fault& fault) {
  throw device_error(on.label(), "prove the kernel " + fault.kernel + " (" + fault.label + ")",
                     "it differs from the reference by " + number_text(static_cast<float>(fault.apart)) + " of the largest value; it is not used");
}

class kernel_proof {
 public:
  kernel_proof(const gpu::device& on, const plan::table& of, const kernel_set& kernels, const weight_memory& weights)
      : device_(on), table_(&of), kernels_(&kernels), weights_(&weights), queue_(on), transfer_(on, std::uint64_t{1} << 20) {}

  /// A dispatch to be held against the reference.
  struct claim {
    const plan::sequence* of = nullptr;
    const plan::dispatch* call = nullptr;
    std::uint32_t rows = 0;  ///< of a pass over fewer than all
    bool greedy = false;     ///< the form of a sampler for passes that draw nothing
    bool has_greedy = false; ///< whether there is one
  };
  /// Every dispatch of a sequence once, the period's for layer 0; what does all layers in one dispatch is left out.
  static std::vector<claim> claims_of(const plan::sequence& of, const kernel_set& kernels) {
    std::vector<claim> out;
    for (const auto part : of.recorded())
      for (const auto& call : part) {
        if (call.kernel == kernels::kernel::layers || call.kernel == kernels::kernel::layers_coded) continue;
        for (const std::uint32_t rows : kernels.rows_of(call)) out.push_back({&of, &call, rows});
        const bool has_greedy = kernels.has_greedy(call);
        if (has_greedy) out.push_back({&of, &call, 0, true, true});
        out.push_back({&of, &call, 0, false, has_greedy});
      }
    return out;
  }

  /// @return the first fault of the sequence  @error device_lost, out_of_memory
  kernel_fault check(const plan::sequence& of) {
    for (const claim& each : claims_of(of, *kernels_))
      if (kernel_fault fault = check(each); !fault.kernel.empty()) return fault;
    return {};
  }
  /// Waits until the dispatch's pipeline is made, and runs it. @return a fault, or an empty kernel  @error device_lost, out_of_memory
  kernel_fault check(const claim& one) {
    const plan::sequence& of = *one.of;
    const plan::dispatch& call = *one.call;
    width_ = of.max_tokens;
    batched_ = of.batched;
    rows_ = one.rows;
    greedy_ = one.greedy;
    random_ = 12345;
    // Tiles show their borders only to more tokens than the first of them has.
    tokens_ = std::min(call.kernel == kernels::kernel::ternary_chunk || call.kernel == kernels::kernel::matmul_chunk ? 18u : call.kernel == kernels::kernel::attention_chunk ? 10u : call.kernel == kernels::kernel::attention_halves ? 70u : kernels_->takes_matrices(call, rows_) ? 18u : kernel_set::lists_tokens(call) ? 6u : 2u, rows_ != 0 ? rows_ : of.max_tokens);
    const double apart = difference(call);
    // The device's own roots and divisions may be a little off, and then an int8 value may round the other way.
    const bool rounds = call.kernel == kernels::kernel::norm_quantize || call.kernel == kernels::kernel::walk_gate_up || call.kernel == kernels::kernel::walk_down ||
                        (call.kernel == kernels::kernel::ternary_matmul && constant(call, "prologue") == static_cast<std::uint32_t>(kernels::prologue::norm_quantize));
    // Cooperative matrices sum in an order of their own, and take factors of blocks as halves; a half behind a norm or in a cache may round the other way.
    const bool halves = call.kernel == kernels::kernel::matmul_chunk || call.kernel == kernels::kernel::halves || call.kernel == kernels::kernel::attention_halves;
    const bool fills_cache = call.kernel == kernels::kernel::head_norm || ((call.kernel == kernels::kernel::matmul || call.kernel == kernels::kernel::matmul_few) && constant(call, "epilogue") == static_cast<std::uint32_t>(kernels::epilogue::rope_cache));
    const bool rounds_cache = fills_cache && table_->cache_element == kernels::element::f16;
    if (!(apart <= (rounds ? 3e-2 : halves ? 4e-3 : rounds_cache ? 1e-3 : 1e-4))) return {std::string(kernels::interface_of(call.kernel).name), std::string(call.label.view()), apart};
    return {};
  }

 private:
  static constexpr std::uint32_t position = 3;

  std::uint32_t constant(const plan::dispatch& call, std::string_view name) const {
    return call.specialization.at(kernels::interface_of(call.kernel).specialization_index(name));  // .at: no kernel is proven by what it has not
  }
  float real(const plan::dispatch& call, std::string_view name) const { return std::bit_cast<float>(constant(call, name)); }
  const plan::operand& operand(const plan::dispatch& call, std::string_view name) const {
    return call.push.at(kernels::interface_of(call.kernel).push_index(name));
  }
  std::uint32_t next() {
    random_ = random_ * 1664525u + 1013904223u;
    return random_ >> 8;
  }
  std::vector<float> floats(std::size_t count) {
    std::vector<float> out(count);
    for (float& x : out) x = (static_cast<float>(next()) * 0x1p-24f - 0.5f) * 4.0f;
    return out;
  }
  gpu::buffer room(std::uint64_t bytes) const {
    gpu::buffer out(device_, std::max<std::uint64_t>(bytes, 4), gpu::placement::readback, "a kernel's proof");
    std::memset(out.mapped().data(), 0, out.mapped().size());
    return out;
  }
  template <class T>
  gpu::buffer filled(const std::vector<T>& values, std::size_t elements) const {
    gpu::buffer out = room(std::max(elements, values.size()) * sizeof(T));
    std::memcpy(out.mapped().data(), values.data(), values.size() * sizeof(T));
    return out;
  }
  template <class T>
  static std::vector<T> read(const gpu::buffer& from, std::size_t first, std::size_t count) {
    std::vector<T> out(count);
    std::memcpy(out.data(), from.mapped().data() + first * sizeof(T), count * sizeof(T));
    return out;
  }
  /// Elements of a weight of layer 0 as they lie on the device.
  template <class T>
  std::vector<T> weight(const plan::operand& what, std::uint64_t first, std::uint64_t count) {
    const auto& item = weights_->placed.items[weights_->first[what.slot]];
    std::vector<T> out(static_cast<std::size_t>(count));
    transfer_.download(weights_->placed.buffers[item.buffer], item.offset + what.offset + first * sizeof(T), std::as_writable_bytes(std::span(out)));
    return out;
  }

  /// Runs a dispatch with buffers in the place of all that is no weight.
  using named_buffers = std::vector<std::pair<std::string_view, const gpu::buffer*>>;
  void run(const plan::dispatch& call, const named_buffers& buffers) {
    const kernels::interface& face = kernels::interface_of(call.kernel);
    std::vector<std::uint64_t> push(face.push_count());
    for (std::size_t i = 0; i < push.size(); ++i)
      if (call.push[i].where == plan::region::weight) push[i] = weights_->address(*table_, call.push[i].slot, 0) + call.push[i].offset;
    for (const auto& [name, memory] : buffers)
      if (operand(call, name).where != plan::region::none) push[face.push_index(name)] = memory->address();
    gpu::recorder to(device_, "proof of " + std::string(face.name));
    to.dispatch(kernels_->of(call, rows_, greedy_), std::as_bytes(std::span(push)), kernels_->groups_of(call, rows_, width_));
    const gpu::recording commands = to.finish();
    const VkCommandBuffer handle = commands.handle();
    queue_.wait(queue_.submit({&handle, 1}, commands.name()), gpu::queue::patience * 12);
  }

  std::vector<std::uint32_t> state(std::uint32_t first = position) const {
    std::vector<std::uint32_t> words(kernels::state::words(table_->max_tokens, table_->context));
    words[kernels::state::position] = first;
    words[kernels::state::count] = tokens_;
    return words;
  }

  /// The same in slots of a batch: each token has one of its own, and all see the same pages, which stand in their order.
  std::vector<std::uint32_t> slots_of(const std::vector<std::uint32_t>& alone) const {
    namespace state = kernels::state;
    const std::uint32_t size = state::slot_words(table_->context, table_->shape.page_size), pages = table_->slot_pages();
    std::vector<std::uint32_t> out(static_cast<std::size_t>(table_->batch_state_bytes() / 4));
    out[state::count] = tokens_;
    for (std::uint32_t t = 0; t < tokens_; ++t) {
      std::uint32_t* const slot = out.data() + state::first_slot + std::size_t{t} * size;
      std::copy_n(alone.begin(), state::tokens, slot);
      slot[state::position] = alone[state::position] + t;
      slot[state::count] = 1;
      slot[state::limit] = table_->context;
      slot[state::tokens] = alone[state::tokens + t];
      for (std::uint32_t page = 0; page < pages; ++page) slot[state::page_table + page] = page;
      std::copy_n(alone.begin() + state::history(table_->max_tokens), table_->context, slot + state::page_table + pages);
    }
    return out;
  }
  gpu::buffer memory_of(const std::vector<std::uint32_t>& alone) const { return filled(batched_ ? slots_of(alone) : alone, 0); }
  plan::layer_cache cache_of(const plan::dispatch& call) const { return batched_ ? table_->pool(call.block) : table_->caches[call.block]; }

  static double apart(std::span<const float> found, std::span<const float> expected) {
    double largest = 1e-30, out = 0;
    for (const float x : expected) largest = std::max(largest, std::abs(static_cast<double>(x)));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double each = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) / largest;
      if (std::isnan(each)) return HUGE_VAL;  // larger than any fault
      out = std::max(out, each);
    }
    return out;
  }

  double difference(const plan::dispatch& call) {
    switch (call.kernel) {
      case kernels::kernel::embed: return embed(call);
      case kernels::kernel::norm_quantize: return norm_quantize(call);
      case kernels::kernel::ternary_matmul: case kernels::kernel::ternary_few: case kernels::kernel::ternary_chunk: case kernels::kernel::ternary_float: return ternary_product(call);
      case kernels::kernel::attention: case kernels::kernel::attention_few: case kernels::kernel::attention_chunk: case kernels::kernel::attention_halves: return attention(call);
      case kernels::kernel::dense_matmul: return dense_matmul(call);
      case kernels::kernel::dense_few: return dense_few(call);
      case kernels::kernel::head_screen: return head_screen(call);
      case kernels::kernel::head_rescore: return head_rescore(call);
      case kernels::kernel::matmul: return constant(call, "experts_used") == 0 ? matmul(call) : expert_matmul(call);
      case kernels::kernel::matmul_chunk: return matmul(call);
      case kernels::kernel::matmul_few: return constant(call, "experts_used") == 0 ? matmul(call) : expert_matmul(call);
      case kernels::kernel::fixed: return fixed(call);
      case kernels::kernel::halves: return halves(call);
      case kernels::kernel::route: return route(call);
      case kernels::kernel::expert_tiles: return expert_tiles(call);
      case kernels::kernel::expert_sum: return expert_sum(call);
      case kernels::kernel::head_norm: return head_norm(call);
      case kernels::kernel::norm_add: return norm_add(call);
      case kernels::kernel::rms_norm: return rms_norm(call);
      case kernels::kernel::walk_gate_up: return walk_gate_up(call);
      case kernels::kernel::walk_down: return walk_down(call);
      case kernels::kernel::walk_select: return walk_select(call);
      case kernels::kernel::walk_up: return walk_up(call);
      case kernels::kernel::walk_sum: return walk_sum(call);
      case kernels::kernel::walk_trace: return walk_trace(call);
      case kernels::kernel::sample: return sample(call);
      case kernels::kernel::accept: return accept(call);
      case kernels::kernel::pages: return pages(call);
      case kernels::kernel::layers: case kernels::kernel::layers_coded: break;  // executor::prove holds it against the prompt's sequence
    }
    return 0;
  }

  double embed(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width"), rows = constant(call, "vocab_size");
    const auto type = static_cast<kernels::codec>(constant(call, "table_element"));
    const float scale = real(call, "scale");
    // Rows of floats lie behind each other, others in groups of four.
    const std::uint32_t together = kernels::is_dense(type) ? 1 : 4;
    const std::uint64_t bytes = kernels::matmul_group_bytes(type, width) * together / 4;
    auto words = state();
    const std::uint32_t ids[] = {rows - 1, rows / 3};
    std::vector<float> expected;
    for (std::uint32_t t = 0; t < tokens_; ++t) {
      words[kernels::state::tokens + t] = ids[t];
      const auto group = weight<std::byte>(operand(call, "table"), ids[t] / together * bytes, bytes);
      for (std::uint32_t c = 0; c < width; ++c) {
        const float value = reference::weight_at(type, group, width, ids[t] % together, c);
        expected.push_back(scale == 0 ? value : kernels::arithmetic::product(value, scale));
      }
    }
    const gpu::buffer output = room(std::uint64_t{4} * width_ * width), memory = memory_of(words);
    run(call, {{"output", &output}, {"state", &memory}});
    return apart(read<float>(output, 0, expected.size()), expected);
  }

  double norm_quantize(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width");
    const auto values = floats(std::size_t{tokens_} * width), norm = weight<float>(operand(call, "norm_weight"), 0, width);
    std::vector<std::int8_t> codes(values.size());
    std::vector<reference::factors> factors(tokens_);
    reference::norm_quantize(values, norm, width, real(call, "eps"), codes, factors);
    const gpu::buffer in = filled(values, std::size_t{width_} * width), out = room(std::uint64_t{width_} * width), sums = room(std::uint64_t{8} * width_),
                      memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"factors", &sums}, {"state", &memory}});
    const auto found = read<std::int8_t>(out, 0, codes.size());
    const auto found_factors = read<reference::factors>(sums, 0, tokens_);
    double worst = 0;
    for (std::size_t i = 0; i < codes.size(); ++i) worst = std::max(worst, std::abs(found[i] - codes[i]) / 127.0);
    for (std::size_t t = 0; t < tokens_; ++t) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += found[t * width + i];
      if (sum != found_factors[t].sum) return 1;
      worst = std::max(worst, static_cast<double>(std::abs(found_factors[t].inverse_scale / factors[t].inverse_scale - 1.0f)));
    }
    return worst;
  }

  /// The first features and the last ones.
  double walk_gate_up(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), run_rows = std::min(rows, 64u);
    const auto values = floats(columns);
    std::vector<std::int8_t> q(columns);
    std::vector<reference::factors> factor(1);
    reference::norm_quantize(values, weight<float>(operand(call, "norm_weight"), 0, columns), columns, real(call, "eps"), q, factor);
    const gpu::buffer in = filled(values, values.size()), out = room(std::uint64_t{4} * rows), gates = room(std::uint64_t{4} * rows), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}, {"gates", &gates}});
    const bool keeps_gates = operand(call, "gates").where != plan::region::none;
    const auto scales = weight<float>(operand(call, "scales"), 0, 2);
    std::vector<float> expected(run_rows), kept(run_rows);
    double worst = 0;
    for (const std::uint32_t first : {0u, rows - run_rows}) {
      const std::uint64_t count = run_rows * (columns / 16), at = std::uint64_t{first} * (columns / 16);  // words
      const auto gate = weight<std::uint32_t>(operand(call, "weight"), at, count), up = weight<std::uint32_t>(operand(call, "up"), at, count);
      reference::walk_gate_up(q, factor[0], gate, up, scales, expected, kept);
      worst = std::max(worst, apart(read<float>(out, first, run_rows), expected));
      if (keeps_gates) worst = std::max(worst, apart(read<float>(gates, first, run_rows), kept));
    }
    return worst;
  }
  double walk_down(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows");
    auto values = floats(columns);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i % 3 != 0) values[i] = 0;  // features that are off
    std::vector<std::int8_t> q(columns);
    std::vector<reference::factors> factor(1);
    reference::norm_quantize(values, weight<float>(operand(call, "norm_weight"), 0, columns), columns, real(call, "eps"), q, factor);
    std::vector<float> expected = floats(rows);
    const gpu::buffer in = filled(values, values.size()), out = filled(expected, expected.size()), kept = room(std::uint64_t{4} * columns), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}, {"values", &kept}});
    if (operand(call, "values").where != plan::region::none) {
      std::vector<float> steps(columns);
      for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = kernels::arithmetic::product(static_cast<float>(q[i]), factor[0].inverse_scale);
      if (const double off = apart(read<float>(kept, 0, columns), steps); !(off <= 3e-2)) return off;
    }
    reference::walk_down(q, factor[0], weight<std::uint32_t>(operand(call, "weight"), 0, std::size_t{columns} * rows / 16), weight<float>(operand(call, "scales"), 0, 1), expected);
    return apart(read<float>(out, 0, expected.size()), expected);
  }

  /// Scores of which some have equal sizes.
  double walk_select(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), count = constant(call, "count");
    auto scores = floats(columns);
    for (std::size_t i = 0; i + 3 < scores.size(); i += 3) scores[i + 1] = -scores[i];
    std::vector<std::uint32_t> expected(std::size_t{2} * count);
    reference::walk_select(scores, expected);
    const gpu::buffer in = filled(scores, columns), out = room(std::uint64_t{8} * count), memory = filled(state(), 0);
    run(call, {{"input", &in}, {"choice", &out}, {"state", &memory}});
    return read<std::uint32_t>(out, 0, expected.size()) == expected ? 0 : 1;
  }
  /// Every so manieth feature, with scores.
  std::vector<std::uint32_t> some_features(std::uint32_t count, std::uint32_t features) {
    std::vector<std::uint32_t> out;
    const auto scores = floats(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      out.push_back(static_cast<std::uint32_t>(std::uint64_t{i} * features / count));
      out.push_back(std::bit_cast<std::uint32_t>(scores[i]));
    }
    return out;
  }
  /// The first features and the last ones.
  double walk_up(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), count = constant(call, "count"), some = std::min(count, 32u);
    const auto type = static_cast<kernels::element>(constant(call, "weight_element"));
    const auto values = floats(columns), norm = weight<float>(operand(call, "norm_weight"), 0, columns);
    const auto choice = some_features(count, rows);
    std::vector<float> x(columns);
    reference::rms_norm(values, norm, real(call, "eps"), x);
    const gpu::buffer in = filled(values, columns), list = filled(choice, choice.size()), out = room(std::uint64_t{4} * count), memory = filled(state(), 0);
    run(call, {{"input", &in}, {"choice", &list}, {"output", &out}, {"state", &memory}});
    double worst = 0;
    for (const std::uint32_t first : {0u, count - some}) {
      std::vector<float> expected(some);
      const std::uint64_t row = columns * reference::elements::size_bytes(type);
      for (std::uint32_t i = 0; i < some; ++i) {
        const auto bytes = weight<std::byte>(operand(call, "weight"), choice[2 * (first + i)] * row, row);
        const std::array<std::uint32_t, 2> one{0, choice[2 * (first + i) + 1]};
        reference::walk_up(x, bytes, type, call.act(), one, std::span(expected).subspan(i, 1));
      }
      worst = std::max(worst, apart(read<float>(out, first, some), expected));
    }
    return worst;
  }
  double walk_sum(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), count = constant(call, "count");
    const auto type = static_cast<kernels::element>(constant(call, "weight_element"));
    auto values = floats(count);
    for (std::size_t i = 64; i + 64 < values.size(); ++i) values[i] = 0;  // their vectors need not be fetched here
    const bool listed = constant(call, "listed") != 0;
    const auto choice = listed ? some_features(count, columns) : std::vector<std::uint32_t>{};
    std::vector<float> expected = floats(rows);
    const gpu::buffer in = filled(values, count), list = filled(choice, std::max<std::size_t>(choice.size(), 1)), out = filled(expected, rows), memory = filled(state(), 0);
    run(call, {{"input", &in}, {"choice", &list}, {"output", &out}, {"state", &memory}});
    // A feature whose value is 0 adds nothing: the others' vectors lie behind each other, as many zeros between them as keep each in its slot.
    const std::uint64_t row = rows * reference::elements::size_bytes(type);
    std::vector<std::byte> down;
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < count; ++i) {
      places.insert(places.end(), {static_cast<std::uint32_t>(values[i] == 0 ? 0 : down.size() / row), 0u});
      if (values[i] == 0 && !down.empty()) continue;
      const auto bytes = weight<std::byte>(operand(call, "weight"), (listed ? choice[2 * i] : i) * row, row);
      down.insert(down.end(), bytes.begin(), bytes.end());
    }
    reference::walk_sum(values, places, down, type, constant(call, "epilogue") == static_cast<std::uint32_t>(kernels::epilogue::add), expected);
    return apart(read<float>(out, 0, rows), expected);
  }

  /// Every layer; of equal contributions there are some.
  double walk_trace(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), features = constant(call, "features"), layers = constant(call, "layers"), count = constant(call, "count"), slots = constant(call, "slots");
    const std::uint32_t value_stride = constant(call, "value_stride"), choice_stride = constant(call, "choice_stride"), words = kernels::trace_words(count);
    const bool listed = constant(call, "listed") != 0;
    const auto norms = weight<float>(operand(call, "norms"), 0, std::uint64_t{layers} * features);
    auto values = floats(std::size_t{layers - 1} * value_stride + columns);
    for (std::size_t i = 2; i < values.size(); i += 3) values[i] = 0;
    const auto scores = floats(values.size());
    std::vector<std::uint32_t> choice(listed ? std::size_t{layers - 1} * choice_stride + 2 * columns : 1);
    for (std::uint32_t layer = 0; listed && layer < layers; ++layer) std::ranges::copy(some_features(columns, features), choice.begin() + std::ptrdiff_t{layer} * choice_stride);
    auto first = state();
    first[kernels::state::tokens] = 7;
    const gpu::buffer in = filled(values, values.size()), gates = filled(scores, scores.size()), list = filled(choice, choice.size()), out = room(std::uint64_t{4} * slots * layers * words),
                      memory = filled(first, 0);
    run(call, {{"values", &in}, {"gates", &gates}, {"choice", &list}, {"trace", &out}, {"state", &memory}});
    double worst = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      std::vector<std::uint32_t> expected{position, 7};
      expected.resize(words);
      reference::walk_trace(std::span(values).subspan(std::size_t{layer} * value_stride, columns), listed ? std::span<const float>{} : std::span(scores).subspan(std::size_t{layer} * value_stride, columns),
                            listed ? std::span<const std::uint32_t>(choice).subspan(std::size_t{layer} * choice_stride, std::size_t{2} * columns) : std::span<const std::uint32_t>{},
                            std::span(norms).subspan(std::size_t{layer} * features, features), count, expected);
      const auto found = read<std::uint32_t>(out, (std::size_t{position % slots} * layers + layer) * words, words);
      const auto size = [](const std::vector<std::uint32_t>& of) { return std::bit_cast<float>(of[2]); };
      worst = std::max(worst, apart(std::array{size(found)}, std::array{size(expected)}));
      if (found[0] != expected[0] || found[1] != expected[1] || !std::equal(found.begin() + 3, found.end(), expected.begin() + 3)) return 1;
    }
    return worst;
  }

  double ternary_product(const plan::dispatch& call) {
    using kernels::epilogue, kernels::prologue;
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows");
    const auto how = static_cast<epilogue>(constant(call, "epilogue"));
    const auto before = call.kernel == kernels::kernel::ternary_chunk || call.kernel == kernels::kernel::ternary_few ? prologue::quantized : static_cast<prologue>(constant(call, "prologue"));
    const bool rounds = call.kernel != kernels::kernel::ternary_float;
    std::vector<float> plain;
    std::vector<std::int8_t> codes(std::size_t{tokens_} * columns);
    std::vector<reference::factors> factors(tokens_);
    gpu::buffer in, sums;
    if (!rounds) {
      const auto values = floats(codes.size());
      plain = values;
      if (before == prologue::norm)
        for (std::size_t at = 0; at < values.size(); at += columns)
          reference::rms_norm(std::span(values).subspan(at, columns), weight<float>(operand(call, "norm_weight"), 0, columns), real(call, "eps"), std::span(plain).subspan(at, columns));
      in = filled(values, std::size_t{width_} * columns);
    } else if (before == prologue::norm_quantize) {
      const auto values = floats(codes.size());
      reference::norm_quantize(values, weight<float>(operand(call, "norm_weight"), 0, columns), columns, real(call, "eps"), codes, factors);
      in = filled(values, std::size_t{width_} * columns);
    } else {
      for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::int8_t>(static_cast<int>(next() % 255) - 127);
        factors[i / columns].sum += codes[i];
      }
      for (auto& each : factors) each.inverse_scale = 0.01f;
      in = filled(codes, std::size_t{width_} * columns);
      sums = filled(factors, width_);
    }
    reference::ternary_matmul_shape shape;
    shape.columns = columns;
    shape.epilogue = how;
    shape.gate = call.act();
    shape.context = constant(call, "context");
    shape.cache_element = static_cast<kernels::element>(constant(call, "cache_element"));
    const std::uint32_t q_size = constant(call, "q_size"), kv_size = constant(call, "kv_size"), head = constant(call, "head_dim");
    std::vector<std::uint32_t> firsts;  // of the runs of rows that are compared
    std::uint32_t run_rows = std::min(rows, 32u), out_width = how == epilogue::gated ? rows / 2 : rows;
    if (how == epilogue::rope_cache) {
      firsts = {q_size - head, q_size, q_size + kv_size};
      run_rows = head;
      out_width = q_size;
      shape.head_dim = shape.q_size = shape.kv_size = head;
      shape.rope_theta = real(call, "rope_theta");
    } else {
      firsts = {0, (rows - run_rows) / 8 * 4, rows - run_rows};
    }
    const auto start = floats(std::size_t{tokens_} * out_width);
    const gpu::buffer out = filled(start, std::size_t{width_} * out_width), keys = room(cache_of(call).key_bytes), values = room(cache_of(call).value_bytes),
                      memory = memory_of(state());
    named_buffers buffers{{"input", &in}, {"output", &out}, {"state", &memory}, {"keys", &keys}, {"values", &values}};
    if (before == prologue::quantized) buffers.emplace_back("factors", &sums);
    run(call, buffers);
    const auto expect = [&](std::span<const std::uint32_t> words, std::span<const float> scales, std::span<float> output, std::span<std::byte> k = {}, std::span<std::byte> v = {}) {
      if (rounds) reference::ternary_matmul(shape, codes, factors, words, scales, output, position, k, v);
      else reference::ternary_float(shape, plain, words, scales, output, position, k, v);
    };

    const auto scales = weight<float>(operand(call, "scales"), 0, table_->weights[operand(call, "scales").slot].bytes / 4);
    const auto tiles = [&](std::uint32_t first) { return weight<std::uint32_t>(operand(call, "weight"), std::uint64_t{first} * columns / 16, std::uint64_t{run_rows} * columns / 16); };
    if (how == epilogue::rope_cache) {
      shape.rows = 3 * head;
      std::vector<std::uint32_t> words;
      for (const std::uint32_t first : firsts) {
        const auto part = tiles(first);
        words.insert(words.end(), part.begin(), part.end());
      }
      const std::size_t element = shape.cache_element == kernels::element::f32 ? 4 : 2;
      std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape.context) * element), v(kernels::value_cache_elements(1, head, shape.context) * element);
      std::vector<float> q(std::size_t{tokens_} * head);
      expect(words, scales, q, k, v);
      return std::max(apart(last_heads(out, q_size, head), q), caches_apart(keys, k, values, v, element));
    }
    double worst = 0;
    const std::uint32_t halves = how == epilogue::gated ? 2 : 1;
    shape.rows = run_rows;
    for (const std::uint32_t first : firsts) {
      std::vector<float> expected, found;
      for (std::uint32_t t = 0; t < tokens_; ++t) {
        const std::size_t at = std::size_t{t} * out_width + first / halves, count = run_rows / halves;
        expected.insert(expected.end(), start.begin() + static_cast<std::ptrdiff_t>(at), start.begin() + static_cast<std::ptrdiff_t>(at + count));
        const auto row = read<float>(out, at, count);
        found.insert(found.end(), row.begin(), row.end());
      }
      expect(tiles(first), scales, expected);
      worst = std::max(worst, apart(found, expected));
    }
    return worst;
  }

  /// As numbers: the device's own root may be a little off.
  double fixed(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width");
    const std::size_t rows = std::size_t{tokens_} * constant(call, "rows_per_token"), room_for = std::size_t{width_} * constant(call, "rows_per_token");
    const auto values = floats(rows * width);
    const gpu::buffer in = filled(values, room_for * width), out = room(std::uint64_t{4} * room_for * kernels::fixed_words(width)), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}});
    const bool tiled = kernels_->takes_tiles(call, rows_);
    const auto tiles = read<std::uint32_t>(out, 0, tiled ? (tokens_ + 7) / 8 * 8 * kernels::fixed_words(width) : 0);
    double worst = 0;
    std::vector<std::uint32_t> expected;
    for (std::size_t t = 0; t < rows; ++t) {
      std::vector<float> y(values.begin() + static_cast<std::ptrdiff_t>(t * width), values.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
      if (static_cast<kernels::prologue>(constant(call, "prologue")) == kernels::prologue::norm)
        reference::rms_norm(std::span(values).subspan(t * width, width), weight<float>(operand(call, "norm_weight"), 0, width), real(call, "eps"), y);
      const auto found = tiled ? reference::untiled_words(tiles, width, t) : read<std::uint32_t>(out, t * kernels::fixed_words(width), kernels::fixed_words(width));
      const auto numbers = reference::fixed_values(found);
      const auto words = reference::fixed_words(numbers);
      worst = std::max({worst, apart(numbers, y), tiled || words == found ? 0.0 : 1.0});
      expected.insert(expected.end(), words.begin(), words.end());
    }
    return tiled && reference::tiled_words(expected, width) != tiles ? 1.0 : worst;
  }

  double halves(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width");
    const auto values = floats(std::size_t{tokens_} * width);
    const gpu::buffer in = filled(values, std::size_t{width_} * width), out = room(std::uint64_t{2} * width_ * width), factors = room(std::uint64_t{4} * width_), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"factors", &factors}, {"state", &memory}});
    const auto found = read<std::uint16_t>(out, 0, values.size());
    const auto found_factors = read<float>(factors, 0, tokens_);
    double worst = 0;
    for (std::size_t t = 0; t < tokens_; ++t) {
      std::vector<float> y(values.begin() + static_cast<std::ptrdiff_t>(t * width), values.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
      if (static_cast<kernels::prologue>(constant(call, "prologue")) == kernels::prologue::norm)
        reference::rms_norm(std::span(values).subspan(t * width, width), weight<float>(operand(call, "norm_weight"), 0, width), real(call, "eps"), y);
      const auto expected = reference::halves(y);
      std::vector<float> widened(width);
      for (std::uint32_t c = 0; c < width; ++c) {
        y[c] = f32_from_f16(expected.bits[c]) * expected.factor;
        widened[c] = f32_from_f16(found[t * width + c]) * found_factors[t];
      }
      worst = std::max(worst, apart(widened, y));
    }
    return worst;
  }

  /// Of every token's experts a few rows.
  double expert_matmul(const plan::dispatch& call) {
    reference::matmul_shape shape;
    shape.columns = constant(call, "columns");
    shape.codec = static_cast<kernels::codec>(constant(call, "codec"));
    shape.epilogue = static_cast<kernels::epilogue>(constant(call, "epilogue"));
    shape.gate = call.act();
    const std::uint32_t columns = shape.columns, rows = constant(call, "rows"), used = constant(call, "experts_used"), experts = table_->weights[operand(call, "weight").slot].rows / rows;
    const std::uint32_t parts = shape.epilogue == kernels::epilogue::gated ? 2 : 1, out_width = rows / parts, run_rows = std::min(rows, 32u);
    const std::size_t outputs = std::size_t{tokens_} * used, inputs = constant(call, "own_input") != 0 ? outputs : tokens_;
    const bool few = call.kernel == kernels::kernel::matmul_few;
    const std::uint32_t list_tokens = few ? constant(call, "list_tokens") : constant(call, "tile_tokens") > 1 ? constant(call, "tile_tokens") : 0;
    const auto values = floats(inputs * columns);
    std::vector<float> input = values;
    std::vector<std::uint32_t> prepared;
    for (std::size_t at = 0; at < values.size(); at += columns) {
      const auto of_row = std::span(values).subspan(at, columns);
      if (few) std::ranges::copy(reference::fixed_words(of_row), std::back_inserter(prepared));
      else if (static_cast<kernels::prologue>(constant(call, "prologue")) == kernels::prologue::norm)
        reference::rms_norm(of_row, weight<float>(operand(call, "norm_weight"), 0, columns), real(call, "eps"), std::span(input).subspan(at, columns));
    }
    std::vector<std::uint32_t> choice(2 * outputs);
    for (std::uint32_t t = 0; t < tokens_; ++t)
      for (std::uint32_t j = 0; j < used; ++j) choice[t * 2 * used + j] = (experts - 1 + t % 2 + j * 3) % experts;
    std::vector<std::uint32_t> which = choice;
    if (list_tokens != 0) {
      which.assign(std::size_t{kernels::expert_tile_count(width_, experts, used, list_tokens)} * (list_tokens + 2), 0);
      reference::expert_tiles(choice, used, experts, list_tokens, which);
    }
    const gpu::buffer in = few ? filled(prepared, width_ * used * std::size_t{kernels::fixed_words(columns)}) : filled(values, width_ * used * std::size_t{columns}),
                      chosen = filled(which, std::size_t{2} * width_ * used), out = room(std::uint64_t{4} * width_ * used * out_width), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}, {few ? "tiles" : "choice", &chosen}});
    const std::uint64_t group_bytes = kernels::matmul_group_bytes(shape.codec, columns);
    shape.rows = run_rows;
    double worst = 0;
    for (std::size_t row = 0; row < outputs; ++row)
      for (const std::uint32_t first : {0u, (rows - run_rows) / 4 * 4}) {
        const std::uint32_t expert = choice[row / used * 2 * used + row % used];
        std::vector<float> expected(run_rows / parts);
        reference::matmul(shape, std::span(input).subspan((inputs == outputs ? row : row / used) * columns, columns),
                          weight<std::byte>(operand(call, "weight"), (std::uint64_t{expert} * rows + first) / 4 * group_bytes, run_rows / 4 * group_bytes), expected);
        worst = std::max(worst, apart(read<float>(out, row * out_width + first / parts, expected.size()), expected));
      }
    return worst;
  }

  double route(const plan::dispatch& call) {
    const std::uint32_t experts = constant(call, "experts"), used = constant(call, "experts_used");
    auto logits = floats(std::size_t{tokens_} * experts);
    logits[experts - 1] = logits[0];  // a tie
    const gpu::buffer in = filled(logits, std::size_t{width_} * experts), out = room(std::uint64_t{8} * width_ * used), memory = memory_of(state());
    run(call, {{"logits", &in}, {"choice", &out}, {"state", &memory}});
    double worst = 0;
    for (std::size_t t = 0; t < tokens_; ++t) {
      std::vector<std::uint32_t> expected(2 * used);
      reference::route(std::span(logits).subspan(t * experts, experts), expected);
      const auto found = read<std::uint32_t>(out, t * 2 * used, 2 * used);
      if (!std::equal(found.begin(), found.begin() + used, expected.begin())) return 1;
      for (std::size_t j = used; j < 2 * used; ++j) worst = std::max(worst, static_cast<double>(std::abs(std::bit_cast<float>(found[j]) - std::bit_cast<float>(expected[j]))));
    }
    return worst;
  }

  /// As many pairs in each list as the kernel finds, and which.
  double expert_tiles(const plan::dispatch& call) {
    const std::uint32_t experts = constant(call, "experts"), used = constant(call, "experts_used"), list_tokens = constant(call, "list_tokens"), words = list_tokens + 2;
    std::vector<std::uint32_t> choice(std::size_t{2} * tokens_ * used);
    for (std::uint32_t t = 0; t < tokens_; ++t)
      for (std::uint32_t j = 0; j < used; ++j) choice[t * 2 * used + j] = (experts - 1 + t % 3 + j) % experts;
    std::vector<std::uint32_t> expected(std::size_t{constant(call, "tiles")} * words);
    reference::expert_tiles(choice, used, experts, list_tokens, expected);
    const gpu::buffer chosen = filled(choice, std::size_t{2} * width_ * used), out = filled(std::vector<std::uint32_t>(expected.size(), ~0u), 0), memory = memory_of(state());
    run(call, {{"choice", &chosen}, {"output", &out}, {"state", &memory}});
    const auto found = read<std::uint32_t>(out, 0, expected.size());
    for (std::size_t at = 0; at < expected.size(); at += words) {
      if (found[at + 1] != expected[at + 1]) return 1;
      if (expected[at + 1] != 0 && (found[at] != expected[at] || !std::equal(expected.begin() + static_cast<std::ptrdiff_t>(at + 2), expected.begin() + static_cast<std::ptrdiff_t>(at + 2 + expected[at + 1]), found.begin() + static_cast<std::ptrdiff_t>(at + 2)))) return 1;
    }
    return 0;
  }

  double expert_sum(const plan::dispatch& call) {
    const std::size_t width = constant(call, "width"), used = constant(call, "experts_used");
    const auto values = floats(tokens_ * used * width), start = floats(tokens_ * width), weights = floats(2 * tokens_ * used);
    std::vector<std::uint32_t> choice;
    for (const float each : weights) choice.push_back(std::bit_cast<std::uint32_t>(each));
    std::vector<float> expected = start;
    reference::expert_sum(values, choice, used, width, expected);
    const gpu::buffer in = filled(values, width_ * used * width), chosen = filled(choice, 2 * width_ * used), out = filled(start, width_ * width), memory = memory_of(state());
    run(call, {{"input", &in}, {"choice", &chosen}, {"output", &out}, {"state", &memory}});
    return apart(read<float>(out, 0, expected.size()), expected);
  }

  /// A few rows of a product, or a head each of q, k and v.
  double matmul(const plan::dispatch& call) {
    using kernels::epilogue;
    reference::matmul_shape shape;
    shape.columns = constant(call, "columns");
    shape.codec = static_cast<kernels::codec>(constant(call, "codec"));
    shape.epilogue = static_cast<epilogue>(constant(call, "epilogue"));
    shape.gate = call.act();
    shape.context = constant(call, "context");
    const bool few = call.kernel == kernels::kernel::matmul_few;
    shape.ring = !few && constant(call, "ring") != 0;
    shape.cache_element = static_cast<kernels::element>(constant(call, "cache_element"));
    const std::uint32_t columns = shape.columns, rows = constant(call, "rows"), q_size = constant(call, "q_size"), kv_size = constant(call, "kv_size"), head = constant(call, "head_dim");
    const bool turns = shape.epilogue == epilogue::rope_cache;
    const std::uint32_t out_width = turns ? q_size : shape.epilogue == epilogue::gated ? rows / 2 : rows;
    const auto values = floats(std::size_t{tokens_} * columns), start = floats(std::size_t{tokens_} * out_width);
    std::vector<float> input = values;
    const bool chunk = call.kernel == kernels::kernel::matmul_chunk;
    if (!chunk && !few && static_cast<kernels::prologue>(constant(call, "prologue")) == kernels::prologue::norm)
      for (std::size_t at = 0; at < values.size(); at += columns)
        reference::rms_norm(std::span(values).subspan(at, columns), weight<float>(operand(call, "norm_weight"), 0, columns), real(call, "eps"), std::span(input).subspan(at, columns));
    std::vector<reference::halves_of_token> halved;
    std::vector<std::uint16_t> bits;
    std::vector<float> factor;
    for (std::size_t at = 0; chunk && at < values.size(); at += columns) {
      halved.push_back(reference::halves(std::span(values).subspan(at, columns)));
      bits.insert(bits.end(), halved.back().bits.begin(), halved.back().bits.end());
      factor.push_back(halved.back().factor);
    }
    std::vector<std::uint32_t> prepared;
    for (std::size_t at = 0; few && at < values.size(); at += columns) {
      const auto words = reference::fixed_words(std::span(values).subspan(at, columns));
      prepared.insert(prepared.end(), words.begin(), words.end());
    }
    if (few && kernels_->takes_tiles(call, rows_)) prepared = reference::tiled_words(prepared, columns);
    const gpu::buffer in = chunk ? filled(bits, std::size_t{width_} * columns) : few ? filled(prepared, std::size_t{width_} * kernels::fixed_words(columns)) : filled(values, std::size_t{width_} * columns), factors = filled(factor, width_),
                      out = filled(start, std::size_t{width_} * out_width), keys = room(cache_of(call).key_bytes), cached = room(cache_of(call).value_bytes),
                      memory = memory_of(state());
    named_buffers buffers{{"input", &in}, {"output", &out}, {"state", &memory}, {"keys", &keys}, {"values", &cached}};
    if (chunk) buffers.emplace_back("factors", &factors);
    const bool keeps_gates = call.kernel == kernels::kernel::matmul && operand(call, "gates").where != plan::region::none;
    gpu::buffer gates;
    if (keeps_gates) gates = room(std::uint64_t{4} * width_ * out_width), buffers.emplace_back("gates", &gates);
    run(call, buffers);
    const auto expect = [&](std::span<const std::byte> weights, std::span<float> y, std::span<std::byte> k = {}, std::span<std::byte> v = {}, std::span<const std::uint64_t> turned = {},
                            std::span<float> kept = {}) {
      if (chunk) reference::matmul_chunk(shape, halved, weights, y, position, k, v, turned);
      else reference::matmul(shape, input, weights, y, position, k, v, turned, kept);
    };
    const std::uint64_t group_bytes = kernels::matmul_group_bytes(shape.codec, columns);
    const auto groups = [&](std::uint32_t first, std::uint32_t count) {
      return weight<std::byte>(operand(call, "weight"), first / 4 * group_bytes, (count + 3) / 4 * group_bytes);
    };
    if (turns) {
      shape.head_dim = shape.q_size = shape.kv_size = head;
      shape.rows = 3 * head;
      std::vector<std::byte> of_heads;
      for (const std::uint32_t first : {q_size - head, q_size, q_size + kv_size}) {
        const auto part = groups(first, head);
        of_heads.insert(of_heads.end(), part.begin(), part.end());
      }
      std::vector<float> q(std::size_t{tokens_} * head);
      const std::size_t element = shape.cache_element == kernels::element::f32 ? 4 : 2;
      std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape.context) * element), v(kernels::value_cache_elements(1, head, shape.context) * element);
      expect(of_heads, q, k, v, weight<std::uint64_t>(operand(call, "rope"), 0, head / 2));
      return std::max(apart(last_heads(out, q_size, head), q), caches_apart(keys, k, cached, v, element));
    }
    double worst = 0;
    const std::uint32_t halves = shape.epilogue == epilogue::gated ? 2 : 1;
    for (const std::uint32_t first : {0u, rows / 8 * 4, (rows - 1) / 4 * 4}) {
      shape.rows = std::min(rows - first, 16u);
      std::vector<float> expected, found;
      for (std::uint32_t t = 0; t < tokens_; ++t) {
        const std::size_t at = std::size_t{t} * out_width + first / halves, count = shape.rows / halves;
        expected.insert(expected.end(), start.begin() + static_cast<std::ptrdiff_t>(at), start.begin() + static_cast<std::ptrdiff_t>(at + count));
        const auto row = read<float>(out, at, count);
        found.insert(found.end(), row.begin(), row.end());
      }
      std::vector<float> kept(keeps_gates ? expected.size() : 0);
      expect(groups(first, shape.rows), expected, {}, {}, {}, kept);
      worst = std::max(worst, apart(found, expected));
      if (keeps_gates) worst = std::max(worst, apart(read<float>(gates, first / halves, kept.size()), kept));  // of one token
    }
    return worst;
  }

  double head_norm(const plan::dispatch& call) {
    const reference::head_norm_shape shape{constant(call, "heads"), constant(call, "kv_heads"), constant(call, "head_dim"), constant(call, "context"), real(call, "eps"),
                                           constant(call, "ring") != 0, static_cast<kernels::element>(constant(call, "cache_element"))};
    const std::size_t q_size = std::size_t{shape.heads} * shape.head_dim, in_width = q_size + std::size_t{2} * shape.kv_heads * shape.head_dim;
    const auto input = floats(tokens_ * in_width);
    const gpu::buffer in = filled(input, width_ * in_width), out = room(4 * width_ * q_size), keys = room(cache_of(call).key_bytes),
                      cached = room(cache_of(call).value_bytes), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}, {"keys", &keys}, {"values", &cached}});
    const std::size_t element = shape.cache_element == kernels::element::f32 ? 4 : 2;
    std::vector<std::byte> k(keys.mapped().size()), v(cached.mapped().size());
    std::vector<float> q(tokens_ * q_size);
    reference::head_norm(shape, input, weight<float>(operand(call, "q_norm"), 0, shape.head_dim), weight<float>(operand(call, "k_norm"), 0, shape.head_dim), q, position, k, v,
                         weight<std::uint64_t>(operand(call, "rope"), 0, shape.head_dim / 2));
    return std::max(apart(read<float>(out, 0, q.size()), q), caches_apart(keys, k, cached, v, element));
  }

  double norm_add(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width");
    const auto input = floats(std::size_t{tokens_} * width);
    auto expected = floats(input.size());
    const gpu::buffer in = filled(input, std::size_t{width_} * width), out = filled(expected, std::size_t{width_} * width), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}});
    reference::norm_add(input, weight<float>(operand(call, "norm_weight"), 0, width), real(call, "eps"), expected);
    return apart(read<float>(out, 0, expected.size()), expected);
  }

  double rms_norm(const plan::dispatch& call) {
    const std::uint32_t width = constant(call, "width");
    const auto input = floats(std::size_t{tokens_} * width), norm = weight<float>(operand(call, "norm_weight"), 0, width);
    const gpu::buffer in = filled(input, std::size_t{width_} * width), out = room(std::uint64_t{4} * width_ * width), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}});
    std::vector<float> expected(input.size());
    for (std::size_t t = 0; t < tokens_; ++t) reference::rms_norm(std::span(input).subspan(t * width, width), norm, real(call, "eps"), std::span(expected).subspan(t * width, width));
    return apart(read<float>(out, 0, expected.size()), expected);
  }

  /// Of each token the last head of f32 [tokens, q_size].
  std::vector<float> last_heads(const gpu::buffer& from, std::uint32_t q_size, std::uint32_t head) const {
    std::vector<float> out;
    for (std::uint32_t t = 0; t < tokens_; ++t) {
      const auto row = read<float>(from, std::size_t{t} * q_size + q_size - head, head);
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }
  /// The same of what lies at the beginning of caches: all of them, or their first head.
  static double caches_apart(const gpu::buffer& keys, std::span<const std::byte> k, const gpu::buffer& values, std::span<const std::byte> v, std::size_t element) {
    return std::max(apart(cache_floats(keys.mapped().first(k.size()), element), cache_floats(k, element)),
                    apart(cache_floats(values.mapped().first(v.size()), element), cache_floats(v, element)));
  }

  /// f16 or f32 bytes as numbers.
  static std::vector<float> cache_floats(std::span<const std::byte> bytes, std::size_t element) {
    std::vector<float> out(bytes.size() / element);
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint16_t half = 0;
      if (element == 4) std::memcpy(&out[i], bytes.data() + 4 * i, 4);
      else std::memcpy(&half, bytes.data() + 2 * i, 2), out[i] = f32_from_f16(half);
    }
    return out;
  }

  double attention(const plan::dispatch& call) {
    reference::attention_shape shape{constant(call, "heads"), constant(call, "kv_heads"), constant(call, "head_dim"), constant(call, "context"),
                                     static_cast<kernels::element>(constant(call, "cache_element")), real(call, "scale"), constant(call, "window"), constant(call, "ring") != 0};
    const std::size_t size = std::size_t{shape.heads} * shape.head_dim, element = shape.cache_element == kernels::element::f32 ? 4 : 2;
    const bool few = call.kernel == kernels::kernel::attention_few, alone = call.kernel == kernels::kernel::attention, chunk = !few && !alone;
    const std::uint32_t splits = alone ? constant(call, "splits") : 1;
    // One span, and where spans are merged two of them: where several workgroups do it twice, since the counters must be as before.
    const std::uint32_t latest = std::min(shape.context, table_->context) - tokens_;  // a pool has more positions than a slot may take
    std::vector<std::uint32_t> positions{std::min(position, latest)};
    if (splits > 1) positions.insert(positions.end(), 2, std::min(kernels::attention_span + position, latest));
    if (chunk || few) positions.push_back(std::min(kernels::attention_span - position, latest));
    if (batched_) positions.push_back(std::min(kernels::attention_span - 1, latest));
    std::uint32_t filled_positions = *std::max_element(positions.begin(), positions.end()) + tokens_;
    if (shape.ring) {  // once around
      positions.push_back(shape.context + position);
      filled_positions = shape.context;
    }
    const auto query = floats(tokens_ * size);
    const gpu::buffer in = filled(query, width_ * size), keys = room(cache_of(call).key_bytes), values = room(cache_of(call).value_bytes),
                      partials = room(kernels::attention_partial_bytes(width_, shape.heads, splits, shape.head_dim)), counters = room(kernels::attention_counter_bytes(width_, shape.heads));
    for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
      for (std::uint32_t at = 0; at < filled_positions; ++at)
        for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
          put(keys, kernels::key_cache_index(head, at, c, shape.head_dim, shape.context), element);
          put(values, kernels::value_cache_index(head, at, c, shape.head_dim, shape.context), element);
        }
    double worst = 0;
    for (const std::uint32_t first : positions) {
      const gpu::buffer out = room(4 * width_ * size), memory = memory_of(state(first));
      named_buffers buffers{{"query", &in}, {"keys", &keys}, {"values", &values}, {"output", &out}, {"state", &memory}};
      if (alone) buffers.insert(buffers.end(), {{"partials", &partials}, {"counters", &counters}});
      run(call, buffers);
      std::vector<float> expected(query.size());
      reference::attention(shape, query, keys.mapped(), values.mapped(), first, tokens_, expected);
      worst = std::max(worst, apart(read<float>(out, 0, expected.size()), expected));
    }
    return worst;
  }

  /// A made-up number as an element of a cache.
  void put(const gpu::buffer& cache, std::uint64_t at, std::size_t element) {
    const float value = floats(1)[0];
    const std::uint16_t half = f16_from_f32(value);
    if (element == 4) std::memcpy(cache.mapped().data() + 4 * at, &value, 4);
    else std::memcpy(cache.mapped().data() + 2 * at, &half, 2);
  }

  double dense_matmul(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), some = std::min(rows, 8u);
    const auto type = static_cast<kernels::element>(constant(call, "weight_element"));
    const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
    const auto values = floats(std::size_t{tokens_} * columns), norm = weight<float>(operand(call, "norm_weight"), 0, columns);
    const gpu::buffer in = filled(values, std::size_t{width_} * columns), out = room(std::uint64_t{4} * width_ * rows), memory = memory_of(state()),
                      firsts = room(std::uint64_t{8} * width_ * call.groups[0]);
    const bool finds_first = constant(call, "keeps_firsts") != 0;
    named_buffers buffers{{"input", &in}, {"output", &out}, {"state", &memory}};
    if (finds_first) buffers.emplace_back("firsts", &firsts);
    run(call, buffers);
    if (finds_first && first_of(firsts, call.groups[0]) != reference::first_ranked(read<float>(out, 0, rows))) return 1;
    double worst = 0;
    for (const std::uint32_t first : {0u, rows - some}) {
      std::vector<float> expected(std::size_t{tokens_} * some), found;
      reference::dense_matmul(values, norm, weight<std::byte>(operand(call, "weight"), first * row_bytes, some * row_bytes), type, columns, some, real(call, "eps"), expected);
      for (std::uint32_t t = 0; t < tokens_; ++t) {
        const auto row = read<float>(out, std::size_t{t} * rows + first, some);
        found.insert(found.end(), row.begin(), row.end());
      }
      worst = std::max(worst, apart(found, expected));
    }
    return worst;
  }

  double dense_few(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), some = std::min(rows, 8u);
    const auto type = static_cast<kernels::element>(constant(call, "weight_element"));
    const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
    const auto values = floats(std::size_t{tokens_} * columns);
    const gpu::buffer in = filled(values, std::size_t{width_} * columns), out = room(std::uint64_t{4} * width_ * rows), memory = memory_of(state());
    run(call, {{"input", &in}, {"output", &out}, {"state", &memory}});
    double worst = 0;
    for (const std::uint32_t first : {0u, rows - some}) {
      std::vector<float> expected(std::size_t{tokens_} * some), found;
      reference::dense_few(values, weight<std::byte>(operand(call, "weight"), first * row_bytes, some * row_bytes), type, columns, some, expected);
      for (std::uint32_t t = 0; t < tokens_; ++t) {
        const auto row = read<float>(out, std::size_t{t} * rows + first, some);
        found.insert(found.end(), row.begin(), row.end());
      }
      worst = std::max(worst, apart(found, expected));
    }
    return worst;
  }

  static reference::ranked_token first_of(const gpu::buffer& firsts, std::uint32_t groups) {
    const auto found = read<reference::ranked_token>(firsts, 0, groups);
    return *std::max_element(found.begin(), found.end());
  }

  /// Bounds that are none, or that are far wider than they need to be, count as apart.
  double head_screen(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows"), some = std::min(rows, 8u);
    const auto values = floats(columns), norm = weight<float>(operand(call, "norm_weight"), 0, columns);
    const gpu::buffer in = filled(values, columns), bounds = room(std::uint64_t{4} * rows), y = room(std::uint64_t{4} * columns), lowest = room(std::uint64_t{4} * call.groups[0]),
                      memory = memory_of(state());
    run(call, {{"input", &in}, {"bounds", &bounds}, {"y", &y}, {"lowest", &lowest}, {"state", &memory}});
    const auto found_lowest = read<float>(lowest, 0, call.groups[0]);
    const float least = *std::max_element(found_lowest.begin(), found_lowest.end());
    const auto upper = read<float>(bounds, 0, rows);
    if (!(*std::max_element(upper.begin(), upper.end()) >= least)) return 1;
    double worst = 0;
    for (const std::uint32_t first : {0u, rows - some}) {
      const auto codes = weight<std::int8_t>(operand(call, "codes"), std::uint64_t{first} * columns, std::uint64_t{some} * columns);
      const auto expected = reference::head_screen(values, norm, codes, weight<float>(operand(call, "scales"), first, some), real(call, "eps"));
      worst = std::max(worst, apart(read<float>(y, 0, columns), expected.y));
      for (std::uint32_t i = 0; i < some; ++i) {
        const double width = static_cast<double>(expected.upper[i]) - expected.lower[i], above = static_cast<double>(upper[first + i]) - expected.upper[i];
        if (std::isinf(expected.upper[i])) worst = std::max(worst, std::isinf(upper[first + i]) ? 0.0 : 1.0);
        else if (!(above >= -1e-3 * width && above <= 0.1 * width) || !(least >= expected.lower[i] - 0.1 * width)) return 1;
      }
    }
    return worst;
  }

  /// Bounds of which every 97th is to be computed, for greedy and for top-k; then all of them, as a high temperature wants it.
  double head_rescore(const plan::dispatch& call) {
    const std::uint32_t columns = constant(call, "columns"), rows = constant(call, "rows");
    const auto type = static_cast<kernels::element>(constant(call, "weight_element"));
    const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
    const auto y = floats(columns);
    double worst = 0;
    for (const sampling_options& options : {sampling_options{}, sampling_options{.temperature = 4.0f, .top_k = 20}, sampling_options{.temperature = 4.0f}}) {
      auto words = state();
      write_sampling(options, words);
      const bool all = reference::screening_of(reference::sampling_of(words), position + tokens_, rows, call.groups[0]).rank == 0;
      std::vector<float> bounds(rows, -1e30f);
      for (std::uint32_t row = rows % 97 / 2; row < rows; row += 97) bounds[row] = 1e30f;
      const auto start = bounds;
      const gpu::buffer in = filled(y, columns), out = filled(bounds, rows), lowest = room(std::uint64_t{4} * call.groups[0]), firsts = room(std::uint64_t{8} * call.groups[0]),
                        memory = filled(words, words.size());
      run(call, {{"y", &in}, {"bounds", &out}, {"lowest", &lowest}, {"firsts", &firsts}, {"state", &memory}});
      const auto found = read<float>(out, 0, rows);
      if (first_of(firsts, call.groups[0]) != reference::first_ranked(found)) return 1;
      std::vector<float> found_some, expected_some;
      for (std::uint32_t row = rows % 97 / 2; row < rows; row += 97) {
        if (!all && row >= 97 * 8 && row + 97 < rows) continue;  // some at both ends
        float expected = 1e30f;
        reference::head_rescore(y, weight<std::byte>(operand(call, "weight"), row * row_bytes, row_bytes), type, 0, {&expected, 1});
        found_some.push_back(found[row]), expected_some.push_back(expected);
        if (all && row >= 97 * 8) break;
      }
      worst = std::max(worst, apart(found_some, expected_some));
      for (std::uint32_t row = 0; row < rows; ++row)
        if ((found[row] != start[row]) != (all || start[row] > 0)) return 1;
    }
    return worst;
  }

  double sample(const plan::dispatch& call) {
    const std::uint32_t vocabulary = constant(call, "vocab_size"), draws = batched_ ? width_ : constant(call, "draws"), rows = std::min(draws, tokens_);
    const auto logits = floats(std::size_t{rows} * vocabulary);
    const gpu::buffer in = filled(logits, std::size_t{draws} * vocabulary), ring = room(draws * kernels::ring_bytes(table_->ring_size)),
                      scratch = room(draws * kernels::sample_scratch_bytes(vocabulary)), drawn = room(std::uint64_t{4} * draws), counters = filled(std::vector<std::uint32_t>(draws), draws);
    std::vector<reference::ranked_token> firsts(std::max(constant(call, "first_count"), 1u));
    firsts.back() = reference::first_ranked(std::span(logits).first(vocabulary));
    const gpu::buffer first = filled(firsts, firsts.size());
    // The reference first, while the pipeline, which takes long to compile, may still be made.
    std::vector<std::vector<std::uint32_t>> states, expected;
    for (const sampling_options& options : {sampling_options{}, sampling_options{.temperature = 0.8f, .top_k = 20, .top_p = 0.9f, .min_p = 0.01f, .repeat_penalty = 1.2f, .seed = 7},
                                            sampling_options{.temperature = 1.1f, .seed = 8}, sampling_options{.temperature = 1, .top_p = 0.6f, .seed = 9},
                                            sampling_options{.temperature = 2, .min_p = 0.1f, .seed = 10}, sampling_options{.repeat_penalty = 1.2f}}) {
      if (greedy_ && options.temperature > 0) continue;
      auto& words = states.emplace_back(state());
      words[kernels::state::count] = rows;
      write_sampling(options, words);
      words[kernels::state::repeat_last_n] = std::min(words[kernels::state::repeat_last_n], table_->context);
      auto& tokens = expected.emplace_back();
      for (std::uint32_t i = 0; i < rows; ++i)
        tokens.push_back(reference::successor(std::span(logits).subspan(std::size_t{i} * vocabulary, vocabulary), table_->max_tokens, table_->context, words, i));
    }
    for (std::size_t turn = 0; turn < states.size(); ++turn) {
      const gpu::buffer memory = memory_of(states[turn]);
      run(call, {{"logits", &in}, {"state", &memory}, {"ring", &ring}, {"scratch", &scratch}, {"drawn", &drawn}, {"firsts", &first}, {"counters", &counters}});
      const bool rings = batched_ || draws == 1;
      for (std::uint32_t i = 0; i < rows; ++i)
        if (read<std::uint32_t>(rings ? ring : drawn, batched_ ? std::size_t{i} * table_->ring_size : i, 1)[0] != expected[turn][i]) return 1;
    }
    return 0;
  }

  /// Two drafts, of which the first is right; with two tokens a pass it is the only one.
  double accept(const plan::dispatch& call) {
    const std::uint32_t draws = constant(call, "draws"), count = std::min(draws, 3u);
    std::vector<std::uint32_t> drawn(draws), words = state(), ring(table_->ring_size);
    words[kernels::state::count] = count;
    for (std::uint32_t i = 0; i < draws; ++i) drawn[i] = 3 * i + 1;
    words[kernels::state::tokens + 1] = drawn[0];
    const gpu::buffer in = filled(drawn, draws), memory = filled(words, words.size()), out = room(kernels::ring_bytes(table_->ring_size));
    run(call, {{"drawn", &in}, {"state", &memory}, {"ring", &out}});
    const std::uint32_t taken = reference::accept(drawn, table_->max_tokens, table_->context, words, ring);
    const bool right = read<std::uint32_t>(memory, 0, words.size()) == words && read<std::uint32_t>(out, 0, taken) == std::vector(ring.begin(), ring.begin() + taken) &&
                       read<std::uint32_t>(out, table_->ring_size, 1)[0] == taken;
    return right ? 0 : 1;
  }

  /// To the pool, in pages that do not stand in their order, and back.
  double pages(const plan::dispatch& call) {
    namespace word = kernels::state;
    const std::uint32_t heads = call.groups[1], width = constant(call, "head_dim"), own = constant(call, "positions"), pool = constant(call, "context"), page = constant(call, "page_size");
    const std::size_t element = static_cast<kernels::element>(constant(call, "cache_element")) == kernels::element::f32 ? 4 : 2;
    const std::uint32_t count = std::min({own, page + std::min(page, 11u), table_->context});
    const plan::layer_cache &alone = table_->caches[call.block], all = table_->pool(call.block);
    const gpu::buffer keys = room(alone.key_bytes), values = room(alone.value_bytes), pool_keys = room(all.key_bytes), pool_values = room(all.value_bytes), back_keys = room(alone.key_bytes),
                      back_values = room(alone.value_bytes);
    auto words = slots_of(state());
    const std::uint32_t last = table_->shape.pages - 1;
    words[word::first_slot + word::page_table] = last;
    if (table_->slot_pages() > 1) words[word::first_slot + word::page_table + 1] = 0;
    const auto place = [&](std::uint32_t position) { return (position < page ? last : 0) * page + position % page; };
    const auto each = [&](auto&& does) {
      for (std::uint32_t head = 0; head < heads; ++head)
        for (std::uint32_t at = 0; at < count; ++at)
          for (std::uint32_t c = 0; c < width; ++c) {
            does(keys, back_keys, pool_keys, kernels::key_cache_index(head, at, c, width, own), kernels::key_cache_index(head, place(at), c, width, pool));
            does(values, back_values, pool_values, kernels::value_cache_index(head, at, c, width, own), kernels::value_cache_index(head, place(at), c, width, pool));
          }
    };
    each([&](const gpu::buffer& from, const gpu::buffer&, const gpu::buffer&, std::uint64_t at, std::uint64_t) { put(from, at, element); });
    words[word::move_end] = (count + kernels::cache_octet - 1) / kernels::cache_octet;
    for (const std::uint32_t way : {word::move_to_pool, word::move_from_pool}) {
      words[word::move] = way;
      const gpu::buffer memory = filled(words, 0);
      const bool there = way == word::move_to_pool;
      run(call, {{"keys", there ? &keys : &back_keys}, {"values", there ? &values : &back_values}, {"pool_keys", &pool_keys}, {"pool_values", &pool_values}, {"state", &memory}});
    }
    bool same = true;
    const auto equal = [&](const gpu::buffer& a, std::uint64_t i, const gpu::buffer& b, std::uint64_t k) {
      return std::memcmp(a.mapped().data() + element * i, b.mapped().data() + element * k, element) == 0;
    };
    each([&](const gpu::buffer& from, const gpu::buffer& back, const gpu::buffer& in, std::uint64_t at, std::uint64_t in_pool) { same = same && equal(from, at, in, in_pool) && equal(from, at, back, at); });
    return same ? 0 : 1;
  }

  gpu::device device_;
  const plan::table* table_;
  const kernel_set* kernels_;
  const weight_memory* weights_;
  std::uint32_t tokens_ = 1, width_ = 1, rows_ = 0, random_ = 12345;  // rows_: of a pass over fewer than all
  bool batched_ = false, greedy_ = false;
  gpu::queue queue_;
  gpu::transfer transfer_;
};

/// Holds the dispatches of sequences against the reference, several at a time, each as soon as its pipeline is made.
/// @param draws with the form that draws of samplers that have another one
/// @return the first fault in their order, as far as they came  @error device_lost, out_of_memory; as of kernel_set::of
inline kernel_fault prove_kernels(const gpu::device& on, const plan::table& table, const kernel_set& kernels, const weight_memory& weights, std::span<const plan::sequence* const> sequences,
                                  bool draws = true) {
  std::vector<kernel_proof::claim> claims;
  for (const plan::sequence* each : sequences) {
    const auto some = kernel_proof::claims_of(*each, kernels);
    std::copy_if(some.begin(), some.end(), std::back_inserter(claims), [&](const auto& each) { return draws || each.greedy || !each.has_greedy; });
  }
  std::vector<kernel_fault> faults(claims.size());
  std::vector<std::exception_ptr> failures(claims.size() + 1);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ended{false};
  const auto work = [&]() noexcept {
    std::size_t i = claims.size();  // while the proof has no memory yet
    try {
      kernel_proof proof(on, table, kernels, weights);
      for (i = next++; i < claims.size() && !ended; i = next++)
        if (faults[i] = proof.check(claims[i]); !faults[i].kernel.empty()) ended = true;
    } catch (...) {
      failures[i] = std::current_exception();
      ended = true;
    }
  };
  {
    std::vector<std::jthread> workers;
    try {
      for (std::size_t i = 1; i < std::min<std::size_t>({8, std::max(1u, std::thread::hardware_concurrency()), claims.size()}); ++i) workers.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads to be had
    }
    work();
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (kernel_fault& fault : faults)
    if (!fault.kernel.empty()) return std::move(fault);
  return {};
}

}  // namespace intaglio::runtime
