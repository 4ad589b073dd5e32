# SPDX-License-Identifier: MIT
# The steps of ./dev test. A step is a function step_NAME; it fails by its status, says one line of result in $result,
# and adds what it counted by `count PASSED FAILED [SKIPPED]`. New steps: write the function, add its name to all_steps.

all_steps=(shaders layers gcc headers cpu validation gpu gpu_second clang fuzz mpi sanitize serve size
  compile_fail flags libcxx windows aarch64 amd lowered bindings examples docs release
  consume_subdirectory consume_installed consume_conan)
source tools/development/other_systems.bash
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Werror)
fuzz_seconds=${INTAGLIO_FUZZ_SECONDS:-4}  # each target's; longer by hand
jobs=${INTAGLIO_JOBS:-$(nproc)}

count() { echo "$1 $2 ${3:-0}" >>build/test/counts; }

# ctest in a build directory; counts the test cases of Catch2, and a program that broke down before its summary as one
# failure.
run_ctest() {  # run_ctest LOG DIRECTORY CTEST_ARGUMENT...
  local log=$1 directory=$2 status=0 programs passed failed skipped broken
  shift 2
  ctest --test-dir "$directory" --no-tests=error -V "$@" >"$log" 2>&1 || status=$?
  # Output of programs that ran at the same time is shown one program after the other.
  sort -s -n -t: -k1,1 "$log" | sed -E 's/^[0-9]+: //' >"$log.plain"
  programs=$(sed -nE 's/.* tests? (passed|failed).*out of ([0-9]+)/\2/p' "$log" | tail -n 1)
  read -r passed failed skipped broken < <(awk '
    /^All tests passed \(/ { match($0, /in [0-9]+ test case/); passed += substr($0, RSTART + 3) + 0; done++ }
    /^test cases:/ { done++; n = split($0, part, "|")
      for (i = 1; i <= n; ++i) { if (part[i] ~ /passed/) passed += part[i] + 0
        if (part[i] ~ /failed/) failed += part[i] + 0
        if (part[i] ~ /skipped/) skipped += part[i] + 0 } }
    /\*\*\*(Failed|Exception|Timeout|Not Run)|Subprocess aborted|SEGFAULT/ { bad++ }
    END { broken = (failed > 0 || bad == 0) ? 0 : bad; print passed + 0, failed + 0, skipped + 0, broken }' \
    "$log.plain")
  count "$passed" $((failed + broken)) "$skipped"
  result="${programs:-0} programs, $passed cases passed, $((failed + broken)) failed, $skipped skipped"
  if [[ $status != 0 ]]; then
    grep -E 'FAILED:|^.*\.cpp:[0-9]+: FAILED|\*\*\*' -A 12 "$log.plain" | head -n 120 >&2
    echo "log: $log" >&2
  fi
  return $status
}

lavapipe_22() { compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' | head -n 1; }
on_lavapipe() {  # on_lavapipe ICD COMMAND...
  [[ -f $1 ]] || { echo "expected lavapipe's ICD file, found '$1'" >&2; return 1; }
  VK_DRIVER_FILES=$1 VK_ICD_FILENAMES=$1 "${@:2}"
}
configure() {  # configure PRESET ARGUMENT...
  quietly "build/test/configure-$1.log" cmake --preset "$@" ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"} \
    -DINTAGLIO_SHARED="$shared" -DINTAGLIO_UNITY=ON
}
build() { quietly "build/test/build-$(basename "$1").log" cmake --build "$1" -j "$jobs" "${@:2}" -- -k 0; }

# No machine code, which neither warnings nor proofs need: an empty file is made of a program.
syntax_only=("-DCMAKE_CXX_COMPILER_LAUNCHER=$PWD/tools/development/cached;--syntax-only"
  "-DCMAKE_CXX_LINK_EXECUTABLE=<CMAKE_COMMAND> -E touch <TARGET>")

step_shaders() {
  local glslc
  tools/embed_shaders check
  if glslc=$(tools/get_glslc build/.glslc 2>build/test/glslc.log); then
    result=$(tools/embed_shaders check --glslc "$glslc" --known "$(shader_cache)")
  elif [[ $distribution == debian-* ]]; then
    cat build/test/glslc.log >&2
    return 1
  else
    result="sources compared by hash; the bytes not: no Debian mirror for glslc (INTAGLIO_DEBIAN_MIRROR)"
  fi
}

step_layers() {
  format_sources --dry-run -Werror
  bench/plot --check
  result=$(tools/check_layers)
  result+="; $(tools/check_descriptors)"
  result+="; $(tools/check_sizes)"
  result+="; $(tools/check_commits)"
}

# The tool is built once, as users get it; the tests of the tool run it.
build_release() {
  local lock
  mkdir -p build
  exec {lock}>build/release.lock  # the consumers build there too
  flock "$lock"
  configure release -DINTAGLIO_WERROR=ON
  CCACHE_PREFIX=$PWD/tools/development/peak build build
  exec {lock}>&-
}
step_gcc() {
  build_release
  configure dev -DINTAGLIO_BUILD_EXAMPLES=OFF -DINTAGLIO_TOOL="$PWD/build/bin/intaglio"
  build build/dev
  result="g++ $(g++ -dumpfullversion), warnings are errors"
}

# With clang, which takes a third of g++'s time; the library is the same. Each header is included behind macros of other
# programs.
step_headers() {
  quietly build/test/configure-headers.log cmake -S . -B build/headers -G Ninja -DCMAKE_CXX_COMPILER="$clang" \
    "${syntax_only[@]}" \
    -DCMAKE_CXX_FLAGS="${warnings[*]} -Wshadow -include $PWD/tests/flags/hostile.hpp" \
    ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"} -DINTAGLIO_VERIFY_HEADERS=ON -DINTAGLIO_BUILD_EXAMPLES=OFF
  build build/headers --target intaglio_verify_headers
  result="$(find include -name '*.hpp' | wc -l) headers compile alone"
}

step_cpu() { run_ctest build/test/cpu.log build/dev -L cpu -j "$jobs"; }

# Kernels and the room gpu run under the validation layer with subgroups of 8 (step validation), the room gpu and half
# of the kernels' cases on another version of the driver with subgroups of 4 too (wider ones take Mesa 25 minutes to
# compile), the kernels' dearest cases under the layer alone. What sessions do on the host is seen under the layer alone
# too. What is left runs here: whole families of models with subgroups of 8, and the other half of the kernels' cases
# with subgroups of 16 (tests/CMakeLists.txt).
#
# Whole models run on Mesa 25 everywhere, which computes 2 to 3 times as fast as Mesa 22 where the CPU has no AVX-512,
# and compiles half as fast; what it compiled is kept. On Mesa 22 the smallest whole model runs by every way of
# computing it (step gpu_second).
lavapipe_at() {  # lavapipe_at WIDTH ICD COMMAND...
  LP_NATIVE_VECTOR_WIDTH=$((32 * $1)) on_lavapipe "${@:2}"
}
step_gpu() {
  INTAGLIO_MODELS_ICD=$(second_lavapipe) lavapipe_at 8 "$(lavapipe_22)" run_ctest build/test/gpu.log build/dev \
    -L 'once|wide' -j "$jobs"
}

step_gpu_second() {
  local icd note=""
  icd=$(second_lavapipe)
  if [[ -z $icd ]]; then
    icd=$(lavapipe_22) note="; the same lavapipe as above, $distribution has no other"
  fi
  INTAGLIO_MODELS_ICD=$(lavapipe_22) lavapipe_at 4 "$icd" run_ctest build/test/gpu_second.log build/dev \
    -L second -j "$jobs"
  result+=$note
}

# The layer is asked for from outside too and reports to standard output: a program that forgets INTAGLIO_VALIDATE is
# caught as well. (Its log_filename would be emptied by every instance.)
validation_message='Validation (Error|Warning|Performance Warning)|(VUID|SYNC-HAZARD|UNASSIGNED)-[A-Za-z]'
no_messages() {  # no_messages LOG
  local messages
  # Messages that tests cause on purpose are between marks (tests/gpu/planted_messages.hpp).
  sed -i '/^<<<<planted/,/^>>>>planted/d' "$1"
  messages=$(grep -cE "$validation_message" "$1") || true
  [[ $messages == 0 ]] && return
  echo "expected no validation message, found $messages:" >&2
  grep -E "$validation_message" "$1" | head -n 40 >&2
  return 1
}
layer_settings() {  # prints the folder of the settings with which a layer writes all that it sees to standard output
  mkdir -p build/test/validation
  cat >build/test/validation/vk_layer_settings.txt <<TEXT
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = stdout
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.duplicate_message_limit = 10
TEXT
  echo "$PWD/build/test/validation"
}
step_validation() {
  local settings log=build/test/validation.log
  settings=$(layer_settings)
  local -x INTAGLIO_VALIDATE=1 VK_LAYER_SETTINGS_PATH=$settings VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
  g++ -std=c++20 "${warnings[@]}" tests/validation/planted_hazard.cpp -o build/test/planted_hazard -lvulkan
  # Tests run with layer 1.4, except those of the tool and of bounds (docs/gpu.md): Debian 12's own layer checks those
  # too.
  local newer root
  newer=$(newer_layer)
  for root in "" ${newer:+"$newer"}; do
    INTAGLIO_LAYER_ROOT=$root on_lavapipe "$(lavapipe_22)" tests/under_layer build/test/planted_hazard \
      >build/test/planted_hazard.log 2>&1
    grep -q 'SYNC-HAZARD-WRITE-AFTER-WRITE' build/test/planted_hazard.log ||
      { echo "expected the layer${root:+ of $root} to see the planted hazard, found:" >&2
        cat build/test/planted_hazard.log >&2; return 1; }
  done
  local -x INTAGLIO_LAYER_ROOT=$newer
  INTAGLIO_MODELS_ICD=$(second_lavapipe) lavapipe_at 8 "$(lavapipe_22)" run_ctest "$log" build/dev \
    -L 'gpu|layer|dear|validation' -j "$jobs"
  no_messages "$log.plain"
  result+="; no message${newer:+, layer 1.4}"
}

# Every warning and every proof of constant expressions. The tests run as g++ compiles them, except the sanitized rooms,
# which this clang compiles and runs in their own step, and a consumer (step consume_subdirectory).
sanitized_rooms=(core io)
step_clang() {
  configure clang -DCMAKE_CXX_COMPILER="$clang" "${syntax_only[@]}" \
    -DINTAGLIO_ROOMS_LEFT_OUT="$(IFS=';'; echo "${sanitized_rooms[*]}")"
  build build/clang
  result="$clang, warnings are errors"
}

fuzz_targets() { find tests/fuzz -name '*.fuzz.cpp' -printf '%f\n' | sed 's/\.fuzz\.cpp$//' | sort; }
configure_asan() {
  configure asan -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/tools/development/cached"
}
step_sanitize() {
  configure_asan
  build build/asan "${sanitized_rooms[@]/#/--target=tests_}"
  UBSAN_OPTIONS=print_stacktrace=1 run_ctest build/test/asan.log build/asan -R \
    "^tests_($(IFS='|'; echo "${sanitized_rooms[*]}"))(_[0-9]+)?$" -j "$jobs"
  result="ASan and UBSan: $result"
}

# Each tests/fuzz/NAME.fuzz.cpp runs for a while from the kept corpus tests/fuzz/corpus/NAME and from what
# tests/fuzz/seeds.py writes.
fuzz_one() {
  local name=$1 directory=build/fuzz/$1 log=build/test/fuzz-$1.log
  mkdir -p "$directory/found"
  local corpus=() folder
  for folder in "tests/fuzz/corpus/$name" "build/fuzz/seeds/$name"; do [[ -d $folder ]] && corpus+=("$folder"); done
  [[ ${#corpus[@]} -gt 0 ]] ||
    { echo "fuzz_$name: expected inputs in tests/fuzz/corpus/$name or from tests/fuzz/seeds.py, found none" >&2
      return 1; }
  if ! build/asan/tests/fuzz_"$name" -max_total_time="$fuzz_seconds" -timeout=5 -rss_limit_mb=2048 \
    -print_final_stats=1 \
    -artifact_prefix="$directory/" "$directory/found" "${corpus[@]}" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "fuzz_$name: an input that breaks it is in $directory (log: $log)" >&2
    return 1
  fi
  grep -q 'stat::number_of_executed_units: [1-9]' "$log" ||
    { echo "fuzz_$name: expected runs, found none (log: $log)" >&2; return 1; }
}
step_fuzz() {
  local names failed=0
  mapfile -t names < <(fuzz_targets)
  [[ ${#names[@]} -ge 4 ]] ||
    { echo "expected at least 4 fuzz targets in tests/fuzz, found ${#names[@]}: ${names[*]}" >&2; return 1; }
  configure_asan
  build build/asan "${names[@]/#/--target=fuzz_}"
  rm -rf build/fuzz/seeds
  python3 tests/fuzz/seeds.py build/fuzz/seeds >/dev/null
  export -f fuzz_one
  export fuzz_seconds
  printf '%s\n' "${names[@]}" |
    xargs -P "$jobs" -I NAME bash -c 'if fuzz_one NAME; then echo "1 0 0"; else echo "0 1 0"; fi' \
    >build/test/fuzz.counts
  cat build/test/fuzz.counts >>build/test/counts
  failed=$(grep -c '^0 1' build/test/fuzz.counts) || true
  result="${#names[@]} targets, $fuzz_seconds s each, $failed failed"
  [[ $failed == 0 ]]
}

step_compile_fail() {
  local status=0
  tests/compile_fail/run g++ "$clang" >build/test/compile_fail.log || status=$?
  result=$(cat build/test/compile_fail.log)
  # shellcheck disable=SC2046
  count $(sed -nE 's/.*: ([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' build/test/compile_fail.log)
  return $status
}

# What compilers' flags change of the library's promises is refused in one sentence (tests/flags); windows.h is
# mingw-w64's.
step_flags() {
  local status=0
  tests/flags/run g++ "$clang" >build/test/flags.log || status=$?
  result=$(cat build/test/flags.log)
  # shellcheck disable=SC2046
  count $(sed -nE 's/.*: ([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' build/test/flags.log)
  return $status
}

# The C library and the Python wheel, from outside (tests/bindings).
step_bindings() {
  quietly build/test/configure-bindings.log cmake -S . -B build/bindings -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DINTAGLIO_WERROR=ON -DINTAGLIO_BUILD_C=ON -DINTAGLIO_BUILD_EXAMPLES=OFF \
    ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"}
  build build/bindings --target intaglio_c
  on_lavapipe "$(lavapipe_22)" tests/bindings/run build/bindings/lib/libintaglio.so.1 build/test/bindings \
    >build/test/bindings.log
  result=$(tail -n 1 build/test/bindings.log) && result=${result#bindings: }
}

# Every example registers, in its CMakeLists.txt, at least one ctest that runs it, labelled examples.
step_examples() {
  local lists status=0 log=build/test/examples.log
  for lists in examples/*/CMakeLists.txt; do
    [[ -f $lists ]] || { echo "examples: expected programs, found none" >&2; return 1; }
    grep -q add_test "$lists" ||
      { echo "$lists: expected a test that runs the example, found no add_test" >&2; return 1; }
  done
  build_release
  on_lavapipe "$(lavapipe_22)" ctest --test-dir build --no-tests=error -L examples --output-on-failure >"$log" \
    2>&1 || status=$?
  result=$(grep -E 'tests (passed|failed)' "$log")
  count "$(grep -cE '^ *[0-9]+/[0-9]+ .* Passed ' "$log")" "$(grep -cE '\*\*\*' "$log")"
  [[ $status == 0 ]] || cat "$log" >&2
  return $status
}

# The server against clients that are not ours (tests/serve).
step_serve() {
  local log=build/test/serve.log status=0 counts
  install_packages need_for_serve
  build_release
  [[ -x build/bin/intaglio-serve ]] || { echo "serve: expected build/bin/intaglio-serve, found none" >&2; return 1; }
  on_lavapipe "$(lavapipe_22)" tests/serve/run "$PWD/build/bin/intaglio-serve" build/serve >"$log" || status=$?
  counts=$(tail -n 1 "$log")
  # shellcheck disable=SC2086
  count $counts
  result=$(head -n -1 "$log" | paste -s -d ';')
  return $status
}

# The archive of the tool and the server, and Debian's package of the headers (tests/release).
step_release() {
  install_packages need_for_release
  build_release
  result=$(on_lavapipe "$(lavapipe_22)" tests/release/run build/test/release build) && result=${result#release: }
}

# Stages as ranks of MPI (tests/mpi), over loopback: all cases with Open MPI, the shortest ones with MPICH; then the
# server over ranks (tests/serve/ranks.py). Its build differs from the release in two files.
step_mpi() {
  local log=build/test/mpi.log model=$shared/models/fable-bitnet-i2_s.gguf icd served passed failed
  icd=$(lavapipe_22)
  install_packages need_for_mpi
  { on_lavapipe "$icd" tests/mpi/run build/mpi "$model" openmpi &&
    on_lavapipe "$icd" tests/mpi/run build/mpi "$model" mpich short; } >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  build_release
  # As deep as the release's folder: its paths are alike then, and ccache knows all but what MPI changes.
  quietly build/test/configure-mpi.log cmake --preset release -B build-mpi \
    ${prefix:+-DCMAKE_PREFIX_PATH="$prefix"} -DINTAGLIO_SHARED="$shared" -DINTAGLIO_UNITY=ON -DINTAGLIO_WERROR=ON \
    -DINTAGLIO_MPI=ON -DMPI_C_COMPILER="$(command -v mpicc.openmpi || command -v mpicc)"
  build build-mpi --target intaglio-serve
  INTAGLIO_SERVE=$PWD/build-mpi/bin/intaglio-serve on_lavapipe "$icd" python3 tests/serve/ranks.py openmpi \
    >build/test/mpi_server.log || { cat build/test/mpi_server.log >&2; return 1; }
  served=$(tail -n 1 build/test/mpi_server.log)
  read -r passed failed < <(sed -En 's/.*: ([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' <<<"$served")
  count "$(($(wc -l <"$log") + passed))" "$failed"
  result="$(head -n 1 "$log"); $(grep -c '^rank 1' "$log") ranks that end the job; $served"
}

# What README and docs say against the tree and the programs (tests/docs), and the reference, whose warnings are errors.
step_docs() {
  local status=0 pages
  build_release
  rm -rf build/reference
  quietly build/test/reference.log doxygen docs/reference/Doxyfile
  on_lavapipe "$(lavapipe_22)" tests/docs/run build/bin/intaglio build/bin/intaglio-serve build/docs "$clang" \
    >build/test/docs.log || status=$?
  pages=$(find build/reference/html -name '*.html' ! -name '*-members.html' | wc -l)
  result="$(cat build/test/docs.log); reference of $pages pages"
  return $status
}

step_consume_subdirectory() {
  local cmake
  cmake=$(newer_cmake)
  tests/consumers/run subdirectory faces glfw && CXX=$clang tests/consumers/run fetch_content &&
    CXX=clang++-$module_clang PATH=${cmake:+$cmake:}$PATH tests/consumers/run module && count 5 0
}
step_consume_installed() { tests/consumers/run installed pkg_config engrave && count 3 0; }
step_consume_conan() { tests/consumers/run conan && CXX=$clang tests/consumers/run port && count 2 0; }

# A program with one model: at most 3 MB stripped, by both compilers, and without the planner, whose messages are in
# the tool. At most 82 SPIR-V modules in the whole library, in at most 10 MB of text. What it costs to compile: the
# memory of hello, of a caller and of what engraves models (bench/compile/measure), of compilations that ccache has.
step_size() {
  local modules bytes by_clang text hello
  modules=$(find include/intaglio/kernels/spirv -name '*.hpp' ! -name demands.hpp | wc -l)
  text=$(cat include/intaglio/kernels/spirv/*.hpp | wc -c)
  hello=$(ninja -C build -t commands examples/hello/CMakeFiles/hello.dir/main.cpp.o |
    sed -nE "s# -MF [^ ]+# -MF $PWD/build/test/hello.d#; s# -o [^ ]+# -o $PWD/build/test/hello.o#; /hello.main.cpp/p")
  bench/compile/measure --hold --hello "$hello" g++ "$clang" >build/test/compile.log ||
    { cat build/test/compile.log >&2; return 1; }
  strip -o build/test/hello build/bin/hello
  bytes=$(stat -c %s build/test/hello)
  "$clang" "build/test/compile/${clang}_hello.o" -ldl -s -o build/test/hello_by_clang
  by_clang=$(stat -c %s build/test/hello_by_clang)
  result="hello: $bytes bytes stripped, $by_clang by $clang; $modules SPIR-V modules, $text bytes of text; "
  result+=$(paste -s -d ';' build/test/compile.log | sed 's/;/; /g')
  grep -q 'columns in multiples of' build/bin/intaglio && ! grep -q 'columns in multiples of' build/bin/hello ||
    { echo "size: expected the planner's messages in intaglio and not in hello" >&2; return 1; }
  [[ $modules -le 82 && $bytes -le 3000000 && $by_clang -le 3000000 && $text -le 10000000 ]]
}

# These leave cores idle, so they run side by side, behind all others and in the order of all_steps: the longest begin.
side_by_side=(mpi sanitize serve size compile_fail flags libcxx windows aarch64 amd lowered bindings examples docs
  release consume_subdirectory consume_installed consume_conan)

run_step() {
  local step=$1 status=0 wall user system summary
  local TIMEFORMAT='%0R %0U %0S'
  # A subshell of its own with -e: bash ignores -e in a function called from a condition.
  set +e
  { time { (set -e; result=""; "step_$step"; echo "$result" >"build/test/result-$step") 2>&3; }; } 3>&2 \
    2>"build/test/time-$step"
  status=$?
  set -e
  read -r wall user system <"build/test/time-$step"
  printf -v summary '[%4d s, cpu %4d s] %-20s' "$wall" $((user + system)) "$step"
  if [[ $status == 0 ]]; then
    echo "$summary ok    $(cat "build/test/result-$step")"
  else
    echo "$summary FAILED"
    echo "$step" >>build/test/failures
  fi
}

# The duration of a run depends on what these caches kept of earlier runs.
caches_text() {
  local compiled
  compiled=$(ccache -k cache_dir 2>/dev/null) || compiled=""
  echo "caches: ccache $(megabytes_in "$compiled"), Mesa $(megabytes_in "$MESA_SHADER_CACHE_DIR"/mesa_shader_cache*)"
}
megabytes_in() {
  [[ -e ${1:-} ]] || { echo none; return; }
  echo "$(du -scm "$@" 2>/dev/null | tail -n 1 | cut -f 1) MB"
}

run_steps() {
  local caches step passed failed skipped all_started=$SECONDS chosen=("$@") failures=() side=()
  if [[ ${1:-} == --list ]]; then printf '%s\n' "${all_steps[@]}"; return; fi
  [[ ${#chosen[@]} -gt 0 ]] || chosen=("${all_steps[@]}")
  for step in "${chosen[@]}"; do
    declare -F "step_$step" >/dev/null || { echo "dev: no step '$step'; ./dev test --list shows them" >&2; return 2; }
  done
  install_packages need_for_tests
  prefix=$(catch2_prefix)
  local hnswlib
  hnswlib=$(hnswlib_prefix)
  prefix+=${hnswlib:+;$hnswlib}
  mkdir -p build/test
  : >build/test/counts
  : >build/test/failures
  shared=${INTAGLIO_SHARED:-$(realpath -m ../shared)}
  if [[ ! -d $shared ]]; then
    if [[ -n ${INTAGLIO_SHARED:-} ]]; then
      echo "dev: INTAGLIO_SHARED: expected a folder, found none at $shared" >&2
      return 1
    fi
    echo "dev: WARNING: no shared test material at ../shared: tests that need it are skipped and counted as such" >&2
    export INTAGLIO_WITHOUT_SHARED=1
  fi
  # Mesa's compiled kernels are found again where a test sets XDG_CACHE_HOME for the tool's own cache too: Mesa would
  # follow it there.
  export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}}
  mkdir -p "$MESA_SHADER_CACHE_DIR"
  caches=$(caches_text)
  echo "$caches"
  for step in "${chosen[@]}"; do
    if [[ " ${side_by_side[*]} " == *" $step "* ]]; then side+=("$step"); else run_step "$step"; fi
  done
  [[ ${#side[@]} -lt 2 ]] || echo "after $((SECONDS - all_started)) s side by side: ${side[*]}"
  for step in "${side[@]}"; do
    while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do wait -n; done
    run_step "$step" >"build/test/output-$step" 2>&1 &
  done
  wait
  for step in "${side[@]}"; do cat "build/test/output-$step"; done
  mapfile -t failures <build/test/failures
  read -r passed failed skipped < \
    <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' build/test/counts)
  passed=$((passed + ${#chosen[@]} - ${#failures[@]}))
  failed=$((failed + ${#failures[@]}))
  [[ ${#failures[@]} == 0 ]] || echo "failed steps: ${failures[*]}"
  [[ $skipped == 0 ]] || echo "$skipped skipped; their logs in build/test say why"
  echo "$caches before"
  echo "$((SECONDS - all_started)) s in all, cpu $(cat "${chosen[@]/#/build/test/time-}" |
    awk '{ cpu += $2 + $3 } END { print cpu }') s; test cases and steps:"
  echo "$passed passed, $failed failed"
  [[ $failed == 0 ]]
}
