// SPDX-License-Identifier: MIT
#include "intaglio/plan/explain_cut.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

#include "intaglio/families/planned_family.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

/// A model of 3 layers in two stages.
struct cut_model {
  plan::planned made =
      families::planned_of(llama_tiny, {dtype::q8_0, dtype::f16, dtype::f16}, "tiny", plan::profiles::cpu, 128);
  std::vector<std::shared_ptr<const plan::stage>> parts;
  cut_model() {
    for (const plan::layer_range each : {plan::layer_range{0, 2}, {2, 3}})
      parts.push_back(std::make_shared<const plan::stage>(made.table(), each));
  }
};

}  // namespace

TEST_CASE("a cut is said in words, with its bytes") {
  const cut_model model;
  const auto& parts = model.parts;
  const plan::table &first = parts[0]->table(), &last = parts[1]->table();
  const auto bytes = [](const plan::table& t) {
    using plan::explanation::number;
    const std::uint64_t rest = t.arena_bytes() + t.state_bytes() + kernels::ring_bytes(t.ring_size);
    const plan::row_memory rows = plan::row_memory_of(t, false);
    const std::uint64_t crossing = rows.of_device() + rows.of_host();
    return number(t.weight_bytes() + t.cache_bytes() + rest + crossing) + " bytes: weights " +
           number(t.weight_bytes()) + ", cache 131,072 (128 positions, f32), arena and state " + number(rest) +
           ", rows that cross " + number(crossing) + "\n";
  };
  std::string second = bytes(last);
  second.replace(second.find("131,072"), 7, "65,536");
  CHECK(plan::explain_cut(parts, std::array<std::string, 2>{"A", "B"}) ==
        "stage 0 on A, profile cpu: embedding, layers 0 to 1\n  device memory: " + bytes(first) +
            "crosses: f32 [tokens, 256] of the stream, 1,024 bytes a token, 32,768 a chunk of 32\n"
            "  through host memory: the host waits for the pass of stage 0, then submits that of stage 1; rows of a "
            "chunk cross on the queues for copies, while the devices compute\n"
            "stage 1 on B, profile cpu: layers 2 to 2, head, sampler\n  device memory: " +
            second);
}

TEST_CASE("a cut as JSON has an array of stages, each with its plan and what it gives to the next") {
  const cut_model model;
  const std::string first = plan::explain_json(model.parts[0]->table(), "tiny"),
                    last = plan::explain_json(model.parts[1]->table(), "tiny");
  CHECK(first != last);
  CHECK(plan::explain_cut_json(model.parts, std::array<std::string, 1>{"A \"B\""}, "name") ==
        "{\"model\":\"name\",\"stages\":[{\"stage\":0,\"device\":\"A \\\"B\\\"\",\"first_layer\":0,\"end_layer\":2,"
        "\"embedding\":true,\"head\":false,\"gives\":{\"type\":\"f32\",\"width\":256,\"token_bytes\":1024,"
        "\"chunk_tokens\":32,\"chunk_bytes\":32768,\"wait\":\"through host memory: the host waits for the pass of "
        "stage 0, then submits that of stage 1; rows of a chunk cross on the queues for copies, while the devices "
        "compute\"},\"row_bytes\":{\"device\":65536,\"host\":262144},\"plan\":" +
            first +
            "},{\"stage\":1,\"device\":null,\"first_layer\":2,\"end_layer\":3,\"embedding\":false,\"head\":true,"
            "\"gives\":null,\"row_bytes\":{\"device\":131072,\"host\":133120},\"plan\":" +
            last + "}]}");
}
