// SPDX-License-Identifier: MIT
// Every kind of dispatch of a plan under GPU-assisted validation: each operand in a buffer of exactly the bytes that the plan states, the
// session's state out of all bounds. The layer must be silent, and must speak where an operand is a word shorter than stated.
#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "gpu/planted_messages.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/kernel_set.hpp"

using namespace intaglio;

namespace {

// Small: the layer's check looks for an address in a loop over all operands, and llvmpipe up to Mesa 24 leaves every loop at once when an
// invocation has taken 65,535 turns, those of all its loops added up (LP_MAX_TGSI_LOOP_ITERATIONS). The check then finds nothing and
// reports addresses that are right. Mesa 25.0 has no such limit.
// Uneven: a vocabulary of no whole quads or words, a context of two spans that ends inside an octet.
constexpr decoder_config small_config{
    .model_type = architecture::bitnet, .hidden_size = 128, .intermediate_size = 128, .num_hidden_layers = 1, .num_attention_heads = 4,
    .num_key_value_heads = 2, .head_dim = 32, .vocab_size = 261, .max_position_embeddings = 300, .rope_theta = 10'000.f, .rms_norm_eps = 1e-5f};
constexpr decoder_config small_silu_config = [] {
  auto out = small_config;
  out.hidden_act = activation::silu;
  out.activation_type = dtype::f32;
  return out;
}();
using small = models::bitnet_b158<small_config>;
using small_silu = models::bitnet_b158<small_silu_config, dtype::i2_s, dtype::f32, dtype::f32>;
/// The shipped profile with short chunks in narrow tiles, which llvmpipe compiles in a fifth of the time.
constexpr plan::profile quick(plan::profile of) {
  of.prefill_tokens = 6;
  of.tile_tokens = 2;
  return of;
}
constexpr plan::profile cpu = quick(plan::profiles::cpu), portable = quick(plan::profiles::portable);
using plan::engraved;

/// Plans with the modules that run them; lavapipe runs them all.
struct form {
  const plan::table* table;
  runtime::kernel_modules modules;
};
const form forms[] = {{&engraved<small, cpu>::table, {.wide_loads = true}},           {&engraved<small_silu, cpu>::table, {.wide_loads = true}},
                      {&engraved<small, portable>::table, {.integer_dot = true}},     {&engraved<small, portable>::table, {.integer_dot = false}},
                      {&engraved<small_silu, portable>::table, {.integer_dot = false}}};
constexpr std::size_t module_count = 13;  // of kernel_modules::of, all variants

/// Bytes behind each push constant as the plan's accesses state them; one that starts at no operand goes on where another ends.
std::vector<std::uint64_t> stated_bytes(const plan::dispatch& call) {
  const std::span accesses = std::span(call.accesses).first(call.access_count);
  const std::span operands = std::span(call.push).first(kernels::interface_of(call.kernel).push_count());
  std::vector<std::uint64_t> out;
  for (const plan::operand& own : operands) {
    std::uint64_t end = own.offset;
    for (const plan::access& a : accesses) {
      if (a.where != own.where || a.slot != own.slot) continue;
      const bool has_operand = std::ranges::any_of(operands, [&](const plan::operand& o) { return o.where == a.where && o.slot == a.slot && o.offset == a.offset; });
      if (has_operand ? a.offset == own.offset : a.offset == end) end = std::max(end, a.offset + a.bytes);
    }
    out.push_back(own.where == plan::region::none ? 0 : end - own.offset);
  }
  return out;
}

/// The operands of one dispatch, each a buffer of its own, all in one allocation in the order of the push constants: what the layer does
/// does not depend on where an allocator puts them. They stand far apart, each between two guards of poison: layer 1.3.239 looks at loads
/// and stores, not at atomic operations.
class exact_operands {
 public:
  static constexpr std::size_t gap = 1U << 20U, guard = 1U << 12U;
  static constexpr std::byte poison{0xa5};

  /// @param bytes of each; 0: the kernel does not read it
  exact_operands(const gpu::device& on, std::span<const std::uint64_t> bytes) : push(bytes.size()), contents(bytes.size()), buffers_(bytes.size()) {
    std::vector<std::size_t> offsets(bytes.size());
    std::size_t end = 0;
    std::uint32_t types = std::numeric_limits<std::uint32_t>::max();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      vk::BufferCreateInfo info;
      info.size = bytes[i];
      info.usage = vk::BufferUsageFlagBits::eStorageBuffer | vk::BufferUsageFlagBits::eShaderDeviceAddress;
      VkBuffer made = VK_NULL_HANDLE;
      demand(on.call().vkCreateBuffer(on.handle(), gpu::native(info), nullptr, &made));
      buffers_[i] = {on.on(), made};
      VkMemoryRequirements needs{};
      on.call().vkGetBufferMemoryRequirements(on.handle(), made, &needs);
      types &= needs.memoryTypeBits;
      offsets[i] = static_cast<std::size_t>((end + gap) / needs.alignment * needs.alignment);
      end = offsets[i] + static_cast<std::size_t>(needs.size);
    }
    vk::MemoryAllocateFlagsInfo flags;
    flags.flags = vk::MemoryAllocateFlagBits::eDeviceAddress;
    vk::MemoryAllocateInfo info;
    info.pNext = &flags;
    info.allocationSize = end + gap;
    info.memoryTypeIndex = host_type(on, types);
    VkDeviceMemory memory = VK_NULL_HANDLE;
    demand(on.call().vkAllocateMemory(on.handle(), gpu::native(info), nullptr, &memory));
    memory_ = {on.on(), memory};
    void* place = nullptr;
    demand(on.call().vkMapMemory(on.handle(), memory, 0, VK_WHOLE_SIZE, 0, &place));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      demand(on.call().vkBindBufferMemory(on.handle(), buffers_[i].get(), memory, offsets[i]));
      vk::BufferDeviceAddressInfo which;
      which.buffer = vk::Buffer(buffers_[i].get());
      push[i] = on.call().vkGetBufferDeviceAddress(on.handle(), gpu::native(which));
      contents[i] = {static_cast<std::byte*>(place) + offsets[i], static_cast<std::size_t>(bytes[i])};
      std::fill_n(contents[i].data() - guard, bytes[i] + 2 * guard, poison);
      std::ranges::fill(contents[i], std::byte{0});
    }
  }

