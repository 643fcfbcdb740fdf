# Options, compile flags and the functions with which every room, program and test is declared.
#
#   plimsoll_options                     INTERFACE target: language, warnings, sanitizers, linker
#   plimsoll_add_library(<room> ...)     one room, as plimsoll::<room>
#   plimsoll_add_executable(<name> ...)  a program (tool, benchmark, example)
#   plimsoll_add_test_program(<name> ..) a program that tests start
#   plimsoll_add_test(<name> ...)        one doctest program = one CTest entry
#   plimsoll_add_fuzzer(<name> ...)      a libFuzzer target; without clang, a replay of its corpus
#
# Targets carry everything; nothing here sets flags for a directory. Programs land in <build>/bin:
# the name <build>/plimsoll is taken by the folder of the room targets.
include_guard(GLOBAL)

option(PLIMSOLL_ENGINE "Build what needs libtorch: engine, measure, train" ON)
option(PLIMSOLL_INSTALL "Make rules for cmake --install" ${PROJECT_IS_TOP_LEVEL})
option(PLIMSOLL_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PLIMSOLL_WERROR "Treat warnings as errors" OFF)
option(PLIMSOLL_FUZZ "Build fuzzers with libFuzzer (clang)" OFF)
option(PLIMSOLL_CCACHE "Compile through ccache when it is installed" ON)
option(PLIMSOLL_UNITY "Compile eight sources of a room as one: a fifth of the time from nothing" ON)
set(PLIMSOLL_SANITIZE "" CACHE STRING "Sanitizers: empty, \"address;undefined\" or \"thread\"")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# --- flags --------------------------------------------------------------------------------------

add_library(plimsoll_options INTERFACE)
target_compile_features(plimsoll_options INTERFACE cxx_std_20)
target_compile_options(plimsoll_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wold-style-cast
  $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>  # sources of one batch see each other's names
  -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${PLIMSOLL_WERROR}>:-Werror>)
# g++ 12 sees overlapping copies in std::string's own code (its bug 105651).
target_compile_options(plimsoll_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)

