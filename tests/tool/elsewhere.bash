# SPDX-License-Identifier: MIT
# The tool for another system, compared with the tool of this system: sourced by tests/windows/run and
# tests/aarch64/run, which run in the folder of the source tree.

# link_headers FOLDER: headers that belong to no system, apart from those that do.
link_headers() {
  local each
  mkdir -p "$1"
  for each in vulkan vk_video boost nlohmann xxhash.h CLI; do ln -sfn "/usr/include/$each" "$1/$each"; done
}

# compile_tool FOLDER COMPILER ARGUMENT...: its sources in one file, but for those with definitions of their own.
# The array tool_objects has the results.
compile_tool() {
  local folder=$1 source name apart=(allocation_count embedded_model engrave graph_search main ranks)
  local -a compiler=("${@:2}" -std=c++20 -Wall -Wextra -Werror "-I$PWD/include"
    "-DINTAGLIO_ENGRAVED_HEADER=\"$PWD/examples/tool/default_models.hpp\"" "-DINTAGLIO_CXX_COMPILER=\"g++\""
    "-DINTAGLIO_EMBEDDED_MODEL=\"$PWD/examples/tool/fable.gguf\"")
  for source in examples/tool/*.cpp; do
    [[ " ${apart[*]} " == *" $(basename "$source" .cpp) "* ]] || echo "#include \"$PWD/$source\""
  done >"$folder/tool.cpp"
  tool_objects=()
  for source in "$folder/tool.cpp" "${apart[@]/%/.cpp}"; do
    [[ $source == */* ]] || source=examples/tool/$source
    name=$folder/$(basename "$source" .cpp).o
    ccache "${compiler[@]}" -c "$source" -o "$name"
    tool_objects+=("$name")
  done
}

# With this folder in its name a path has more than 260 characters.
long_folder=$(printf "ö%.0s" {1..80})/$(printf "a%.0s" {1..90})/$(printf "b%.0s" {1..100})

# file_commands FOLDER TOOL...: what commands on files print in FOLDER, and the hashes of what they write.
file_commands() {
  mkdir -p "$1/$long_folder"
  cp examples/tool/fable.gguf "$1/Märchen.gguf"
  cp examples/tool/fable.gguf "$1/$long_folder/deep.gguf"
  local words
  for words in "inspect Märchen.gguf" "check Märchen.gguf" "check $long_folder/deep.gguf" \
    "plan fable --profile portable" "tokenize -m Märchen.gguf --text Mäuse鼠" \
    "detokenize -m Märchen.gguf --ids 5,9,300" "convert Märchen.gguf ärmer.gguf --codec tq1_0 --threads 1" \
    "index Märchen.gguf -o Gedächtnis" \
    "convert $long_folder/deep.gguf $long_folder/deeper.gguf --codec tq1_0 --threads 1" \
    "plan fable --profile portable --html Plän.html" "check kéine.gguf"; do
    echo "> $words"
    # shellcheck disable=SC2086
    (cd "$1" && "${@:2}" $words 2>&1) || echo "status $?"
  done | tr -d '\r'
  (cd "$1" && sha256sum ärmer.gguf "$long_folder/deeper.gguf" Gedächtnis/* Plän.html)
}

# same_file_commands SYSTEM HERE THERE TOOL OTHER_TOOL...: the commands print and write the same by TOOL in HERE and by
# OTHER_TOOL in THERE, and one of them fails, which has no file. Prints the number of lines.
same_file_commands() {
  file_commands "$2" "$4" >"$2.txt" && file_commands "$3" "${@:5}" >"$3.txt" ||
    { echo "$1: tool: expected files that its commands write, found none" >&2; return 1; }
  diff "$2.txt" "$3.txt" >&2 ||
    { echo "$1: tool: expected what it prints here (<), found other lines (>)" >&2; return 1; }
  [[ $(grep '^status' "$2.txt") == "status 1" ]] ||
    { cat "$2.txt" >&2; echo "$1: tool: expected one command that fails, found another count" >&2; return 1; }
  wc -l <"$2.txt"
}