  std::vector<std::uint64_t> push;             ///< addresses
  std::vector<std::span<std::byte>> contents;  ///< the host's view

  /// Nothing was written beside the operands.
  bool intact() const {
    const auto clean = [](const std::byte* from) { return std::all_of(from, from + guard, [](std::byte b) { return b == poison; }); };
    return std::ranges::all_of(contents, [&](std::span<std::byte> each) { return each.empty() || (clean(each.data() - guard) && clean(each.data() + each.size())); });
  }

 private:
  static void demand(VkResult result) { REQUIRE(result == VK_SUCCESS); }
  static std::uint32_t host_type(const gpu::device& on, std::uint32_t among) {
    constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkPhysicalDeviceMemoryProperties& memory = on.on()->memory;
    std::uint32_t type = 0;
    while (type < memory.memoryTypeCount && ((among >> type & 1U) == 0 || (memory.memoryTypes[type].propertyFlags & wanted) != wanted)) ++type;
    REQUIRE(type < memory.memoryTypeCount);
    return type;
  }

  gpu::owned_handle<VkDeviceMemory, &gpu::dispatch_table::vkFreeMemory> memory_;
  std::vector<gpu::owned_handle<VkBuffer, &gpu::dispatch_table::vkDestroyBuffer>> buffers_;
};

/// What a session's state may never hold, but does here.
struct wild_state {
  std::uint32_t position, count, id, generated, top_k, repeat_last_n;
  float temperature, top_p;
};

/// The last pass that fits, which touches every operand's last byte; then states at the borders and far beyond them.
std::vector<wild_state> states_of(const plan::table& of, const plan::sequence& in) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t vocab = of.config->vocab_size, context = of.context, tokens = in.max_tokens;
  return {{context - tokens, tokens, vocab - 1, of.ring_size - 1, 40, 64, 0.8f, 0.9f},
          {context - 1, tokens + 1, vocab, of.ring_size, vocab, context, 0.8f, 0.f},
          {context, most, most, most, most, most, 1e-6f, -1.f},
          {context - 1, 0, most, 0, 0, most, 0.f, 1.f},
          {0x80000000U, 0x80000000U, 0x80000000U, 0x80000000U, 0x80000000U, 0x80000000U, no_number, no_number},
          {most, most, vocab + 1, most - 1, vocab + 1, context + 1, std::numeric_limits<float>::infinity(), 1e30f},
          {most - tokens, tokens, vocab, most, 1, 1, 0.8f, 0.9f}};
}

void write_state(const plan::table& of, const wild_state& wild, std::span<std::byte> to) {
  using namespace kernels::state;
  std::vector<std::uint32_t> words(kernels::state::words(of.max_tokens, of.context), wild.id);
  std::fill_n(words.begin(), tokens, 0U);
  words[position] = wild.position;
  words[count] = wild.count;
  words[generated] = wild.generated;
  words[top_k] = wild.top_k;
  words[repeat_last_n] = wild.repeat_last_n;
  words[temperature] = std::bit_cast<std::uint32_t>(wild.temperature);
  words[top_p] = std::bit_cast<std::uint32_t>(wild.top_p);
  words[min_p] = std::bit_cast<std::uint32_t>(0.01f);
  words[repeat_penalty] = std::bit_cast<std::uint32_t>(1.2f);
  std::memcpy(to.data(), words.data(), std::min(to.size(), 4 * words.size()));
}

