# SPDX-License-Identifier: MIT
# clang-format over every C++, JavaScript and GLSL source of the tree that is not generated.

# format_sources CLANG_FORMAT_ARGUMENT...: -i writes, --dry-run -Werror fails where something would change
format_sources() {
  local generated=(':!include/*/spirv/*' ':!*_emulated.hpp' ':!*unicode_tables*') \
    list=(git ls-files -z --cached --others --exclude-standard --)
  "${list[@]}" '*.hpp' '*.cpp' '*.js' '*.mjs' "${generated[@]}" |
    xargs -0 -r -n 60 -P "$(nproc)" "clang-format-$clang_version" "$@"
  # GLSL is read as C++, which the file's name must say; what differs is found by comparing.
  local source formatted differing=0
  while IFS= read -r -d '' source; do
    [[ -f $source ]] || continue  # git lists what was removed and not committed yet
    formatted=$("clang-format-$clang_version" --assume-filename="${source%.*}.cpp" <"$source"; echo x)
    [[ ${formatted%x} == "$(cat "$source")"$'\n' ]] && continue
    if [[ $1 == -i ]]; then printf '%s' "${formatted%x}" >"$source"
    else echo "$source: expected the form that ./dev format gives" >&2; differing=1; fi
  done < <("${list[@]}" 'shaders/*.comp' 'shaders/*.glsl')
  return $differing
}
