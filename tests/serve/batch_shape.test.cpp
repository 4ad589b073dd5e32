// SPDX-License-Identifier: MIT
#include "../../examples/serve/batch_shape.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/falcon_h1.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/lfm2.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/models/qwen35.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;
using serve::batch_shape_of, serve::fast_batch_shape_of;

TEST_CASE("the server has as many slots as the resident dispatch takes, where products are f16", "[serve]") {
  const plan::profile& gpu = plan::profiles::portable;
  const auto slot_count = [&](const decoder_config& config) {
    return fast_batch_shape_of(config, gpu, 1024).slot_count;
  };
  CHECK(slot_count(models::mistral_7b_v01_config) == 16);  // its window is no Llama's
  CHECK(slot_count(models::mistral_7b_v02_config) == 32);
  CHECK(slot_count(models::gemma3_4b_config) == 32);
  CHECK(slot_count(models::gemma3_1b_config) == 16);  // columns that are not in stages
  CHECK(slot_count(models::bitnet_2b_4t_config) == 16);
  CHECK(slot_count(models::mixtral_8x7b_config) == 16);
  plan::profile chain = gpu;
  chain.work.layers_parts = 0;
  CHECK(fast_batch_shape_of(models::gemma3_4b_config, chain, 1024).slot_count == 16);
  chain.work.layers_parts = 16;
  CHECK(fast_batch_shape_of(models::gemma3_4b_config, chain, 1024).slot_count == 16);
  CHECK(fast_batch_shape_of(models::gemma3_4b_config, gpu, 1024).coded_products == plan::chunk_arithmetic::f16);
  CHECK(batch_shape_of(models::gemma3_4b_config, gpu, 1024).slot_count == 16);
  CHECK(batch_shape_of(models::gemma3_4b_config, gpu, 1024).coded_products == plan::chunk_arithmetic::exact);
}

TEST_CASE(
    "the server's pool of pages holds all slots where these take no more memory than it may, and one session in any "
    "case",
    "[serve]") {
  // 34 layers of 4 heads of 256 channels, keys and values of f16: 139,264 bytes a position.
  const plan::batch_shape few = fast_batch_shape_of(models::gemma3_4b_config, plan::profiles::portable, 512);
  CHECK(few.page_size == 8);
  CHECK(few.pages == 32 * 64);
  const plan::batch_shape many = fast_batch_shape_of(models::gemma3_4b_config, plan::profiles::portable, 8192);
  CHECK(many.page_size == 64);
  CHECK(many.pages == (std::uint64_t{4} << 30) / 139'264 / 64);
  CHECK(many.pages >= 8192 / 64);
}

TEST_CASE("states of recurrent layers are counted with the pool of pages, which has keys of layers with attention",
          "[serve]") {
  const auto check = [](const decoder_config& config, const plan::planned& planned) {
    const plan::table& table = planned.table();
    CHECK(serve::state_bytes_of(config) == table.kept_bytes());
    const std::uint64_t all = table.pool_bytes() + table.batch_recurrent_bytes(), most = std::uint64_t{4} << 30;
    CHECK(all <= most);
    CHECK(all + table.pool_bytes() / table.shape.pages > most);  // not a page more has room
  };
  constexpr std::uint32_t context = 32'768;
  const decoder_config& qwen = models::qwen35_4b_config;
  check(qwen, plan::planned::of<models::qwen35_4b<dtype::q8_0>>(
                  plan::profiles::portable, context, batch_shape_of(qwen, plan::profiles::portable, context)));
  const decoder_config& lfm = models::lfm2_700m_config;
  check(lfm, plan::planned::of<models::lfm2_700m<dtype::q8_0>>(plan::profiles::portable, context,
                                                               batch_shape_of(lfm, plan::profiles::portable, context)));
  const decoder_config& falcon = models::falcon_h1_15b_config;  // each layer has a state and keys
  check(falcon, plan::planned::of<models::falcon_h1_15b<dtype::q8_0>>(
                    plan::profiles::portable, context, batch_shape_of(falcon, plan::profiles::portable, context)));
  CHECK(serve::state_bytes_of(models::gemma3_4b_config) == 0);
}
