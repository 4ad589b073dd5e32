# SPDX-License-Identifier: MIT
# What ./dev needs from apt. Each need is probed first, so that nothing happens (and no root is needed) where all is
# there.

packages_missing=()
# need PACKAGE PROBE...: PACKAGE is missing unless one of the probes, commands or path patterns, is there.
need() {
  local package=$1 probe
  shift
  [[ " ${packages_missing[*]} " != *" $package "* ]] || return 0
  for probe in "$@"; do
    if [[ $probe == */* ]]; then compgen -G "$probe" >/dev/null && return 0
    else command -v "$probe" >/dev/null && return 0; fi
  done
  packages_missing+=("$package")
}

need_for_build() {
  need g++ g++
  need cmake cmake
  need ninja-build ninja
  need ccache ccache
  need libvulkan-dev /usr/include/vulkan/vulkan_core.h
  need libvulkan1 '/usr/lib/*/libvulkan.so.1'
  need mesa-vulkan-drivers '/usr/share/vulkan/icd.d/*.json' '/etc/vulkan/icd.d/*.json'
  need "$boost" /usr/include/boost/hana.hpp
  need nlohmann-json3-dev /usr/include/nlohmann/json.hpp
  need libxxhash-dev /usr/include/xxhash.h
  need libcli11-dev /usr/include/CLI/CLI.hpp
  need libssl-dev /usr/include/openssl/ssl.h
  need libedit-dev /usr/include/histedit.h
  need libmd4c-dev /usr/include/md4c.h
  need libcurl4-openssl-dev '/usr/include/*/curl/curl.h' /usr/include/curl/curl.h
}

# What the chosen steps take beyond the tool's build; serve, release and mpi ask for theirs themselves.
need_for_tests() {
  local step
  need_for_build
  need git git
  need python3 python3
  need curl curl
  need xz-utils xz
  for step in "${chosen[@]}"; do need_for_step "$step"; done
}

need_for_clang() { need "clang-$clang_version" "clang++-$clang_version"; }
need_for_format() {
  need git git
  need "clang-format-$clang_version" "clang-format-$clang_version"
}
need_for_windows() {
  need_for_clang
  need g++-mingw-w64-x86-64-posix x86_64-w64-mingw32-g++-posix
}
need_for_python() {
  need python3-numpy '/usr/lib/python3/dist-packages/numpy/__init__.py'
  need python3-venv '/usr/lib/python3.*/ensurepip/__init__.py'
}

need_for_step() {  # need_for_step STEP
  case $1 in
    layers | docs) need_for_format ;;&
    headers | clang | sanitize | fuzz | size | compile_fail | docs | consume_subdirectory | consume_conan)
      need_for_clang ;;&
    sanitize | fuzz)
      need "libclang-rt-$clang_version-dev" \
        "/usr/lib/llvm-$clang_version/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a" ;;&
    flags)
      need_for_windows
      need "libc++-$clang_version-dev" "/usr/lib/llvm-$clang_version/include/c++/v1/vector" ;;
    libcxx)
      need_for_clang
      need "libc++-$clang_version-dev" "/usr/lib/llvm-$clang_version/include/c++/v1/vector" ;;
    windows)
      need_for_windows
      need "lld-$clang_version" "ld.lld-$clang_version"
      need wine64 wine64 /usr/lib/wine/wine64
      need xvfb Xvfb ;;
    aarch64)
      need_for_clang
      need g++-aarch64-linux-gnu aarch64-linux-gnu-g++
      need qemu-user qemu-aarch64 ;;
    gcc | cpu | gpu | gpu_second | validation | clang | sanitize | fuzz | lowered | amd)
      need spirv-tools spirv-val
      need mesa-vulkan-drivers '/usr/share/vulkan/icd.d/lvp_icd*.json'
      [[ $distribution == debian-12 ]] || need catch2 /usr/include/catch2/catch_all.hpp
      need_for_python ;;&
    validation | lowered)
      need vulkan-validationlayers '/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json' ;;
    bindings | serve | consume_conan) need_for_python ;;&
    consume_subdirectory)
      need "clang-$module_clang" "clang++-$module_clang"
      need "clang-tools-$module_clang" "clang-scan-deps-$module_clang" ;;&
    examples | consume_*)
      need libglfw3-dev /usr/include/GLFW/glfw3.h
      need xvfb Xvfb
      need pkg-config pkg-config ;;
    serve) need openssl openssl ;;
    docs)
      need doxygen doxygen
      need tmux tmux ;;
  esac
}

