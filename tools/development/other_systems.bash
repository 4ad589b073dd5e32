# SPDX-License-Identifier: MIT
# The steps of ./dev test that show what other systems and devices get (tools/development/steps.bash).

# Files, tokens, plans, the tool's commands, cases of Catch2 and stories for Windows, under Wine (tests/windows), and
# all of these but stories for aarch64, by qemu-user (tests/aarch64). With libc++: commands, cases and a story
# (tests/libcxx).
for_other_system() {  # for_other_system NAME
  local catch2
  catch2=$(catch2_sources)
  build_release
  result=$(INTAGLIO_SHARED=$shared on_lavapipe "$(lavapipe_22)" "tests/$1/run" "build/test/$1" "$clang" \
    "$PWD/build/bin/intaglio" "$catch2" 2>"build/test/$1.log") || { tail -n 40 "build/test/$1.log" >&2; return 1; }
  result=${result#"$1": }
}
step_windows() { for_other_system windows; }
step_aarch64() { for_other_system aarch64; }
step_libcxx() { for_other_system libcxx; }

# Plans compiled for Radeons that are not there, by the compiler of Mesa's driver (tests/amd).
step_amd() {
  local icd
  icd=$(second_radv)
  result=$(tests/amd/run build/test/amd "${icd:-$(compgen -G '/usr/share/vulkan/icd.d/radeon_icd*.json' | head -n 1)}" \
    2>build/test/amd.log) ||
    { cat build/test/amd.log >&2; return 1; }
  result=${result#amd: }
}

# What devices with less get, by a layer that lowers limits and features beneath the validation layer (tests/lowered).
step_lowered() {
  local class
  build_release
  lavapipe_at 8 "$(lavapipe_22)" tests/lowered/run build/test/lowered "$PWD/build/bin/intaglio" \
    build/dev/tests/tests_runtime "$(layer_settings)" >build/test/lowered.log
  for class in v3d least mali; do no_messages "build/test/lowered/tests-$class.log"; done
  result=$(cat build/test/lowered.log)
  count "${result%% *}" 0
}