/// Runs one dispatch with a state; returns how many messages of the layer that gives, and one more where the poison was hurt.
std::size_t complaints_of(const gpu::device& on, const gpu::pipeline& kernel, const plan::table& of, const plan::dispatch& call, const exact_operands& operands,
                          const wild_state& state) {
  const std::size_t before = on.validation_message_count();
  write_state(of, state, operands.contents[kernels::interface_of(call.kernel).push_index("state")]);
  gpu::recorder to(on, kernel.name());
  to.dispatch(kernel, std::as_bytes(std::span(operands.push)), call.groups);
  const gpu::recording commands = to.finish();
  const VkCommandBuffer handle = commands.handle();
  gpu::queue line(on);
  line.wait(line.submit({&handle, 1}, commands.name()), std::chrono::seconds(120));
  return on.validation_message_count() - before + (operands.intact() ? 0 : 1);
}

/// How much shorter than stated an operand must be at least for the last pass that fits to leave it.
std::uint64_t untouched_bytes(const plan::table& of, const plan::dispatch& call, std::string_view operand, std::uint64_t stated) {
  const std::uint32_t element_bytes = of.cache_element == kernels::element::f32 ? 4 : 2;
  if (operand == "keys") return std::uint64_t{(8 - of.context % 8) % 8 * kernels::cache_octet} * element_bytes;  // positions of the last octet past the context
  // Most kernels are given all parameters and read position and count.
  if (operand == "state" && call.kernel != kernels::kernel::embed && call.kernel != kernels::kernel::sample) return stated - 8;
  return 0;
}

}  // namespace

TEST_CASE("no kernel leaves the bytes that the plan states, whatever the session's state holds, and GPU-assisted validation would tell") {
  gpu::device_options options;
  options.validate = gpu::validation::gpu_assisted;
  const gpu::device on(options);
  INFO(on.label());
  REQUIRE(on.validation_messages().empty());  // the layer says here what it cannot check on this device
  const auto usable = runtime::usable_modules(on);
  for (const form& each : forms)
    REQUIRE(std::ranges::any_of(usable, [&](const auto& m) { return m.wide_loads == each.modules.wide_loads && m.integer_dot == each.modules.integer_dot; }));
  std::set<const std::byte*> modules_seen;
  std::set<std::vector<std::uint64_t>> seen;
  for (const form& each : forms) {
    const plan::table& table = *each.table;
    std::vector<std::pair<const plan::sequence*, plan::dispatch>> chosen;
    std::vector<plan::dispatch> calls;
    for (const plan::sequence* in : {&table.decode, &table.prefill, &table.logits})
      for (const auto part : {in->prologue, in->period, in->epilogue})
        for (const plan::dispatch& call : part) {
          std::vector<std::uint64_t> key = stated_bytes(call);
          key.insert(key.end(), call.specialization.begin(), call.specialization.end());
          key.insert(key.end(), call.groups.begin(), call.groups.end());
          const std::byte* const module = each.modules.of(call.kernel).data();
          key.insert(key.end(), {call.subgroups, reinterpret_cast<std::uintptr_t>(module)});
          modules_seen.insert(module);
          if (!seen.insert(key).second) continue;
          chosen.emplace_back(in, call);
          calls.push_back(call);
        }
    runtime::kernel_set kernels(on, each.modules);
    plan::sequence sequence;
    sequence.prologue = calls;
    const plan::sequence* const list[] = {&sequence};
    kernels.add(list, nullptr);
    for (const auto& [in, call] : chosen) {
      const kernels::interface& face = kernels::interface_of(call.kernel);
      const std::vector<std::uint64_t> bytes = stated_bytes(call);
      const std::vector<wild_state> states = states_of(table, *in);
      INFO(table.profile << ", " << in->name << ": " << call.label.view() << " (" << face.name << ")");
      {
        const exact_operands operands(on, bytes);
        for (const wild_state& state : states) {
          INFO("position " << state.position << ", count " << state.count << ", token " << state.id);
          CHECK(complaints_of(on, kernels.of(call), table, call, operands, state) == 0);
        }
      }
      const planted_messages planted;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == 0) continue;
        INFO(face.push[i].name << " a word shorter than its " << bytes[i] << " bytes");
        std::vector<std::uint64_t> shorter = bytes;
        shorter[i] -= 4 + untouched_bytes(table, call, face.push[i].name, bytes[i]);
        CHECK(complaints_of(on, kernels.of(call), table, call, exact_operands(on, shorter), states.front()) > 0);
      }
    }
  }
  CHECK(modules_seen.size() == module_count);
}
