# Proves that a check finds what it must: on the planted tree it exits 1 and prints exactly the expected lines.
execute_process(COMMAND ${PYTHON} ${CHECK} --root ${TREE}
  OUTPUT_VARIABLE found ERROR_VARIABLE errors RESULT_VARIABLE code)
file(READ ${EXPECTED} expected)
if(NOT code EQUAL 1)
  message(FATAL_ERROR "expected exit code 1, got ${code}\n${found}${errors}")
endif()
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "expected:\n${expected}\nfound:\n${found}${errors}")
endif()
