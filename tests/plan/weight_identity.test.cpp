// SPDX-License-Identifier: MIT
#include "intaglio/plan/weight_identity.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "intaglio/models/gemma3.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

TEST_CASE("identity: tensors, layout, codec and shape in words") {
  plan::weight w;
  w.sources[0] = text<48>{"attn_q.weight"}, w.sources[1] = text<48>{"attn_k.weight"},
  w.sources[2] = text<48>{"attn_v.weight"};
  w.source_count = 3, w.per_layer = true, w.layout = plan::weight_layout::row_groups,
  w.order = plan::row_order::rope_pairs, w.codec = kernels::codec::q8_0;
  w.head_dim = 128, w.source_rows = {4096, 1024, 1024}, w.rows = 6144, w.columns = 4096;
  CHECK(plan::identity(w) ==
        "blk.*.attn_q.weight 4096 + blk.*.attn_k.weight 1024 + blk.*.attn_v.weight 1024: row_groups rope_pairs 128 "
        "q8_0 [6144, 4096]");
  CHECK(plan::identity(w, "0-3,6").starts_with("blk.0-3,6.attn_q.weight 4096 + blk.0-3,6.attn_k.weight 1024 + "));
  plan::weight norm;
  norm.sources[0] = text<48>{"output_norm.weight"}, norm.source_count = 1, norm.source_rows = {1, 0, 0}, norm.rows = 1,
  norm.columns = 64;
  CHECK(plan::identity(norm) == "output_norm.weight 1: vector_f32 plain [1, 64]");
  plan::weight turns;
  turns.layout = plan::weight_layout::rope_turns, turns.head_dim = 64,
  turns.rope = {500'000.f, {rope_type::llama3, 8.f, 1.f, 4.f, 8192}};
  CHECK(plan::identity(turns) == "rope_turns 64 theta 500000 llama3 8 1 4 8192");
}

TEST_CASE("identity: a weight that some layers lack says which have it") {
  const decoder_config c{.num_hidden_layers = 9};
  plan::table t;
  t.config = &c;
  t.pattern = {9, {0, 0, 1, 0, 1, 2, 2, 2, 1}};
  plan::weight w;
  w.per_layer = true;
  CHECK(plan::layers_text(w, t) == "*");
  w.kinds = 0b001;
  CHECK(plan::layers_text(w, t) == "0-1,3");
  w.kinds = 0b110;
  CHECK(plan::layers_text(w, t) == "2,4-8");
  w.kinds = 0b111;
  CHECK(plan::layers_text(w, t) == "*");
}

TEST_CASE("identity: no two weights of a plan are the same, and profiles without a screened head want the same") {
  const auto all = [](const plan::table& of) {
    std::set<std::string> out;
    for (const plan::weight& each : of.weights) CHECK(out.insert(plan::identity(each)).second);
    return out;
  };
  const auto cpu = plan::planned::of<models::gemma3_1b<dtype::q8_0>>(plan::profiles::cpu, 4096),
             portable = plan::planned::of<models::gemma3_1b<dtype::q8_0>>(plan::profiles::portable, 4096);
  CHECK(all(cpu.table()) == all(portable.table()));
}
