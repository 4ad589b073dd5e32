// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_router.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <functional>

#include "intaglio/io/feature_index_build.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// An index of stories260K (5 layers, 172 features of 64) and a router of 4 experts for it: feature f has expert f % 4.
struct made {
  temporary_folder folder;
  io::feature_index index;
  made()
      : index([&] {
          io::build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), folder / "index");
          return io::feature_index::open(folder / "index");
        }()) {}
  std::vector<io::router_layer> layers() const {
    std::vector<io::router_layer> out(index.layers());
    for (std::uint32_t layer = 0; layer < index.layers(); ++layer) {
      for (std::uint32_t f = 0; f < 172; ++f) out[layer].expert_of.push_back(f % 4);
      for (std::uint32_t e = 0; e < 4; ++e) out[layer].bias.push_back(static_cast<float>(e) / 4);
      for (std::uint32_t i = 0; i < 4 * 64; ++i)
        out[layer].weights.push_back(static_cast<float>((i * 7 + layer) % 11) - 5);
    }
    return out;
  }
};

std::vector<char> content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const intaglio::error& problem) { return problem.what(); }
  return {};
}

}  // namespace

TEST_CASE("feature_router: written, read and routed by scores, of equal ones the lowest", "[io][router]") {
  const made of;
  const io::feature_router router(of.index, of.layers());
  router.write(of.folder / "router.bin");
  const io::feature_router again = io::feature_router::open(of.folder / "router.bin", of.index);
  REQUIRE(again.layers() == 5);
  CHECK(again.layer(3).expert_of == of.layers()[3].expert_of);
  CHECK(again.layer(3).weights == of.layers()[3].weights);
  CHECK_THROWS_AS(again.layer(5), argument_error);

  std::vector<float> x(64);
  x[0] = 1;  // scores are the first weights and the biases
  const auto chosen = again.route(0, x, 2);
  REQUIRE(chosen.size() == 2);
  std::vector<std::pair<float, std::uint32_t>> scores;
  for (std::uint32_t e = 0; e < 4; ++e)
    scores.emplace_back(-(again.layer(0).weights[64 * e] + again.layer(0).bias[e]), e);
  std::ranges::sort(scores);
  CHECK((chosen[0].expert == scores[0].second && chosen[0].score == -scores[0].first));
  CHECK((chosen[1].expert == scores[1].second && chosen[1].score == -scores[1].first));
  CHECK(std::abs(chosen[0].share + chosen[1].share - 1) < 1e-6f);
  CHECK(std::abs(chosen[1].share / chosen[0].share - std::exp(chosen[1].score - chosen[0].score)) < 1e-5f);
  CHECK(again.route(0, x, 99).size() == 4);
  auto same = of.layers();
  for (auto& each : same) each.bias.assign(4, 1.f), each.weights.assign(256, 0.f);
  CHECK(io::feature_router(of.index, same).route(2, x, 1)[0].expert == 0);
  const auto features = again.features(0, chosen, 174);
  CHECK(features.size() == 172 / 2 + 2);  // two experts' and those after the router's
  CHECK(std::ranges::is_sorted(features));
  for (const std::uint32_t f : features) CHECK((f >= 172 || f % 4 == chosen[0].expert || f % 4 == chosen[1].expert));
  x[5] = NAN;
  CHECK_THROWS_AS(again.route(0, x, 2), argument_error);
  CHECK_THROWS_AS(again.route(0, std::span(x).first(63), 2), argument_error);
}

TEST_CASE("feature_router: what is no router of the index is refused with its reason", "[io][router]") {
  const made of;
  const auto bad = [&](const std::function<void(std::vector<io::router_layer>&)>& spoil) {
    auto layers = of.layers();
    spoil(layers);
    return refusal([&] { io::feature_router(of.index, std::move(layers)); });
  };
  CHECK(bad([](auto& l) { l.pop_back(); }).find("5 layers") != std::string::npos);
  CHECK(bad([](auto& l) { l[1].expert_of.pop_back(); }).find("171 features") != std::string::npos);
  CHECK(bad([](auto& l) { l[1].expert_of[7] = 4; }).find("a feature of expert 4") != std::string::npos);
  CHECK(bad([](auto& l) { std::ranges::replace(l[2].expert_of, 3u, 0u); }).find("expert 3 without features") !=
        std::string::npos);
  CHECK(bad([](auto& l) { l[0].weights.pop_back(); }).find("255 weights") != std::string::npos);
  CHECK(bad([](auto& l) { l[4].bias[1] = NAN; }).find("NaN") != std::string::npos);
  CHECK(bad([](auto& l) { l[4].bias.clear(); }).find("0 experts") != std::string::npos);

  const auto path = of.folder / "router.bin", other = of.folder / "other.bin";
  io::feature_router(of.index, of.layers()).write(path);
  const std::vector<char> good = content(path);
  const std::size_t header = 24, layer = 8 + 4 * (172 + 4 + 4 * 64);
  REQUIRE(good.size() == header + 5 * layer + 4);
  const auto opened = [&](const std::vector<char>& bytes) {
    put(other, bytes);
    return refusal([&] { io::feature_router::open(other, of.index); });
  };
  CHECK(opened(good).empty());
  // Cut anywhere, longer, or with any byte changed.
  CHECK_FALSE(opened({}).empty());
  for (std::size_t size = 1; size < good.size(); size += size < 64 ? 1 : 97)
    CHECK(opened({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}).find("the file ends inside") !=
          std::string::npos);
  auto longer = good;
  longer.push_back(0);
  CHECK(opened(longer).find("bytes after the checksum") != std::string::npos);
  for (std::size_t at = 0; at < good.size(); at += at < 64 ? 1 : 61) {
    auto changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    CHECK_FALSE(opened(changed).empty());
  }
  auto magic = good;
  magic[0] = 'X';
  CHECK(opened(magic).find("not a router of features") != std::string::npos);
  auto of_another = good;
  of_another[8] = static_cast<char>(of_another[8] + 1);
  CHECK(opened(of_another).find("a router of another index") != std::string::npos);
  auto experts = good;
  experts[header + 1] = 1;  // 260 of 172 features
  CHECK(opened(experts).find("1 to 172") != std::string::npos);
  // A right checksum over numbers that are none.
  auto none = good;
  const float infinite = HUGE_VALF;
  std::memcpy(none.data() + header + 8 + 4 * 172, &infinite, 4);
  const std::uint32_t sum = io::crc32(std::as_bytes(std::span(none)).first(none.size() - 4));
  std::memcpy(none.data() + none.size() - 4, &sum, 4);
  CHECK(opened(none).find("NaN or infinity") != std::string::npos);
  CHECK_FALSE(refusal([&] { io::feature_router::open(of.folder / "no such", of.index); }).empty());
}
