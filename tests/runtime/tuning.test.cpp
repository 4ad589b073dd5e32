// SPDX-License-Identifier: MIT
// What is kept of a tuning: its text, its file, and what products do by it.
#include "intaglio/runtime/tuning.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "gpu/checked_device.hpp"
#include "intaglio/runtime/load_session.hpp"
#include "runtime/tables.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using runtime::tuning;

TEST_CASE("a tuning's text gives the tuning, and no other text one", "[runtime]") {
  const tuning all{"integer_dot+resident", {{1, 8, 264}, {~std::uint64_t{0}, 32, 65535}}};
  CHECK(all.text() == "variant integer_dot+resident\nproduct 1 8 264\nproduct 18446744073709551615 32 65535\n");
  CHECK(tuning::parsed(all.text()) == all);
  CHECK(tuning::parsed("variant wide_loads\n") == tuning{"wide_loads", {}});
  for (const std::string_view wrong :
       {"", "varian", "variant a\nproduct", "variant a\nproduct 1 8", "variant a\nproduct 1 8 264 5",
        "variant a\nproduct 1 0 264", "variant a\nproduct 1 33 264", "variant a\nproduct 1 8 0",
        "variant a\nproduct 1 8 65536", "variant a\nproduct -1 8 2", "variant a\nproduct 18446744073709551616 8 2",
        "variant a\n\n", "variant a\nproduct  1 8 2", "variant a\nshape 1 8 2"})
    CHECK_FALSE(tuning::parsed(wrong));
}

TEST_CASE("each product of a plan is distinguished, and only products of one token are shared out", "[runtime]") {
  std::vector<std::uint64_t> keys;
  for (const plan::table* table : {&fable_table(), &fable_portable_table()})
    for (const plan::dispatch& call : table->decode.period) {
      CHECK(plan::shares_rows(call) == (call.kernel == kernels::kernel::ternary_matmul));
      if (plan::shares_rows(call)) keys.push_back(plan::product_key(call));
    }
  std::sort(keys.begin(), keys.end());
  CHECK(keys.size() == 8);
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  for (const plan::dispatch& call : fable_portable_table().prefill.period) CHECK_FALSE(plan::shares_rows(call));
  CHECK(plan::counts_groups(fable_portable_table().decode.epilogue.front()));
  CHECK_FALSE(plan::counts_groups(fable_table().decode.epilogue.front()));
}

TEST_CASE("products have the workgroups of the tuning, others those of the plan", "[runtime]") {
  const plan::table& table = fable_portable_table();
  const plan::dispatch& product = table.decode.period[3];
  const plan::dispatch& head = table.decode.epilogue.front();
  REQUIRE(plan::shares_rows(product));
  const plan::device_class of = plan::classes::nvidia;
  const std::vector<plan::product_shape> shapes{{plan::product_key(product), 2, 7}, {plan::product_key(head), 4, 9}};
  CHECK(runtime::planning_input{of, shapes}.note() != runtime::planning_input{of}.note());
  const plan::device_plan tuned(table, of, {shapes});
  for (std::size_t i = 0; i < table.decode.period.size(); ++i) {
    const plan::dispatch& call = table.decode.period[i];
    CHECK(tuned.table().decode.period[i].groups[0] == (&call == &product ? 7 : call.groups[0]));
  }
  CHECK(tuned.table().decode.period[3].specialization[0] == 2 * of.subgroup_size);
  CHECK(tuned.table().decode.epilogue.front().groups == head.groups);  // the sampler knows how many there are
}

TEST_CASE("a tuning is kept for one device, driver and plan, and what is no tuning is ignored with a reason",
          "[runtime][gpu]") {
  const checked_device on;
  const temporary_folder folder;
  const gpu::pipeline_cache cache(on.device, folder.path().string(), 17), other(on.device, folder.path().string(), 18),
      none(on.device, "", 17);
  const tuning what{"wide_loads+resident", {{5, 1, 12}}};
  std::string warning;
  CHECK_FALSE(runtime::kept_tuning(cache, &warning));
  CHECK(warning.empty());
  CHECK(runtime::keep_tuning(none, what) == "there is no folder for it");
  CHECK(runtime::keep_tuning(cache, what).empty());
  CHECK(runtime::kept_tuning(cache, &warning) == what);
  CHECK_FALSE(runtime::kept_tuning(other, &warning));
  CHECK(warning.empty());

  const std::string path = runtime::tuning_path(cache);
  std::filesystem::copy_file(path, runtime::tuning_path(other));
  CHECK_FALSE(runtime::kept_tuning(other, &warning));
  CHECK(warning.find("it belongs to another driver, device or plan; it is ignored") != std::string::npos);
  const auto size = std::filesystem::file_size(path);
  std::string bytes(size, 0);
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size));
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{40}, static_cast<std::size_t>(size) - 2}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    warning.clear();
    CHECK_FALSE(runtime::kept_tuning(cache, &warning));
    CHECK(warning.find("`intaglio tune` measures anew") != std::string::npos);
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      << gpu::detail::frame_cache(cache.key(), "variant a\nproduct 1 99 1\n", {});
  CHECK_FALSE(runtime::kept_tuning(cache, &warning));
  CHECK(warning.find("its lines are not those of a tuning") != std::string::npos);
  CHECK(runtime::forget_tuning(cache));
  CHECK_FALSE(runtime::forget_tuning(cache));
}
