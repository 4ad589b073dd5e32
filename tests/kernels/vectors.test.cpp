// SPDX-License-Identifier: MIT
// Numbers that others computed: single layers of the trained model fable, and the operations of a peer
// (shared/vectors/README.md).
#include <nlohmann/json.hpp>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/ternary_layout.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "kernels/kernel_device.hpp"
#include "shared.hpp"

#include <fstream>

using namespace intaglio;
using namespace intaglio::testing;
using nlohmann::json;

namespace {

json load(const std::filesystem::path& path) {
  std::ifstream in(path);
  return json::parse(in);
}

/// Integer sums of codes with given int8 values: scale and factor 1 leave them as they are.
std::vector<float> sums(kernel_device& on, const std::vector<std::int8_t>& codes, std::uint32_t rows,
                        const std::vector<std::int8_t>& q) {
  const auto columns = static_cast<std::uint32_t>(q.size());
  std::vector<std::uint32_t> tiles(kernels::tile_words(rows, columns));
  const std::span<const std::int8_t> source[] = {codes};
  kernels::repack_ternary(kernels::row_order::plain(rows), source, columns, 0, tiles);
  reference::factors factors{1.0f, 0};
  for (const auto value : q) factors.sum += value;
  const auto input = on.filled(q), weight = on.filled(tiles), scale = on.filled(std::vector<float>{1.0f}),
             with = on.filled(std::vector{factors});
  const auto state = on.filled(fresh_state(0, 1, 1, 1)), output = on.poisoned(std::size_t{rows} * 4);
  on.run(kernels::kernel::ternary_matmul, 1,
         {{"columns", columns}, {"rows", rows}, {"prologue", 0u}, {"epilogue", 0u}, {"eps", 0.0f}, {"tile_tokens", 1u}},
         {{"input", &input},
          {"factors", &with},
          {"weight", &weight},
          {"scales", &scale},
          {"output", &output},
          {"state", &state}},
         {2, 1, 1});
  return output.read<float>();
}

std::vector<std::int8_t> quantised(kernel_device& on, const std::vector<float>& x) {
  const auto input = on.filled(x), ones = on.filled(std::vector<float>(x.size(), 1.0f)),
             state = on.filled(fresh_state(0, 1, 1, 1));
  const auto q = on.poisoned(x.size()), factors = on.poisoned(8);
  on.run(kernels::kernel::norm_quantize, 1, {{"width", static_cast<std::uint32_t>(x.size())}, {"eps", 0.0f}},
         {{"input", &input}, {"norm_weight", &ones}, {"output", &q}, {"factors", &factors}, {"state", &state}},
         {1, 1, 1});
  return q.read<std::int8_t>();
}

/// The generator of the peer's vectors.
class mulberry32 {
 public:
  explicit mulberry32(std::uint32_t seed) : a_(seed) {}
  double operator()() {
    a_ += 0x6D2B79F5u;
    std::uint32_t t = (a_ ^ (a_ >> 15)) * (1u | a_);
    t = (t + (t ^ (t >> 7)) * (61u | t)) ^ t;
    return (t ^ (t >> 14)) / 4294967296.0;
  }

 private:
  std::uint32_t a_;
};

}  // namespace

TEST_CASE("the trained model's single layers: int8 values and integer sums exactly") {
  const json goldens = load(shared("models/goldens/bitlinear.json"));
  const auto model = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  kernel_device on;
  on.wide_loads = GENERATE(false, true);
  on.integer_dot = GENERATE(false, true);
  REQUIRE(goldens.size() == 4);
  for (const json& golden : goldens) {
    const std::uint32_t rows = golden["shape"][0], columns = golden["shape"][1];
    const auto& tensor = model.at(golden["tensor"].get<std::string>() + ".weight");
    const auto ternary = model.ternary(tensor);
    std::vector<std::int8_t> codes(std::size_t{rows} * columns);
    ternary.rows(0, rows, codes);
    CHECK(ternary.scale() == golden["weight_scale"].get<float>());
    std::vector<float> x(columns);
    for (std::uint32_t i = 0; i < columns; ++i)
      x[i] = static_cast<float>(static_cast<int>((37 * i) % 101) - 50) / 32.0f * (i % 7 == 3 ? 0.125f : 1.0f);
    x[0] = 1.734375f;
    const auto q = quantised(on, x);
    CHECK(q == golden["int8"].get<std::vector<std::int8_t>>());
    const auto expected = golden["accumulators"].get<std::vector<int>>();
    const auto found = sums(on, codes, rows, q);
    CHECK(std::vector<int>(found.begin(), found.end()) == expected);
  }
}

