# shellcheck shell=bash disable=SC2034  # sourced by ./dev
# The Debian and Ubuntu packages PyC needs, all in this one place.

# Building the library, the program and the tests.
packages_build=(
  g++ cmake ninja-build ccache python3
  llvm-16-dev zlib1g-dev libzstd-dev # LLVM's CMake package asks for the last two
  libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libgtest-dev libprotozero-dev
  # Optional: regular expressions and image formats of host functions.
  libre2-dev libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev
)
# Sanitizer builds; setarch comes from util-linux.
packages_test=(clang-16 lld-16 libclang-rt-16-dev llvm-16 util-linux libmpfr-dev strace)
# The other instruction set: a cross compiler and an emulator.
if [[ $(uname -m) == x86_64 ]]; then
  packages_test+=(qemu-user g++-aarch64-linux-gnu)
else
  packages_test+=(qemu-user g++-x86-64-linux-gnu)
fi
# A browser that opens reports; their test is not run where there is none.
packages_page=(chromium-headless-shell)
# What renders the documentation; its test is not run where there is none.
packages_docs=(python3-markdown-it)
packages_lint=(git clang-format-16 clang-tidy-16)
# Rivals and the measuring harness.
packages_bench=(libopenblas-dev libbenchmark-dev)
# A virtual environment for what PyC is compared with (scripts/oracles.txt).
packages_oracles=(python3-venv)
# A clean system that packages are tried in.
packages_clean=(mmdebstrap)
# Python's headers, for the native module of the package in python/.
packages_python=(python3-dev)
