// SPDX-License-Identifier: MIT
// Every kind of dispatch of a plan under GPU-assisted validation: each operand in a buffer of exactly the bytes that
// the plan states, the session's state out of all bounds. The layer must be silent, and must speak where an operand is
// a word shorter than stated.
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
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/engrave_batch.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "validation/exact_operands.hpp"

using namespace intaglio;
using testing::exact_operands, testing::stated_operand, testing::stated_operands;

namespace {

// Small: the layer's check looks for an address in a loop over all operands, and llvmpipe up to Mesa 24 leaves every
// loop at once when an invocation has taken 65,535 turns, those of all its loops added up
// (LP_MAX_TGSI_LOOP_ITERATIONS). The check then finds nothing and reports addresses that are right. Mesa 25.0 has no
// such limit. Uneven: a vocabulary of no whole quads or words, a context of two spans that ends inside an octet.
constexpr decoder_config small_config{.model_type = architecture::bitnet,
                                      .hidden_size = 128,
                                      .intermediate_size = 128,
                                      .num_hidden_layers = 1,
                                      .num_attention_heads = 4,
                                      .num_key_value_heads = 2,
                                      .head_dim = 32,
                                      .vocab_size = 261,
                                      .max_position_embeddings = 300,
                                      .rope_theta = 10'000.f,
                                      .rms_norm_eps = 1e-5f};
constexpr decoder_config small_silu_config = [] {
  auto out = small_config;
  out.hidden_act = activation::silu;
  out.activation_type = dtype::f32;
  return out;
}();
using small = models::bitnet_b158<small_config>;
constexpr decoder_config small_mixture_config = [] {
  auto out = small_config;
  out.model_type = architecture::llama;
  out.hidden_act = activation::silu;
  out.num_local_experts = 4, out.num_experts_per_tok = 2;
  return out;
}();
template <dtype W>
using small_mixture = models::mixtral<small_mixture_config, W, dtype::f16, dtype::f16>;
using small_silu = models::bitnet_b158<small_silu_config, dtype::i2_s, dtype::f32, dtype::f32>;
/// The shipped profile with short chunks in narrow tiles, which llvmpipe compiles in a fifth of the time.
constexpr plan::profile quick(plan::profile of) {
  of.prefill_tokens = 6;
  of.verify_tokens = of.work.tile_tokens = 2;
  return of;
}
constexpr plan::profile cpu = quick(plan::profiles::cpu), portable = quick(plan::profiles::portable);
using plan::engraved, plan::engraved_batch;
/// Slots of whole quads of words, so that the last one's history ends with the state; whole pages and octets, two
/// spans.
constexpr plan::batch_shape two_slots{.slot_count = 2, .page_size = 8};
constexpr std::uint32_t whole_pages = 280;

/// Products without loops, however small.
constexpr plan::profile unrolled = [] {
  plan::profile out = cpu;
  out.work.unrolled_weights = 0;
  return out;
}();

/// Plans with the modules that run them; lavapipe runs them all.
struct form {
  const plan::table* table;
  kernels::demands uses;  ///< of the device
  bool batch = false;     ///< of the table only what it has for a batch
  bool experts = false;   ///< only what a mixture has besides
  bool resident = false;  ///< only the dispatch of all layers
};
constexpr kernels::demands wide = kernels::demand::wide_loads, portable_only = kernels::demand::narrow_loads,
                           dots = kernels::demand::narrow_loads | kernels::demand::integer_dot;
const form forms[] = {
    {&engraved<small, cpu>::table, wide},
    {&engraved<small_silu, cpu>::table, wide},
    {&engraved<small, portable>::table, dots},
    {&engraved<small, portable>::table, portable_only},
    {&engraved<small_silu, portable>::table, portable_only},
    {&engraved_batch<small, cpu, two_slots, whole_pages>::table, wide, true},
    {&engraved_batch<small, portable, two_slots, whole_pages>::table, dots, true},
    {&engraved<small, cpu, 44>::table, wide, false, false, true},  // for the resident dispatch, with many operands
    {&engraved<small, unrolled>::table, wide},
    {&engraved<small_mixture<dtype::q8_0>, cpu>::table, wide, false, true},
    {&engraved<small_mixture<dtype::f16>, portable>::table, dots, false, true},
    {&engraved<small_mixture<dtype::q8_0>, portable>::table, dots, false, true},
    {&engraved<small_mixture<dtype::q8_0>, portable>::table, portable_only, false, true}};
constexpr std::size_t module_count =
    38;  // of kernels::variant, all but those by cooperative matrices, which lavapipe has not

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

/// Every slot holds such a state, and pages from the last one down.
std::vector<std::uint32_t> batch_state(const plan::table& of, std::span<const std::uint32_t> alone,
                                       const wild_state& wild) {
  using namespace kernels::state;
  std::vector<std::uint32_t> out(first_slot, wild.id);
  out[count] = wild.count;
  out[move] = wild.id % 2;
  out[move_slot] = wild.count - 1;
  out[move_first] = wild.position / 8 > of.slot_pages() ? wild.position : 0;
  out[move_end] = wild.position;
  for (std::uint32_t slot = 0; slot < of.shape.slot_count; ++slot) {
    out.insert(out.end(), alone.begin(), alone.begin() + tokens);
    out[out.size() - tokens + count] = wild.count == 0 ? 0 : 1;
    out[out.size() - tokens + position] = wild.count == of.shape.slot_count ? of.context - 1 : wild.position;
    out[out.size() - tokens + limit] = std::max(of.context, wild.position);
    out.push_back(wild.id);
    for (std::uint32_t page = 0; page < of.slot_pages(); ++page)
      out.push_back(wild.id < of.config->vocab_size ? of.shape.pages - of.slot_pages() + page : wild.id);
    out.resize(first_slot + (slot + std::size_t{1}) * slot_words(of.context, of.shape.page_size), wild.id);
  }
  return out;
}

void write_state(const plan::table& of, const plan::sequence& in, const wild_state& wild, std::span<std::byte> to) {
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
  if (in.batched) words = batch_state(of, words, wild);
  std::memcpy(to.data(), words.data(), std::min(to.size(), 4 * words.size()));
}

/// A dispatch of a plan, and where it stands.
struct chosen_call {
  const plan::sequence* in;
  plan::dispatch call;
  stated_operands operands;
};

std::uint32_t constant(const plan::dispatch& call, std::string_view name) {
  return call.specialization[kernels::interface_of(call.kernel).specialization_index(name)];
}
bool has(const plan::dispatch& call, std::string_view name) {
  const auto& face = kernels::interface_of(call.kernel);
  return face.specialization_index(name) < face.specialization_count();
}
/// What a mixture has besides: kernels that know experts, and what prepares their inputs.
bool is_of_experts(const plan::dispatch& call) {
  return call.kernel == kernels::kernel::fixed || call.kernel == kernels::kernel::route ||
         (has(call, "experts_used") && constant(call, "experts_used") != 0);
}
bool reads_tiles(const plan::dispatch& call) {
  const auto& face = kernels::interface_of(call.kernel);
  return face.push_index("tiles") < face.push_count();
}
/// Lists that expert_tiles leaves for a product.
std::uint32_t list_tokens_of(const plan::dispatch& call) {
  return reads_tiles(call)                                                             ? constant(call, "list_tokens")
         : call.kernel == kernels::kernel::matmul && constant(call, "tile_tokens") > 1 ? constant(call, "tile_tokens")
                                                                                       : 0;
}

/// Which experts tokens have, or which tokens an expert, such that a product touches all bytes: of the last expert,
/// into the last list and the last rows.
void write_choice(const plan::sequence& in, const plan::dispatch& call, std::span<std::byte> to) {
  const std::uint32_t used = constant(call, "experts_used"), experts = small_mixture_config.num_local_experts,
                      pairs = in.max_tokens * used;
  std::vector<std::uint32_t> words;
  if (const std::uint32_t list = list_tokens_of(call); list != 0) {
    const std::size_t all = (to.size() / 4 + list + 1) / (list + 2) * (list + 2),
                      last = all - (list + 2);  // as stated, where it is a word shorter too
    words.resize(all);
    words[last] = experts - 1, words[last + 1] = list;
    for (std::uint32_t i = 0; i < list; ++i) words[last + 2 + i] = pairs - 1 - (list - 1 - i) % pairs;
  } else {
    words.resize(std::size_t{2} * pairs);
    // An odd number each, so that as many lists are filled as there can be; the last pair has the last expert.
    for (std::uint32_t pair = 0; pair < pairs; ++pair)
      words[pair / used * 2 * used + pair % used] = experts - 1 - (pairs - 1 - pair) % experts;
  }
  std::memcpy(to.data(), words.data(), std::min(to.size(), 4 * words.size()));
}

/// Runs one dispatch with a state; returns how many messages of the layer that gives, and one more where the poison was
/// hurt.
std::size_t complaints_of(const gpu::device& on, const gpu::pipeline& kernel, const plan::table& of,
                          const chosen_call& chosen, const exact_operands& memory, const wild_state& state) {
  const std::size_t before = on.validation_message_count();
  const kernels::kernel_interface& face = kernels::interface_of(chosen.call.kernel);
  const auto contents_of = [&](std::string_view name) {
    return memory.contents[chosen.operands.push[face.push_index(name)]];
  };
  write_state(of, *chosen.in, state, contents_of("state"));
  if (has(chosen.call, "experts_used") && chosen.call.kernel != kernels::kernel::route &&
      constant(chosen.call, "experts_used") != 0)
    write_choice(*chosen.in, chosen.call, contents_of(reads_tiles(chosen.call) ? "tiles" : "choice"));
  std::vector<std::uint64_t> push, arguments;
  for (std::size_t i = 0; i < chosen.operands.push.size(); ++i) {
    const std::size_t each = chosen.operands.push[i];
    push.push_back(each == stated_operands::none ? kernels::unbound(face.push[i].type) : memory.addresses[each]);
  }
  for (const std::size_t each : chosen.operands.arguments)
    arguments.push_back(each == stated_operands::none ? 0 : memory.addresses[each]);
  if (!arguments.empty())
    std::memcpy(contents_of("arguments").data(), arguments.data(),
                std::min(contents_of("arguments").size(), 8 * arguments.size()));
  gpu::recorder to(on, kernel.name());
  to.dispatch(kernel, std::as_bytes(std::span(push)), chosen.call.groups);
  const gpu::recording commands = to.finish();
  const VkCommandBuffer handle = commands.handle();
  gpu::queue line(on);
  line.wait(line.submit({&handle, 1}, commands.name()), std::chrono::seconds(120));
  return on.validation_message_count() - before + (memory.intact() ? 0 : 1);
}

constexpr auto interim = static_cast<std::uint32_t>(kernels::sample_form::interim);
bool is_interim(const plan::dispatch& call) {
  return call.kernel == kernels::kernel::sample && constant(call, "form") == interim;
}
/// Dispatches of a part of a sequence, and of a sampler its interim form besides.
std::vector<plan::dispatch> with_forms(const plan::sequence& in, std::span<const plan::dispatch> part) {
  std::vector<plan::dispatch> out(part.begin(), part.end());
  if (part.data() == in.epilogue.data()) out.insert(out.end(), in.interim.begin(), in.interim.end());
  return out;
}

/// Bytes of an operand that the last pass that fits still leaves alone when the operand is one word shorter.
std::uint64_t untouched_bytes(const plan::table& of, const plan::dispatch& call, const stated_operand& operand) {
  const std::uint32_t element_bytes = of.cache_element == kernels::element::f32 ? 4 : 2;
  if (operand.where == plan::region::keys)  // positions of the last octet past the context
    return std::uint64_t{(8 - of.context % 8) % 8 * kernels::cache_octet} * element_bytes;
  if (operand.where == plan::region::arguments && of.resident_decode.arguments.back().where == plan::region::none)
    return 8;  // an address of nothing
  if (operand.name == "drawn" && call.kernel == kernels::kernel::accept)
    return operand.bytes - 4;  // what was drawn after a wrong draft
  if (is_interim(call) && (operand.name == "scratch" || operand.name == "firsts" || operand.name == "counters"))
    return operand.bytes;
  if (operand.name == "scratch" && call.groups[0] == 1)  // sample_cpu has no lists, but marks
    return kernels::sample_scratch_bytes(of.config->vocab_size, constant(call, "slice")) -
           std::uint64_t{(of.config->vocab_size + 31) / 32} * 4;
  if (operand.name == "choice" && list_tokens_of(call) == 0 &&
      (call.kernel == kernels::kernel::matmul || call.kernel == kernels::kernel::expert_tiles))
    return std::uint64_t{4} * constant(call, "experts_used");  // weights
  if (call.kernel == kernels::kernel::expert_tiles && operand.name == "output")
    return std::uint64_t{4} * (constant(call, "list_tokens") - 1);  // the last list holds one
  if (call.kernel == kernels::kernel::matmul_batch && operand.name == "input")
    return 12;  // of q8_0 the scale alone is read of what stands after the codes
  if (list_tokens_of(call) != 0 && operand.where == plan::region::state) return operand.bytes;  // lists say all
  // Most kernels get all parameters and read the position or the count: a buffer of three bytes is too small for both.
  if (operand.where == plan::region::state && of.batch.layers != 0 && call.kernel == kernels::kernel::sample)
    return operand.bytes - 4 - 3;  // its last history is not in the window
  if (operand.name == "state" && call.kernel != kernels::kernel::embed && call.kernel != kernels::kernel::sample)
    return operand.bytes - 4 - 3;
  return 0;
}

}  // namespace