# Index checks of the standard library wherever speed is not the point.
target_compile_definitions(plimsoll_options INTERFACE
  $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

# __FILE__ reads "plimsoll/plan/walk.cpp" in every checkout. The second form is how ccache spells
# paths below its base directory.
file(RELATIVE_PATH plimsoll_up "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
target_compile_options(plimsoll_options INTERFACE
  "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=" "-fmacro-prefix-map=${plimsoll_up}=")

foreach(sanitizer IN LISTS PLIMSOLL_SANITIZE)
  if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
    message(FATAL_ERROR "[PLIMSOLL_SANITIZE] unknown sanitizer: ${sanitizer}, "
      "expected address, undefined or thread. Hint: -DPLIMSOLL_SANITIZE='address;undefined'")
  endif()
endforeach()
if("thread" IN_LIST PLIMSOLL_SANITIZE AND "address" IN_LIST PLIMSOLL_SANITIZE)
  message(FATAL_ERROR "[PLIMSOLL_SANITIZE] address and thread exclude each other: "
    "${PLIMSOLL_SANITIZE}, expected one of them. Hint: build the presets asan and tsan apart")
endif()
if(PLIMSOLL_SANITIZE)
  list(JOIN PLIMSOLL_SANITIZE "," plimsoll_sanitizers)
  set(plimsoll_sanitize_flags
    "-fsanitize=${plimsoll_sanitizers}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(plimsoll_options INTERFACE ${plimsoll_sanitize_flags})
  target_link_options(plimsoll_options INTERFACE ${plimsoll_sanitize_flags})
endif()
if(PLIMSOLL_FUZZ)
  target_compile_options(plimsoll_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# --- speed of the build -------------------------------------------------------------------------

# Linking against libtorch takes seconds with the default linker and a quarter of one with mold.
find_program(PLIMSOLL_MOLD mold)
mark_as_advanced(PLIMSOLL_MOLD)
if(PLIMSOLL_MOLD)
  target_link_options(plimsoll_options INTERFACE -fuse-ld=mold)
endif()

# The launcher carries ccache's settings, so that they hold without a configuration file:
# a base directory lets a second checkout hit, dependency files in place of a preprocessor run halve the
# cost of a miss, the sloppiness is what precompiled headers need.
find_program(PLIMSOLL_CCACHE_PROGRAM ccache)
mark_as_advanced(PLIMSOLL_CCACHE_PROGRAM)
if(PLIMSOLL_CCACHE AND PLIMSOLL_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
    "CCACHE_DEPEND=1"
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${PLIMSOLL_CCACHE_PROGRAM}")
endif()

# --- functions ----------------------------------------------------------------------------------

# The flags are the builder's, not the consumer's: they are left out of the install export.
function(plimsoll_apply_options target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:plimsoll_options>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

function(plimsoll_refuse_unknown_arguments function name unknown)
  if(unknown)
    message(FATAL_ERROR "[${function}] ${name}: unknown arguments: ${unknown}, "
      "expected SOURCES, DEPENDS and what the function documents. "
      "Hint: keywords are written in capitals")
  endif()
endfunction()

# plimsoll_compile_in_batches(<target>)
#
# Most of a small source's time goes into its headers, so with PLIMSOLL_UNITY eight sources compile as
# one. They share their unnamed namespaces then: two helpers of one name are an error, and mostly one
# helper written twice.
function(plimsoll_compile_in_batches target)
  if(PLIMSOLL_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# plimsoll_optimise_lightly(<target>): for code whose speed nobody waits for; compiles in half the time.
function(plimsoll_optimise_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# plimsoll_add_library(<room> SOURCES <file>... DEPENDS <target>...)
# A static library plimsoll_<room> and its alias plimsoll::<room>. Includes are written from the
# repository root. DEPENDS are public, since a room's headers show the types of the rooms below.
# A room of headers alone becomes an INTERFACE library. In `engine/run` the slash turns into `_`.
# Sources compile in batches.
function(plimsoll_add_library room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  plimsoll_refuse_unknown_arguments(plimsoll_add_library ${room} "${arg_UNPARSED_ARGUMENTS}")
  string(REPLACE "/" "_" room "${room}")
  set(target plimsoll_${room})
  if(arg_SOURCES)
    set(scope PUBLIC)
    add_library(${target} STATIC ${arg_SOURCES})
    plimsoll_apply_options(${target})
    plimsoll_compile_in_batches(${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(plimsoll::${room} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} ${scope} ${arg_DEPENDS})
  if(PLIMSOLL_INSTALL)
    plimsoll_install_room(${target} ${room})
  endif()
endfunction()

# plimsoll_add_executable(<name> SOURCES <file>... DEPENDS <target>...)
function(plimsoll_add_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  plimsoll_refuse_unknown_arguments(plimsoll_add_executable ${name} "${arg_UNPARSED_ARGUMENTS}")
  add_executable(${name} ${arg_SOURCES})
  plimsoll_apply_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
endfunction()

# plimsoll_add_test_program(<name> SOURCES <file>... DEPENDS <target>...)
# A program of the tests, optimised lightly: what it tests lies in the libraries. Sources compile in
# batches, like those of a room.
function(plimsoll_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  plimsoll_refuse_unknown_arguments(plimsoll_add_test_program ${name} "${arg_UNPARSED_ARGUMENTS}")
  plimsoll_add_executable(${name} SOURCES ${arg_SOURCES} DEPENDS ${arg_DEPENDS})
  plimsoll_optimise_lightly(${name})
  plimsoll_compile_in_batches(${name})
endfunction()

# plimsoll_register_test(<name> LABELS <label>... [TIMEOUT <seconds>] COMMAND <command>...)
# One CTest entry. It runs in the repository root, so that tests name data files as a reader would,
# and with one OpenMP thread: event order is only defined at one thread, and more threads than
# free cores make libtorch a hundred times slower.
function(plimsoll_register_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;COMMAND")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "OMP_NUM_THREADS=1")
endfunction()

# The object file with doctest's main, compiled once for all test programs.
function(plimsoll_ensure_doctest_main)
  if(TARGET plimsoll_doctest_main)
    return()
  endif()
  find_package(doctest REQUIRED GLOBAL)
  add_library(plimsoll_doctest_main OBJECT "${PROJECT_SOURCE_DIR}/tests/doctest_main.cpp")
  plimsoll_apply_options(plimsoll_doctest_main)
  target_include_directories(plimsoll_doctest_main PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(plimsoll_doctest_main PUBLIC doctest::doctest)
endfunction()

# plimsoll_add_test(<name> SOURCES <file>... DEPENDS <target>... LABELS <label>... [TIMEOUT <s>])
# A doctest program test_<name>, registered as one CTest entry <name>.
function(plimsoll_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS")
  plimsoll_refuse_unknown_arguments(plimsoll_add_test ${name} "${arg_UNPARSED_ARGUMENTS}")
  if(NOT PLIMSOLL_TESTS)
    return()
  endif()
  plimsoll_ensure_doctest_main()
  plimsoll_add_test_program(test_${name} SOURCES ${arg_SOURCES}
    DEPENDS plimsoll_doctest_main ${arg_DEPENDS})
  plimsoll_register_test(${name}
    LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} COMMAND test_${name})
endfunction()

# plimsoll_add_fuzzer(<name> SOURCES <file>... DEPENDS <target>... CORPUS <folder>)
# SOURCES define LLVMFuzzerTestOneInput. With PLIMSOLL_FUZZ it is a libFuzzer program, built by the
# target `fuzzers`; in every other build it runs each file of CORPUS once, as a test labelled fuzz,
# so that an input that once crashed stays a test under any compiler.
add_custom_target(fuzzers)
function(plimsoll_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;DEPENDS")
  plimsoll_refuse_unknown_arguments(plimsoll_add_fuzzer ${name} "${arg_UNPARSED_ARGUMENTS}")
  if(NOT PLIMSOLL_TESTS)
    return()
  endif()
  cmake_path(ABSOLUTE_PATH arg_CORPUS BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  if(PLIMSOLL_FUZZ)
    plimsoll_add_executable(fuzz_${name} SOURCES ${arg_SOURCES} DEPENDS ${arg_DEPENDS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzzers")
    file(WRITE "${CMAKE_BINARY_DIR}/fuzzers/fuzz_${name}.corpus" "${arg_CORPUS}\n")
    add_dependencies(fuzzers fuzz_${name})
    return()
  endif()
  plimsoll_add_executable(fuzz_${name}
    SOURCES ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/tools/fuzz_replay.cpp" DEPENDS ${arg_DEPENDS})
  plimsoll_register_test(fuzz_${name} LABELS fuzz COMMAND fuzz_${name} "${arg_CORPUS}")
endfunction()