need_for_serve() {
  need_for_build
  need haproxy haproxy /usr/sbin/haproxy
  need poppler-utils pdftotext
  # For the tests of the pages, where node and npm are: Debian 12 has too old ones. Ubuntu has Chromium as a snap alone.
  if [[ $distribution == debian-* ]] && command -v node >/dev/null && command -v npm >/dev/null; then
    need chromium chromium chromium-browser
  fi
}

need_for_release() {
  need_for_build
  need debhelper dh
  need lintian lintian
}

need_for_mpi() {
  need g++ g++
  need pkg-config pkg-config
  need openmpi-bin mpirun.openmpi
  need libopenmpi-dev '/usr/lib/*/pkgconfig/ompi-c.pc' '/usr/lib/*/openmpi/include/mpi.h'
  need mpich mpirun.mpich
  need libmpich-dev '/usr/lib/*/pkgconfig/mpich.pc'
}

system_facts() {
  # shellcheck disable=SC1091
  distribution=$(. /etc/os-release && echo "$ID-${VERSION_ID:-none}")
  boost=libboost-dev
  [[ $distribution == debian-12 ]] && boost=libboost1.81-dev
  # The oldest clang that is here or can be had, from 16 on: 16 in Debian 12, 17 in Debian 13 and Ubuntu 24.04.
  for clang_version in 16 17 18 19 20 21 16; do
    command -v "clang++-$clang_version" >/dev/null && break
    { apt-cache show "clang-$clang_version" 2>/dev/null || true; } | grep -q '^Package' && break
  done
  clang=clang++-$clang_version
  # For C++ modules: in Debian 12 and 13, and in Ubuntu 24.04.
  module_clang=19
  [[ $distribution != ubuntu-24.04 ]] || module_clang=18
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "dev: root is needed to install: ${packages_missing[*]}; there is no sudo" >&2; return 1; fi
}

# apt_get ARGUMENT...: as root; a mirror that fails is asked again, another installation that runs is waited for
apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -q -o Acquire::Retries=4 \
  -o DPkg::Lock::Timeout=300 "$@"; }

