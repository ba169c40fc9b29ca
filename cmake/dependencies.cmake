# Dependencies come from installed packages or, where there are none, from plain include folders: the default ones,
# CMAKE_INCLUDE_PATH and PYC_EXTRA_INCLUDE.

# Makes `target` exist: from the CMake package, else header-only from the folder that holds `header`, with any further
# arguments as definitions.
function(pyc_require target package header)
  find_package(${package} CONFIG QUIET)
  if(TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER "pyc_${package}_headers" plain)
  find_path(${plain}_INCLUDE ${header} HINTS ${PYC_EXTRA_INCLUDE})
  if(NOT ${plain}_INCLUDE)
    message(FATAL_ERROR "${package} not found: install its package (./dev build does), or name the folder that "
                        "holds ${header} in PYC_EXTRA_INCLUDE")
  endif()
  add_library(${plain} INTERFACE)
  target_include_directories(${plain} SYSTEM INTERFACE ${${plain}_INCLUDE})
  target_compile_definitions(${plain} INTERFACE ${ARGN})
  add_library(${target} ALIAS ${plain})
endfunction()

find_package(Threads REQUIRED)
pyc_require(fmt::fmt fmt fmt/format.h FMT_HEADER_ONLY=1)

# xxHash is used as headers only, so that no library is needed. The definition is spelled so that a source file may
# repeat it (#define XXH_INLINE_ALL) without a redefinition warning.
find_path(PYC_XXHASH_INCLUDE xxhash.h HINTS ${PYC_EXTRA_INCLUDE})
if(NOT PYC_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h not found: install libxxhash-dev, or name its folder in PYC_EXTRA_INCLUDE")
endif()
add_library(pyc_xxhash INTERFACE)
target_include_directories(pyc_xxhash SYSTEM INTERFACE ${PYC_XXHASH_INCLUDE})
target_compile_definitions(pyc_xxhash INTERFACE XXH_INLINE_ALL=)

# Defines pyc_llvm: LLVM's headers (as system headers, they warn) and the shared libLLVM; and what version it is.
function(pyc_find_llvm)
  add_library(pyc_llvm INTERFACE)
  set(PYC_LLVM_VERSION 16 PARENT_SCOPE)
  if(PYC_LLVM_INCLUDE OR PYC_LLVM_LIBRARY)
    if(NOT EXISTS "${PYC_LLVM_INCLUDE}/llvm/Config/llvm-config.h")
      message(FATAL_ERROR "PYC_LLVM_INCLUDE='${PYC_LLVM_INCLUDE}' does not hold llvm/Config/llvm-config.h")
    endif()
    if(NOT EXISTS "${PYC_LLVM_LIBRARY}")
      message(FATAL_ERROR "PYC_LLVM_LIBRARY='${PYC_LLVM_LIBRARY}' does not exist; it goes with PYC_LLVM_INCLUDE")
    endif()
    target_include_directories(pyc_llvm SYSTEM INTERFACE ${PYC_LLVM_INCLUDE})
    target_link_libraries(pyc_llvm INTERFACE ${PYC_LLVM_LIBRARY})
    return()
  endif()
  find_package(LLVM 16 CONFIG QUIET)
  if(NOT TARGET LLVM)
    message(FATAL_ERROR "LLVM 16 not found: install llvm-16-dev, or give -DPYC_LLVM_INCLUDE=<include folder> "
                        "-DPYC_LLVM_LIBRARY=<shared libLLVM>")
  endif()
  separate_arguments(definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_options(pyc_llvm INTERFACE ${definitions})
  target_include_directories(pyc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(pyc_llvm INTERFACE LLVM)
  set(PYC_LLVM_VERSION ${LLVM_PACKAGE_VERSION} PARENT_SCOPE)
endfunction()

# Defines pyc_host_libraries: libraries that host functions use where they are there. What needs one that is missing is
# refused with that reason when a model runs.
function(pyc_find_host_libraries)
  add_library(pyc_host_libraries INTERFACE)
  # name, header, library
  foreach(one IN ITEMS
      "RE2 re2/re2.h re2" "JPEG jpeglib.h jpeg" "PNG png.h png" "TIFF tiffio.h tiff" "WEBP webp/decode.h webp"
      "OPENJPEG openjpeg.h openjp2")
    separate_arguments(one)
    list(GET one 0 name)
    list(GET one 1 header)
    list(GET one 2 library)
    find_path(PYC_${name}_INCLUDE ${header} HINTS ${PYC_EXTRA_INCLUDE} PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4)
    find_library(PYC_${name}_LIBRARY ${library})
    if(PYC_${name}_INCLUDE AND PYC_${name}_LIBRARY)
      target_include_directories(pyc_host_libraries SYSTEM INTERFACE ${PYC_${name}_INCLUDE})
      target_compile_definitions(pyc_host_libraries INTERFACE PYC_HAVE_${name})
      target_link_libraries(pyc_host_libraries INTERFACE ${PYC_${name}_LIBRARY})
    else()
      message(STATUS "${name} not found: what needs it is refused")
    endif()
  endforeach()
endfunction()
