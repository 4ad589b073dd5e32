// SPDX-License-Identifier: MIT
#include "codecs/vectors.hpp"
#include "intaglio/io/codec.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::codec;

TEST_CASE("a repacked weight has the values of the file's rows, in the plan's order, with every codec", "[law]") {
  const codec type = all_codecs[GENERATE(range(std::size_t{0}, all_codecs.size()))];
  random_numbers random(41);
  const std::uint32_t columns = kernels::is_dense(type) ? 20 : 512;
  const auto order = GENERATE(kernels::row_order::plain(6), kernels::row_order::rope_pairs(8, 16, 8),
                              kernels::row_order::rope_pairs(8, 16, 8, true), kernels::row_order::gate_up(6),
                              kernels::row_order::stacked(16, 8));
  std::vector<std::vector<std::byte>> files;
  for (std::uint32_t t = 0; t < order.tensors(); ++t)
    files.push_back(random_rows(random, type, order.tensor_rows[t], columns));
  std::vector<std::byte> weight(kernels::matmul_weight_bytes(type, order.rows(), columns));
  kernels::repack_matmul(type, order, std::vector<std::span<const std::byte>>(files.begin(), files.end()), columns, 0,
                         weight);
  const auto row_bytes = static_cast<std::size_t>(kernels::file_row_bytes(type, columns));
  for (std::uint32_t position = 0; position < order.rows(); ++position) {
    const kernels::source_row from = order(position);
    std::vector<float> expected(columns), found(columns);
    io::decode_row(*dtype_from_name(kernels::info(type).name),
                   std::span(files[from.tensor]).subspan(from.row * row_bytes, row_bytes), expected);
    for (std::uint32_t c = 0; c < columns; ++c) found[c] = reference::weight_at(type, weight, columns, position, c);
    CHECK(found == expected);
  }
}

TEST_CASE("parts of a repacked weight come from windows of its tensors") {
  random_numbers random(42);
  const std::uint32_t columns = 64;
  const auto order = kernels::row_order::gate_up(8);
  const auto gate = random_rows(random, codec::q8_0, 8, columns), up = random_rows(random, codec::q8_0, 8, columns);
  std::vector<std::byte> whole(kernels::matmul_weight_bytes(codec::q8_0, 16, columns)), part(whole.size() / 2);
  const std::span<const std::byte> all[] = {gate, up},
                                   lower[] = {all[0].subspan(gate.size() / 2), all[1].subspan(up.size() / 2)};
  kernels::repack_matmul(codec::q8_0, order, all, columns, 0, whole);
  kernels::repack_matmul(codec::q8_0, order, lower, columns, 2, part, {4, 4, 0});
  CHECK(std::ranges::equal(part, std::span(whole).subspan(whole.size() / 2)));
  CHECK_THROWS_AS(kernels::repack_matmul(codec::q8_0, order, lower, columns, 0, part, {4, 4, 0}), argument_error);
  CHECK_THROWS_AS(kernels::repack_matmul(codec::q8_0, order, all, 48, 0, whole), argument_error);
}

TEST_CASE("a repacked weight has the values that ggml decodes, bit for bit, of every codec of blocks", "[codecs]") {
  need_shared();
  const codec type = all_codecs[GENERATE(range(std::size_t{3}, all_codecs.size()))];
  const kernels::codec_info& of = kernels::info(type);
  INFO(of.name);
  const codec_vectors vectors(of.name);
  constexpr std::uint32_t rows = 4;
  const auto columns = static_cast<std::uint32_t>(vector_blocks / rows * of.block_elements);
  REQUIRE(vectors.blocks.size() == rows * kernels::file_row_bytes(type, columns));
  const std::array<std::span<const std::byte>, 1> file{std::as_bytes(std::span(vectors.blocks))};
  std::vector<std::byte> weight(kernels::matmul_weight_bytes(type, rows, columns));
  kernels::repack_matmul(type, kernels::row_order::plain(rows), file, columns, 0, weight);
  std::vector<float> found(std::size_t{rows} * columns);
  for (std::uint32_t i = 0; i < rows * columns; ++i)
    found[i] = reference::weight_at(type, weight, columns, i / columns, i % columns);
  vectors.compare(found);
}
