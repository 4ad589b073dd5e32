// SPDX-License-Identifier: MIT
// Milliseconds of processor time that families::planned_of takes for each published model, the median of some runs. The
// tool and the server plan two profiles for a file. No device takes part.
// usage: planning [CODEC [RUNS]], CODEC of the layers (default: q8_0; ternary models have their own)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <intaglio/families/file_types.hpp>
#include <intaglio/families/published_models.hpp>
#include <string_view>
#include <vector>

namespace {

using namespace intaglio;

/// A model and the median of its runs.
struct measured {
  std::string_view name;
  double cpu = 0, portable = 0;
  double both() const { return cpu + portable; }
};

double median_ms(const families::published_model& model, dtype codec, const plan::profile& target, int runs) {
  const families::weight_types types = model.types(model.ternary() ? dtype::f16 : codec);
  const std::uint32_t context = (std::min)(model.config->max_position_embeddings, 16'384u);
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const std::clock_t start = std::clock();
    const plan::planned made = families::planned_of(*model.config, types, model.name, target, context);
    times.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    if (made.table().weights.empty()) std::abort();  // so that the plan is used
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view asked = count > 1 ? arguments[1] : "q8_0";
  const auto codec = dtype_from_name(asked);
  const int runs = count > 2 ? std::atoi(arguments[2]) : 5;
  if (!codec || !families::is_planned(*codec) || runs < 1) {
    std::fprintf(stderr, "usage: planning [CODEC [RUNS]]\n");
    return 2;
  }
  std::vector<measured> all;
  std::size_t refused = 0;  // rows that the codec's blocks do not divide
  for (const families::published_model& model : families::published_models) try {
      all.push_back({model.name, median_ms(model, *codec, plan::profiles::cpu, runs),
                     median_ms(model, *codec, plan::profiles::portable, runs)});
    } catch (const argument_error&) { ++refused; }
  std::sort(all.begin(), all.end(), [](const measured& a, const measured& b) { return a.both() > b.both(); });
  std::printf("%-24s %8s %8s %8s\n", "model", "cpu", "portable", "both");
  const auto print = [](const measured& each) {
    std::printf("%-24.*s %8.2f %8.2f %8.2f\n", static_cast<int>(each.name.size()), each.name.data(), each.cpu,
                each.portable, each.both());
  };
  for (std::size_t i = 0; i < (std::min)(all.size(), std::size_t{8}); ++i) print(all[i]);
  std::printf("the median of %zu models, beside %zu whose rows are no whole blocks:\n", all.size(), refused);
  print(all[all.size() / 2]);
}
