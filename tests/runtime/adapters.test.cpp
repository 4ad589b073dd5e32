// SPDX-License-Identifier: MIT
// Adapters that sessions choose beside one model, none of which is merged.
#include "intaglio/plan/adapters.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/families/adapter_room.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "lora_files.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

const std::vector<std::int32_t> ids{5, 77, 300, 12, 9, 41, 230, 8, 19, 500, 3};

/// A model's file with two adapters, which change other matrices, with other ranks.
struct adapted_model {
  temporary_folder folder;
  std::filesystem::path path;
  std::array<lora_file, 2> lora;
  io::adapter_set adapters;
  io::checkpoint plain, held;

  explicit adapted_model(const std::string& type, std::vector<std::string> first = {},
                         const std::string& model = "llama")
      : path(conformance("llama-tiny") / ("gguf/llama-tiny-" + type + ".gguf")), plain(io::checkpoint::open(path)),
        held(io::checkpoint::open(path)) {
    lora[0].architecture = lora[1].architecture = model;
    lora[0].tensors = first;
    if (first.empty())
      for (const char* each : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
        for (const char* layer : {"blk.0.", "blk.1."}) lora[0].tensors.push_back(std::string(layer) + each + ".weight");
    lora[1].tensors = {"blk.1.attn_q.weight", "blk.0.ffn_down.weight", "blk.1.attn_v.weight"};
    lora[1].rank = 11, lora[1].alpha = 3;
    for (std::size_t i = 0; i < lora.size(); ++i) {
      lora[i].write(file(i), io::gguf::open(path));
      adapters.add("adapter " + std::to_string(i + 1), file(i));
    }
    adapters.hold_in(held);
  }
  std::filesystem::path file(std::size_t i) const { return folder / ("lora" + std::to_string(i) + ".gguf"); }
  io::checkpoint merged(std::size_t i, float scale) const {
    io::checkpoint out = io::checkpoint::open(path);
    io::lora_adapter(file(i)).merge_into(out, scale);
    return out;
  }
  plan::planned planned(const plan::profile& target, bool with, const plan::batch_shape& shape = {}) const {
    return families::planned_of(plain.config(), families::types_of(plain).types, "llama-tiny", target, 64, shape, {},
                                with ? families::adapter_room_of(adapters) : plan::adapter_room{});
  }
};

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    size += double{b[i]} * double{b[i]};
  }
  return std::sqrt(difference / size);
}

struct drawn {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<float>> logits;
  std::uint32_t found = 0;
  bool is_as(const drawn& other) const { return tokens == other.tokens && logits == other.logits; }
};

}  // namespace

TEST_CASE("a session with an adapter that it chose has the logits of the model with it merged", "[runtime]") {
  checked_device on;
  for (const char* type : {"f32", "q8_0"})
    for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::exact}) {
      if (std::string(type) != "f32" && target == &plan::profiles::exact) continue;
      INFO(type << " " << target->name);
      const adapted_model model(type);
      const plan::planned plain = model.planned(*target, false), room = model.planned(*target, true);
      CHECK(plan::adapters_of(plain.table()) == 0);
      CHECK(plan::adapters_of(room.table()) == 2);
      const std::array<const plan::table*, 1> of_plain{&plain.table()}, of_room{&room.table()};
      basic_session base(on.device, of_plain, model.plain, {.cache_folder = "", .prove_kernels = false});
      basic_session session(on.device, of_room, model.held, {.cache_folder = "", .prove_kernels = true});
      for (const std::uint32_t chunk : {1u, 4u, 0u}) {
        base.reset(), session.reset(), session.use_adapter({});
        CHECK(session.logits(ids, chunk).logits == base.logits(ids, chunk).logits);
      }
      for (const auto& [which, scale] : {std::pair{0u, 1.f}, std::pair{1u, -0.5f}}) {
        const io::checkpoint merged = model.merged(which, scale);
        basic_session expected(on.device, of_plain, merged, {.cache_folder = "", .prove_kernels = false});
        const auto wanted = expected.logits(ids).logits;
        session.reset(), session.use_adapter({which + 1, scale});
        const auto found = session.logits(ids).logits;
        // Products are summed in another order; a cache of f16 rounds what differs, and blocks round the merged sum.
        const double within = std::string(type) != "f32" ? 0.05 : target == &plan::profiles::cpu ? 1e-5 : 1e-4;
        CHECK(apart(found, wanted) < within);
        base.reset();
        CHECK(apart(found, base.logits(ids).logits) > 0.01);
        session.reset();
        CHECK(session.logits(ids, 1).logits == found);
      }
    }
}

