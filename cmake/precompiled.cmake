# Headers that most files read, compiled once per kind of target where PYC_PRECOMPILE is on (the presets dev, release and asan):
# without it a small file spends most of its time on them. A file must name what it uses all the same: the presets release
# and tsan, and clang-tidy, read the headers themselves.
option(PYC_PRECOMPILE "Compile common headers once" OFF)

set(pyc_precompiled_core
  <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <numeric> <optional> <set>
  <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
set(pyc_precompiled_ops ${pyc_precompiled_core} <ops/support/elementwise.h>)
set(pyc_precompiled_cold ${pyc_precompiled_core} <ir/graph.h>)
set(pyc_precompiled_reading ${pyc_precompiled_core} <ir/graph.h>)
set(pyc_precompiled_tool ${pyc_precompiled_core})
set(pyc_precompiled_llvm ${pyc_precompiled_core} <llvm/IR/IRBuilder.h> <llvm/IR/Module.h>)
set(pyc_precompiled_test ${pyc_precompiled_core} <filesystem> <fstream> <gtest/gtest.h>)
set(pyc_precompiled_cold_test ${pyc_precompiled_test})

# pyc_precompile(TARGET KIND): the first target of a kind compiles its headers, the others take them over. All targets of
# a kind must be compiled alike.
function(pyc_precompile target kind)
  if(NOT PYC_PRECOMPILE)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY pyc_precompiled_${kind}_owner)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  set_property(GLOBAL PROPERTY pyc_precompiled_${kind}_owner ${target})
  target_precompile_headers(${target} PRIVATE ${pyc_precompiled_${kind}})
endfunction()

# So that the compiler cache can tell two of them apart by content.
if(PYC_PRECOMPILE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
