#!/usr/bin/env bash
# offline_build.sh DEPS.tar.xz BUILD_DIR [TARGETS…]: builds PyC on a host without a package registry. The archive holds the
# headers that such a host lacks (include/{llvm,llvm-c,protozero,xxhash.h}); the shared libLLVM must be on the host.
# PYC_CMAKE_FLAGS: more words for cmake.
set -euo pipefail
deps=$(realpath "$1") build=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$build"
tar -C "$build" -xJf "$deps"
library=$(find /usr/lib /usr/local/lib -name 'libLLVM-16.so*' -print -quit 2>/dev/null)
[[ -n $library ]] || { echo "offline_build: no libLLVM-16 on this host" >&2; exit 1; }
# shellcheck disable=SC2086  # several words
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DPYC_EXTRA_INCLUDE="$(realpath "$build")/include" \
  -DPYC_LLVM_INCLUDE="$(realpath "$build")/include" -DPYC_LLVM_LIBRARY="$library" ${PYC_CMAKE_FLAGS:-}
ninja -C "$build" "$@"
