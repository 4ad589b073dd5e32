# SPDX-License-Identifier: MIT
# Cases of Catch2 that need no GPU, compiled for another system and run there: sourced by tests/windows/run, which runs
# in the folder of the source tree.

# Test files that name one of these need POSIX, Python, hnswlib, a clock of an idle machine or much time.
not_elsewhere='conformance|edited_gguf|bad_files|bad_gguf_files|bad_safetensors_files|python|hnsw|stopwatch|<sys/'
not_elsewhere+='|<unistd|<arpa|mkfifo|sigaction|waitpid|"sh"|"libc\.so'
# Cases that compute long and show nothing about a system.
long_cases=("~hf_config: every key*" "~time is linear*" "~every code point*" "~merging equals*" "~feature_router: what*"
  "~jinja_template: what*" "~bcml1_encode: values*" "~build_router: neighbours*" "~nfc:*")

# case_files ROOM...: the test files of rooms that, with their headers beside them, need none of these.
case_files() {
  local room file header beside
  for room in "$@"; do
    for file in tests/"$room"/*.test.cpp; do
      beside=("$file")
      while read -r header; do
        [[ ! -f tests/$room/$header ]] || beside+=("tests/$room/$header")
      done < <(sed -nE 's/^#include "([a-z_0-9]+\.hpp)"/\1/p' "$file")
      grep -qE "$not_elsewhere" "${beside[@]}" || echo "$file"
    done
  done
}

# united FILE...: one source of these, each in a namespace of its own; what they include comes before all of them.
united() {
  local file header count=0
  for file in "$@"; do
    while read -r header; do
      [[ $header != \"* || ! -f $(dirname "$file")/${header//\"/} ]] ||
        header="\"$PWD/$(dirname "$file")/${header//\"/}\""
      echo "#include $header"
    done < <(sed -nE '/^#if/q; s/^#include //p' "$file")
  done | awk '!seen[$0]++'
  for file in "$@"; do printf 'namespace test_file_%d {\n#include "%s"\n}\n' $((count += 1)) "$PWD/$file"; done
}

# compile_cases FOLDER CATCH2 SOURCE COMPILER ARGUMENT...: the cases of the rooms core, platform and io, with Catch2's
# sources of the folder CATCH2. They find the source tree at SOURCE. The array case_objects has the results. The steps
# that compile all tests show warnings.
compile_cases() {
  local folder=$1 catch2=$2 source=$3 header room
  local -a files compiler=(ccache "${@:4}" -std=c++20 -w -isystem "$catch2" -isystem "$folder/catch2" "-I$PWD/include"
    -Itests)
  while read -r header; do
    mkdir -p "$(dirname "$folder/catch2/$header")"
    echo '#include <catch_amalgamated.hpp>' >"$folder/catch2/$header"
  done < <(grep -rhoE 'catch2/[a-z_/]+\.hpp' tests --include='*.[ch]pp' | sort -u)
  "${compiler[@]}" -c "$catch2/catch_amalgamated.cpp" -o "$folder/catch2.o"
  "${compiler[@]}" -DINTAGLIO_SHARED='""' -DINTAGLIO_TOOL='""' -DINTAGLIO_SOURCE="\"$source\"" -c tests/paths.cpp \
    -o "$folder/paths.o"
  case_objects=("$folder/catch2.o" "$folder/paths.o")
  for room in core platform io; do
    mapfile -t files < <(case_files "$room")
    united "${files[@]}" >"$folder/cases_$room.cpp"
    "${compiler[@]}" -c "$folder/cases_$room.cpp" -o "$folder/cases_$room.o"
    case_objects+=("$folder/cases_$room.o")
  done
}

# cases_passed SYSTEM LOG LEAST PROGRAM...: all cases pass, and at least LEAST. Prints their number.
cases_passed() {
  local passed
  "${@:4}" >"$2" 2>&1 || { tail -n 60 "$2" >&2; echo "$1: cases that need no GPU failed" >&2; return 1; }
  passed=$(sed -nE 's/.*All tests passed \(.* in ([0-9]+) test cases?\).*/\1/p' "$2")
  [[ ${passed:-0} -ge $3 ]] ||
    { tail -n 5 "$2" >&2; echo "$1: expected at least $3 cases that pass, found ${passed:-none}" >&2; return 1; }
  echo "$passed"
}