TEST_CASE("sessions of a batch with several adapters have the tokens that each has alone, and share no pages",
          "[runtime]") {
  checked_device on;
  for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::exact}) {
    INFO(target->name);
    const adapted_model model("f32");
    const plan::batch_shape shape{.slot_count = 4, .page_size = 8};
    const plan::planned room = model.planned(*target, true, shape), plain = model.planned(*target, false, shape);
    const std::array<const plan::table*, 1> of_room{&room.table()}, of_plain{&plain.table()};
    basic_batch batch(on.device, of_room, model.held, {.cache_folder = "", .prove_kernels = true});
    basic_batch without(on.device, of_plain, model.plain, {.cache_folder = "", .prove_kernels = false});
    const std::array<adapter_choice, 5> choices{{{0, 1}, {1, 1}, {2, 1}, {1, -2.5f}, {2, 0}}};  // the last one is none
    const auto run = [](basic_batch& in, std::span<const adapter_choice> those) {
      std::vector<batch_handle> handles;
      std::vector<drawn> out(those.size());
      for (const adapter_choice& each : those)
        handles.push_back(in.join(ids, {.max_tokens = 6, .keep_logits = true, .adapter = each}));
      while (in.active() != 0)
        for (const batch_token& each : in.step())
          for (std::size_t i = 0; i < handles.size(); ++i)
            if (handles[i] == each.of) {
              out[i].tokens.push_back(each.id);
              const auto logits = in.logits(each.of);
              out[i].logits.emplace_back(logits.begin(), logits.end());
            }
      for (std::size_t i = 0; i < handles.size(); ++i) out[i].found = in.cached_tokens(handles[i]);
      return out;
    };
    const std::vector<drawn> together = run(batch, std::span(choices).first(4));
    for (const drawn& each : together) CHECK(each.found == 0);
    CHECK(together[0].is_as(run(without, std::span(choices).first(1)).front()));
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const std::vector<drawn> alone = run(batch, std::span(choices).subspan(i, 1));
      CHECK(alone.front().is_as(together[i % 4]));
      CHECK(alone.front().found == 8);  // a page of its own adapter's
      for (std::size_t k = 0; k < i && i < 4; ++k) CHECK(together[i].logits[0] != together[k].logits[0]);
      CHECK(together[i % 4].tokens.size() == 6);
    }
    CHECK(run(batch, std::array{adapter_choice{1, 0.5f}}).front().found == 0);  // another scale is another adapter
    CHECK_THROWS_AS(batch.join(ids, {.adapter = {3, 1}}), argument_error);
    CHECK_THROWS_AS(batch.join(ids, {.adapter = {1, std::nanf("")}}), argument_error);
    CHECK_THROWS_AS(without.join(ids, {.adapter = {1, 1}}), argument_error);

    // A saved beginning has its adapter in the file, and is found with that alone.
    const temporary_folder folder;
    const adapter_choice its{1, -2.5f};
    CHECK(batch.save(ids, folder / "none").adapter.number == 0);
    const saved_prefix saved = batch.save(ids, folder / "one", {}, its);
    CHECK((saved.positions == 8 && saved.adapter == its));
    CHECK(batch.save(ids, folder / "other", {}, {1, 0.25f}).positions == 0);  // no session had that scale
    CHECK_THROWS_AS(batch.save(ids, folder / "two", {}, {3, 1}), argument_error);
    basic_batch other(on.device, of_room, model.held, {.cache_folder = "", .prove_kernels = false});
    CHECK(other.restore(folder / "one").adapter == its);
    for (const std::size_t i : {0u, 1u}) CHECK(run(other, std::span(choices).subspan(i, 1)).front().found == 0);
    const drawn again = run(other, std::array{its}).front();
    CHECK((again.found == 8 && again.is_as(together[3])));
    CHECK(other.last_adapter(0) == its);
    CHECK(other.forget(ids) == 8);  // of none
    CHECK(run(other, std::array{its}).front().found == 8);
    CHECK(other.forget(ids, its) == 8);
    CHECK(run(other, std::array{its}).front().found == 0);
    CHECK_THROWS_AS(without.restore(folder / "one"), file_error);
    CHECK_THROWS_AS(other.last_adapter(4), argument_error);
  }
}
