// SPDX-License-Identifier: MIT
// A model over the ranks of a job: `mpirun -n 3 stages MODEL` compares logits and tokens with the model whole, to the
// bit. `stages MODEL die RANK` kills a rank while the others decode: the job has to end.
#include "intaglio/runtime/mpi_stages.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_session.hpp"

using namespace intaglio;

namespace {

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "expected %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct words {
  std::vector<float> logits;
  std::vector<std::int32_t> greedy, drawn;
};
words words_of(basic_session& of) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 70; ++i) ids.push_back((i * i * 7 + 3 * i + 5) % 4000);
  words out;
  out.logits = of.logits(std::span(ids).first(40)).logits;
  of.reset();
  out.greedy = of.generate(ids, {.max_tokens = 12, .stop_at_end = false}).ids;
  out.drawn = of.generate(std::span(ids).first(30), {.temperature = 0.9f,
                                                     .top_k = 40,
                                                     .repeat_penalty = 1.3f,
                                                     .seed = 5,
                                                     .max_tokens = 12,
                                                     .stop_at_end = false})
                  .ids;
  return out;
}

/// SIGKILL for this process in a while, as a host that is gone.
void die_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::raise(SIGKILL);
  }).detach();
}

void run(const mpi_ranks& ranks, int argc, char** argv) {
  const io::checkpoint file = io::checkpoint::open(argv[1]);
  const auto planned = [&](const plan::profile& target) {
    return families::planned_of(file.config(), families::types_of(file).types, "model", target, 512);
  };
  const plan::planned cpu = planned(plan::profiles::cpu), portable = planned(plan::profiles::portable);
  const std::array<const plan::table*, 2> tables{&cpu.table(), &portable.table()};
  const gpu::device on;
  const int dies = argc > 3 ? std::atoi(argv[3]) : -1;
  if (ranks.rank() != 0) {
    if (dies == ranks.rank()) die_soon();
    return serve_mpi_stage(ranks, on, tables, file, {.cache_folder = ""});
  }
  basic_session cut = mpi_session(ranks, on, tables, file, {.cache_folder = ""});
  const std::array<std::int32_t, 3> ids{1, 2, 3};
  while (dies > 0) {
    cut.reset();
    cut.generate(ids, {.max_tokens = 100, .stop_at_end = false});
  }
  const words found = words_of(cut);
  basic_session whole(on, tables, file, {.cache_folder = ""});
  const words expected = words_of(whole);
  expect(found.logits == expected.logits, "the whole model's logits");
  expect(found.greedy == expected.greedy && found.greedy.size() == 12, "the whole model's greedy tokens");
  expect(found.drawn == expected.drawn && found.drawn.size() == 12, "the whole model's drawn tokens");
  std::printf("%d ranks: logits, greedy and drawn tokens of the whole model\n", ranks.size());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const mpi_ranks ranks;
    try {
      if (argc < 2) throw argument_error("arguments", "MODEL [die RANK]", "none");
      run(ranks, argc, argv);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "rank %d: %s\n", ranks.rank(), problem.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Finalize();
  return 0;
}
