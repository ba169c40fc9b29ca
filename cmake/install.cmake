# cmake --install and cpack: the program, the libraries, the headers, and how CMake and pkg-config find them (docs/packages.md).
# Everything is found relative to its own place: a package may be unpacked anywhere.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # pyc_packaged is all that is needed
# bin/pyc and libpyc.so look for libpyc_llvm.so beside them and in ../lib (src/backends/cpu/generator.cpp).
set(package_folder lib/cmake/pyc)

# libpyc.a: all but the code generator, which it loads when it is needed, as the shared library does.
get_property(objects GLOBAL PROPERTY pyc_objects)
add_library(pyc_static STATIC ${objects})
set_target_properties(pyc_static PROPERTIES OUTPUT_NAME pyc EXPORT_NAME static LINKER_LANGUAGE CXX)
target_include_directories(pyc_static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set(static_libraries "")
foreach(name IN ITEMS RE2 JPEG PNG TIFF WEBP OPENJPEG)
  if(PYC_${name}_INCLUDE AND PYC_${name}_LIBRARY)
    cmake_path(GET PYC_${name}_LIBRARY STEM stem)
    string(REGEX REPLACE "^lib" "" stem ${stem})
    list(APPEND static_libraries ${stem})
  endif()
endforeach()
set(static_needs_fmt OFF)
get_target_property(fmt_imported fmt::fmt IMPORTED)
if(fmt_imported)
  set(static_needs_fmt ON)
  target_link_libraries(pyc_static INTERFACE fmt::fmt)
endif()
target_link_libraries(pyc_static INTERFACE ${static_libraries} Threads::Threads ${CMAKE_DL_LIBS})
# So that a program anywhere finds libpyc_llvm.so where it was installed.
target_link_options(pyc_static INTERFACE
  "LINKER:-rpath,$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/lib>")

add_library(pyc::pyc ALIAS pyc_shared)
add_library(pyc::static ALIAS pyc_static)
set_target_properties(pyc_shared PROPERTIES EXPORT_NAME pyc)
add_custom_target(pyc_packaged DEPENDS pyc pyc_shared pyc_static pyc_llvm_module)

install(TARGETS pyc_shared pyc_static EXPORT pycTargets COMPONENT pyc
  LIBRARY DESTINATION lib COMPONENT pyc ARCHIVE DESTINATION lib COMPONENT pyc)
install(TARGETS pyc_llvm_module LIBRARY DESTINATION lib COMPONENT pyc)
install(TARGETS pyc RUNTIME DESTINATION bin COMPONENT pyc)
# What the program writes of itself; not where it is made for another machine.
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    function(write_by_pyc folder file)
      set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/\${folder}\")
      file(MAKE_DIRECTORY \"\${folder}\")
      execute_process(COMMAND \"$<TARGET_FILE:pyc>\" \${ARGN} OUTPUT_FILE \"\${folder}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    endfunction()
    write_by_pyc(man/man1 pyc.1 man)
    write_by_pyc(bash-completion/completions pyc completion bash)
    write_by_pyc(zsh/vendor-completions _pyc completion zsh)
    write_by_pyc(fish/vendor_completions.d pyc.fish completion fish)" COMPONENT pyc)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pyc DESTINATION include COMPONENT pyc)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/pyc COMPONENT pyc)
install(EXPORT pycTargets NAMESPACE pyc:: DESTINATION ${package_folder} COMPONENT pyc)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pycConfig.cmake.in ${PROJECT_BINARY_DIR}/generated/pycConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0 the second number counts as the first does after it.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/pycConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/pycConfig.cmake ${PROJECT_BINARY_DIR}/generated/pycConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT pyc)
list(TRANSFORM static_libraries PREPEND "-l" OUTPUT_VARIABLE private_libraries)
list(JOIN private_libraries " " private_libraries)
configure_file(${PROJECT_SOURCE_DIR}/cmake/pyc.pc.in ${PROJECT_BINARY_DIR}/generated/pyc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/pyc.pc DESTINATION lib/pkgconfig COMPONENT pyc)

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR "TGZ;DEB")
  set(CPACK_PACKAGE_NAME pyc)
  set(CPACK_PACKAGE_VENDOR PyC)
  set(CPACK_PACKAGE_CONTACT "PyC <pyc@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "A compiler and runtime for machine-learning models")
  set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_PACKAGE_CHECKSUM SHA256)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_THREADS 0)
  include(CPack)
endif()
