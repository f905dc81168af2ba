# SPDX-License-Identifier: Apache-2.0
# The tests as entries of ctest, from what is in the tree: entries.py says which, entry.py runs one.

option(ALL_TESTS "Run all tests, including those marked as exhaustive" OFF)
set(selection "")
if(ALL_TESTS)
  set(selection --all)
endif()

# Of a whole entry; a single test has less, and dies with the stacks of all threads (entry.py).
set(entry_limit_s 1500)
# entry.py, which may run it twice, ends by itself before ctest ends it, which would leave its children running.
math(EXPR entry_timeout_s "2 * ${entry_limit_s} + 60")

set(runner ${CMAKE_CURRENT_SOURCE_DIR}/test/runner)
file(GLOB_RECURSE test_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test/test_*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${runner}/entries.py ${runner}/costs.json)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${runner}/entries.py ${selection}
  OUTPUT_VARIABLE entries
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY
)
string(REPLACE "\n" ";" entries "${entries}")
foreach(entry IN LISTS entries)
  separate_arguments(files UNIX_COMMAND "${entry}")
  list(POP_FRONT files name processors cost)
  set(result ${AMENT_TEST_RESULTS_DIR}/${PROJECT_NAME}/${name}.xunit.xml)
  ament_add_test(${name}
    COMMAND ${Python3_EXECUTABLE} -u ${runner}/entry.py ${selection}
      ${CMAKE_CURRENT_BINARY_DIR}/test_output/${name}.txt ${entry_limit_s} ${result} ${files}
    RESULT_FILE ${result}
    TIMEOUT ${entry_timeout_s}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
  )
  set_tests_properties(${name} PROPERTIES PROCESSORS ${processors} COST ${cost} LABELS pytest)
endforeach()