TEST_CASE("a peer's operations: ternary products, quantisation, norm, grouped attention") {
  const json ops = load(shared("vectors/oxbitnet_ops.json"))["ops"];
  kernel_device on;
  on.wide_loads = GENERATE(false, true);

  for (const auto& [name, weight_seed] : {std::pair{"ternary_gemv", 42u}, std::pair{"ternary_gemv_k384", 50u}}) {
    const json& op = ops[name];
    const std::uint32_t rows = op["M"], columns = op["K"];
    std::vector<std::int8_t> codes, input;
    for (std::uint32_t row = 0; row < rows; ++row)
      for (mulberry32 next(weight_seed + row); codes.size() < std::size_t{row + 1} * columns;) {
        const double r = next();
        codes.push_back(r < 0.333 ? -1 : r < 0.666 ? 0 : 1);
      }
    for (mulberry32 next(op["input_seed"]); input.size() < columns;)
      input.push_back(static_cast<std::int8_t>(std::floor(next() * 255) - 127));
    const auto found = sums(on, codes, rows, input);
    for (std::uint32_t row = 0; row < rows; ++row) {
      const double scale =
          op.contains("weight_scales") ? op["weight_scales"][row].get<double>() : op["weight_scale"].get<double>();
      CHECK(std::abs(static_cast<double>(found[row]) * scale * op["input_scale"].get<double>() -
                     op["output"][row].get<double>()) < 2e-6);
    }
  }

  const json& quantise = ops["quantize_absmax_int8"];
  for (std::size_t n = 0; n < 2; ++n) {
    const auto all = quantise["input"].get<std::vector<float>>();
    const auto expected = quantise["q"].get<std::vector<std::int8_t>>();
    const std::size_t width = quantise["D"];
    const auto q = quantised(on, {all.begin() + static_cast<std::ptrdiff_t>(n * width),
                                  all.begin() + static_cast<std::ptrdiff_t>((n + 1) * width)});
    CHECK(std::equal(q.begin(), q.end(), expected.begin() + static_cast<std::ptrdiff_t>(n * width)));
  }

  // The head with the identity for its weight shows what the norm gives.
  const json& norm = ops["rmsnorm"];
  const std::uint32_t width = norm["D"], tokens = norm["N"];
  std::vector<float> identity(std::size_t{width} * width);
  for (std::size_t i = 0; i < width; ++i) identity[i * width + i] = 1;
  const auto x = on.filled(norm["input"].get<std::vector<float>>()),
             w = on.filled(norm["weight"].get<std::vector<float>>()), one = on.filled(identity);
  const auto state = on.filled(fresh_state(0, tokens, tokens, 1)), y = on.poisoned(std::size_t{tokens} * width * 4);
  on.run(kernels::kernel::dense_matmul, 1,
         {{"columns", width}, {"rows", width}, {"weight_element", 1u}, {"eps", norm["eps"].get<float>()}},
         {{"input", &x}, {"norm_weight", &w}, {"weight", &one}, {"output", &y}, {"state", &state}}, {1, tokens, 1});
  CHECK(compare(y.read<float>(), norm["output"].get<std::vector<float>>()).relative < 2e-6);

  const json& attention = ops["attention_gqa_causal"];
  const std::uint32_t heads = attention["heads"], kv_heads = attention["kv_heads"], d = attention["head_dim"],
                      context = attention["S"];
  const auto cache = [&](const char* name, std::uint64_t elements, const auto& index) {
    const auto from = attention[name].get<std::vector<float>>();
    std::vector<float> out(elements);
    for (std::uint32_t s = 0; s < context; ++s)
      for (std::uint32_t head = 0; head < kv_heads; ++head)
        for (std::uint32_t c = 0; c < d; ++c) out[index(head, s, c, d, context)] = from[(s * kv_heads + head) * d + c];
    return out;
  };
  const auto query = on.filled(attention["Q"].get<std::vector<float>>()),
             keys = on.filled(cache("K", kernels::key_cache_elements(kv_heads, d, context), kernels::key_cache_index)),
             values =
                 on.filled(cache("V", kernels::value_cache_elements(kv_heads, d, context), kernels::value_cache_index));
  const auto at = on.filled(fresh_state(2, 2, 2, context)), result = on.poisoned(std::size_t{2} * heads * d * 4);
  on.run(kernels::kernel::attention, 1,
         {{"heads", heads},
          {"kv_heads", kv_heads},
          {"head_dim", d},
          {"context", context},
          {"cache_element", 1u},
          {"splits", 1u},
          {"heads_together", 1u}},
         {{"query", &query}, {"keys", &keys}, {"values", &values}, {"output", &result}, {"state", &at}}, {heads, 2, 1});
  CHECK(compare(result.read<float>(), attention["output"].get<std::vector<float>>()).relative < 2e-6);
}
