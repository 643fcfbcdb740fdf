# Installs the build into a folder of its own, builds a project that uses it, and runs what that
# makes. Everything that is installed must have been built.
#
# usage: cmake -DBUILD=<folder> -DSOURCE=<folder> -DCOMPONENTS=<list> -P install_test.cmake
cmake_minimum_required(VERSION 3.25)
set(work "${BUILD}/install-test/${COMPONENTS}")
file(REMOVE_RECURSE "${work}")
string(REPLACE "+" ";" components "${COMPONENTS}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${code}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(expect_output text)
  if(NOT output STREQUAL "${text}\n")
    message(FATAL_ERROR "expected \"${text}\", got \"${output}\"")
  endif()
endfunction()

foreach(component IN LISTS components)
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix" --component ${component})
endforeach()
set(more ${components})
list(REMOVE_ITEM more core)
run("${CMAKE_COMMAND}" -S "${SOURCE}/consumer" -B "${work}/consumer" -G Ninja
  "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_BUILD_TYPE=Release" "-DMORE_COMPONENTS=${more}")
run("${CMAKE_COMMAND}" --build "${work}/consumer")

run("${work}/consumer/plans")
expect_output("124439808 parameters")
run("${work}/prefix/bin/plimsoll" params gpt2 --json)
if("engine" IN_LIST components)
  run("${work}/consumer/meters")
  expect_output("100 bytes")
  run("${work}/prefix/bin/plimsoll" measure minigpt:d=8,L=1,V=9,s=4,heads=1 --steps 2)
else()
  # A component that is not there is said so, and not half found.
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}/consumer" -B "${work}/missing" -G Ninja
    "-DCMAKE_PREFIX_PATH=${work}/prefix" -DMORE_COMPONENTS=engine
    RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE error)
  if(code EQUAL 0 OR NOT error MATCHES "component engine: this installation")
    message(FATAL_ERROR "expected a refusal of the component engine, got ${code}: ${error}")
  endif()
endif()
