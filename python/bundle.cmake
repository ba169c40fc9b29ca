# Run when the package is installed: copies libpyc, its code generator and all they need into pyc/lib.
cmake_policy(SET CMP0057 NEW)
set(own ${library_folder}/libpyc.so.0 ${library_folder}/libpyc_llvm.so)
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${own}
  RESOLVED_DEPENDENCIES_VAR needed
  UNRESOLVED_DEPENDENCIES_VAR missing
  # What every system with a Python has; a second copy of the C++ runtime in one process would not do.
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so" "^lib(stdc\\+\\+|gcc_s)\\.so" "^linux-vdso")
if(missing)
  message(FATAL_ERROR "not found: ${missing}")
endif()
set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/pyc/lib")
foreach(library IN LISTS own needed)
  cmake_path(GET library FILENAME name)  # the name it is looked up by
  file(REAL_PATH ${library} file)
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${file} ${folder}/${name})
  file(CHMOD ${folder}/${name} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  execute_process(COMMAND ${patchelf} --set-rpath $ORIGIN ${folder}/${name} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