# install_packages need_for_build|need_for_tests
install_packages() {
  # A bare system knows no packages before its first update.
  command -v apt-get >/dev/null ||
    { echo "dev: expected Debian or Ubuntu (apt-get); install by hand what docs/packaging.md lists" >&2; return 1; }
  system_facts
  packages_missing=()
  "$1"
  [[ ${#packages_missing[@]} == 0 ]] && return 0
  mkdir -p build
  (
    flock 9  # steps that run side by side
    echo "dev: reading the package lists: something is missing (log: build/apt.log)" >&2
    # A mirror that is gone makes this fail though the others answered: whether that matters, the installation shows.
    if ! apt_get update >build/apt.log 2>&1; then
      echo "dev: some package lists could not be read; going on with the others" >&2
      tail -n 5 build/apt.log >&2
    fi
    system_facts
    packages_missing=()
    "$1"
    echo "dev: installing ${packages_missing[*]}" >&2
    if ! apt_get -y install --no-install-recommends "${packages_missing[@]}" >>build/apt.log 2>&1; then
      tail -n 20 build/apt.log >&2
      return 1
    fi
    packages_missing=()
    "$1"
    [[ ${#packages_missing[@]} == 0 ]] ||
      { echo "dev: installed, but still missing: ${packages_missing[*]}" >&2; return 1; }
  ) 9>build/apt.lock || return 1
  system_facts
}

# Debian 12 itself has Catch2 2; version 3 comes from its backports, unpacked beside the system.
catch2_prefix() {
  [[ $distribution == debian-12 && ! -f /usr/include/catch2/catch_all.hpp ]] || return 0
  [[ -f build/.catch2/root/usr/include/catch2/catch_all.hpp ]] ||
    tools/unpack_debs build/.catch2 bookworm-backports libcatch2-dev >&2
  echo "$PWD/build/.catch2/root/usr"
}

# Graphs over a feature index's gates: hnswlib, headers for any machine, from Debian 12's archive. Nothing where the
# system has it or no Debian mirror is (INTAGLIO_DEBIAN_MIRROR): then what needs it is left out.
hnswlib_prefix() {
  [[ ! -f /usr/include/hnswlib/hnswlib.h ]] || return 0
  mkdir -p build
  [[ -f build/.hnswlib/root/usr/include/hnswlib/hnswlib.h ]] ||
    tools/unpack_debs build/.hnswlib bookworm libhnswlib-dev >build/hnswlib.log 2>&1 || {
    [[ $distribution != debian-* ]] || { cat build/hnswlib.log >&2; return 1; }
    return 0
  }
  echo "$PWD/build/.hnswlib/root/usr"
}

# Catch2's sources in two files, for systems that have no package of it: prints their folder. Nothing where no Debian
# mirror is (INTAGLIO_DEBIAN_MIRROR): then its cases are not run there.
catch2_sources() {
  mkdir -p build
  (
    flock 9  # steps that run side by side
    [[ -f build/.catch2_sources/root/catch2/extras/catch_amalgamated.cpp ]] ||
      tools/unpack_debs build/.catch2_sources bookworm-backports source:catch2 >build/catch2_sources.log 2>&1
  ) 9>build/catch2_sources.lock || {
    [[ $distribution != debian-* ]] || { cat build/catch2_sources.log >&2; return 1; }
    return 0
  }
  echo "$PWD/build/.catch2_sources/root/catch2/extras"
}

# C++ modules want CMake 3.28, which the backports of Debian 12 have: prints the folder of that program, nothing
# elsewhere, where the system's own is as new.
newer_cmake() {
  [[ $distribution == debian-12 ]] || return 0
  [[ -d build/.cmake331/root ]] || tools/unpack_debs build/.cmake331 bookworm-backports cmake cmake-data >&2
  echo "$PWD/build/.cmake331/root/usr/bin"
}

# Validation layer 1.4 of Debian 13 with the C library that it wants: prints the folder of both, nothing elsewhere,
# where the system's own is as new.
newer_layer() {
  [[ $distribution == debian-12 ]] || return 0
  [[ -d build/.layer14/root ]] ||
    tools/unpack_debs build/.layer14 trixie vulkan-validationlayers libc6 libstdc++6 libgcc-s1 >&2
  echo "$PWD/build/.layer14/root"
}

# A driver of Mesa 25 from the backports of Debian 12: prints its ICD file, nothing elsewhere. second_driver LIBRARY
# NAME
second_driver() {
  [[ $distribution == debian-12 ]] || return 0
  local root=$PWD/build/.mesa25/root library
  [[ -d $root ]] || tools/unpack_debs build/.mesa25 bookworm-backports mesa-vulkan-drivers >&2
  library=$(find "$root" -name "$1" -print -quit)
  [[ -n $library ]] || { echo "dev: $root: expected $1, found none" >&2; return 1; }
  printf '{ "file_format_version": "1.0.0", "ICD": { "library_path": "%s", "api_version": "1.4.305" } }\n' "$library" \
    >"build/.mesa25/$2_icd.json"
  echo "$PWD/build/.mesa25/$2_icd.json"
}
second_lavapipe() { second_driver libvulkan_lvp.so lvp; }
second_radv() { second_driver libvulkan_radeon.so radeon; }