TEST_CASE(
    "no kernel leaves the bytes that the plan states, whatever the session's state holds, and GPU-assisted validation "
    "would tell") {
  gpu::device_options options;
  options.validate = gpu::validation::gpu_assisted;
  const gpu::device on(options);
  INFO(on.label());
  REQUIRE(on.validation_messages().empty());  // the layer says here what it cannot check on this device
  const auto usable = runtime::usable_classes(on);
  const auto class_of = [&](const form& each) {
    for (const plan::device_class& one : usable)
      if (one.offers().has(each.uses) && one.integer_dot == (each.uses.has(kernels::demand::integer_dot) ||
                                                             each.uses.has(kernels::demand::wide_loads)))
        return each.resident ? one : one.without_residency().without_matrices();
    FAIL("the device offers not all that a form uses");
    return usable.front();
  };
  std::set<const std::byte*> modules_seen;
  std::set<std::vector<std::uint64_t>> seen;
  for (const form& each : forms) {
    const plan::device_plan fitted(*each.table, class_of(each));
    const plan::table& table = fitted.table();
    std::vector<chosen_call> chosen;
    std::vector<plan::dispatch> calls;
    for (const plan::sequence* in : {&table.decode, &table.prefill, &table.logits, &table.verify,
                                     &table.resident_decode, &table.batch, &table.moves})
      if (in->batched != each.batch) continue;
      else
        for (const auto part : in->recorded())
          for (plan::dispatch call : with_forms(*in, part)) {
            if (each.resident != (call.kernel == kernels::kernel::layers) || (each.experts && !is_of_experts(call)))
              continue;
            // One workgroup, which then does every part of every step: several share them as they come, and the turns
            // of their loops with them.
            if (call.kernel == kernels::kernel::layers) call.groups = {1, 1, 1};
            stated_operands operands = testing::operands_of(*in, call);
            std::vector<std::uint64_t> key = operands.bytes();
            key.insert(key.end(), call.specialization.begin(), call.specialization.end());
            key.insert(key.end(), call.groups.begin(), call.groups.end());
            const std::byte* const module = runtime::modules_of<>(call.variant).spirv.data();
            key.insert(key.end(), {call.subgroups, reinterpret_cast<std::uintptr_t>(module)});
            modules_seen.insert(module);
            if (!seen.insert(key).second) continue;
            calls.push_back(call);
            chosen.push_back({in, call, std::move(operands)});
          }
    runtime::kernel_set kernels(on);
    plan::sequence sequence;
    sequence.prologue = calls;
    const plan::sequence* const list[] = {&sequence};
    kernels.add(list, nullptr);
    for (const chosen_call& one : chosen) {
      const gpu::pipeline& kernel = kernels.of(one.call);
      const std::vector<std::uint64_t> bytes = one.operands.bytes();
      const std::vector<wild_state> states = states_of(table, *one.in);
      INFO(table.profile << ", " << one.in->name << ": " << one.call.label.view() << " (" << kernel.name() << ")");
      {
        const exact_operands memory(on, bytes);
        for (const wild_state& state : states) {
          INFO("position " << state.position << ", count " << state.count << ", token " << state.id);
          CHECK(complaints_of(on, kernel, table, one, memory, state) == 0);
        }
      }
      const planted_messages planted;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const stated_operand& operand = one.operands.all[i];
        INFO(operand.name << " " << operand.slot << " of layer " << operand.layer << " a word shorter than its "
                          << bytes[i] << " bytes");
        const std::uint64_t untouched = untouched_bytes(table, one.call, operand);
        if (untouched == bytes[i]) continue;
        std::vector<std::uint64_t> shorter = bytes;
        shorter[i] -= 4 + untouched;
        wild_state last = states.front();
        if (operand.name == "firsts")
          last.repeat_last_n = 0,
          last.temperature = 0;  // what the head found first counts where the choice is greedy and nothing penalised
        CHECK(complaints_of(on, kernel, table, one, exact_operands(on, shorter), last) > 0);
      }
    }
  }
  CHECK(modules_seen.size() == module_count);
}
