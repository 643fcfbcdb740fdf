# Whether the backend `nccl` can be built, from what wheels carry: no CUDA toolkit is needed.
#
#   PLIMSOLL_NCCL_FOUND   TRUE with a CUDA wheel of libtorch and NCCL's and the runtime's headers beside it;
#                         then the target plimsoll::nccl exists
#
# PLIMSOLL_NCCL: AUTO takes what is there; ON makes its absence an error; OFF leaves the backend out.
# libtorch has to be found before (PlimsollLibtorch).
include_guard(GLOBAL)

set(PLIMSOLL_NCCL "AUTO" CACHE STRING "NCCL backend: AUTO (with a CUDA wheel), ON or OFF")

set(PLIMSOLL_NCCL_FOUND FALSE)

# Sets PLIMSOLL_NCCL_MISSING to what is not there, empty when all is, and the folders and the library.
function(plimsoll_find_nccl)
  cmake_path(GET PLIMSOLL_LIBTORCH_DIR PARENT_PATH site)
  set(toolkits "${site}/nvidia/cu13" "${site}/nvidia/cuda_runtime" "${site}/nvidia/cu12"
    /usr/local/cuda)
  list(TRANSFORM toolkits APPEND "/include" OUTPUT_VARIABLE toolkit_headers)
  set(missing "")
  if(NOT PLIMSOLL_LIBTORCH_CUDA)
    list(APPEND missing "a libtorch with CUDA")
  endif()
  find_path(PLIMSOLL_NCCL_HEADERS nccl.h PATHS "${site}/nvidia/nccl/include" ${toolkit_headers})
  find_path(PLIMSOLL_CUDART_HEADERS cuda_runtime_api.h PATHS ${toolkit_headers} NO_DEFAULT_PATH)
  find_path(PLIMSOLL_CUDA_CRT_HEADERS crt/host_defines.h
    PATHS ${toolkit_headers} "${site}/nvidia/cuda_nvcc/include"
      "${site}/triton/backends/nvidia/include" NO_DEFAULT_PATH)
  # What cuda_fp16.h includes of libcu++; in the package nvidia-cuda-cccl, which torch does not ask for.
  set(toolkit_cccl ${toolkit_headers})
  list(TRANSFORM toolkit_cccl APPEND "/cccl")
  find_path(PLIMSOLL_CUDA_CCCL_HEADERS nv/target PATHS ${toolkit_cccl} ${toolkit_headers}
    NO_DEFAULT_PATH)
  set(libraries "")
  foreach(toolkit IN LISTS toolkits)
    file(GLOB found "${toolkit}/lib/libcudart.so*" "${toolkit}/lib64/libcudart.so*")
    list(APPEND libraries ${found})
  endforeach()
  if(libraries)
    list(GET libraries 0 library)
    set(PLIMSOLL_CUDART "${library}" PARENT_SCOPE)
  else()
    list(APPEND missing "libcudart")
  endif()
  foreach(header IN ITEMS "PLIMSOLL_NCCL_HEADERS:nccl.h" "PLIMSOLL_CUDART_HEADERS:cuda_runtime_api.h"
      "PLIMSOLL_CUDA_CRT_HEADERS:crt/host_defines.h (CUDA toolkit or triton)"
      "PLIMSOLL_CUDA_CCCL_HEADERS:nv/target (package nvidia-cuda-cccl)")
    string(REGEX MATCH "^([^:]+):(.+)$" matched "${header}")
    set(file "${CMAKE_MATCH_2}")
    mark_as_advanced(${CMAKE_MATCH_1})
    if(NOT ${CMAKE_MATCH_1})
      list(APPEND missing "${file}")
    endif()
  endforeach()
  list(JOIN missing ", " missing)
  set(PLIMSOLL_NCCL_MISSING "${missing}" PARENT_SCOPE)
endfunction()

if(PLIMSOLL_NCCL STREQUAL "AUTO" OR PLIMSOLL_NCCL STREQUAL "ON")
  set(PLIMSOLL_NCCL_MISSING "a libtorch with CUDA")
  if(PLIMSOLL_LIBTORCH_CUDA)
    plimsoll_find_nccl()
  endif()
  if(NOT PLIMSOLL_NCCL_MISSING)
    set(PLIMSOLL_NCCL_FOUND TRUE)
    cmake_path(GET PLIMSOLL_CUDART PARENT_PATH plimsoll_cudart_folder)
    add_library(plimsoll::nccl INTERFACE IMPORTED GLOBAL)
    set_target_properties(plimsoll::nccl PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES
        "${PLIMSOLL_NCCL_HEADERS};${PLIMSOLL_CUDART_HEADERS};${PLIMSOLL_CUDA_CRT_HEADERS};${PLIMSOLL_CUDA_CCCL_HEADERS}"
      INTERFACE_COMPILE_DEFINITIONS USE_C10D_NCCL
      INTERFACE_LINK_LIBRARIES "${PLIMSOLL_CUDART}"
      INTERFACE_LINK_OPTIONS "LINKER:-rpath,${plimsoll_cudart_folder}")
    message(STATUS "NCCL: ${PLIMSOLL_NCCL_HEADERS}")
  elseif(PLIMSOLL_NCCL STREQUAL "ON")
    message(FATAL_ERROR "[PLIMSOLL_NCCL] not found: ${PLIMSOLL_NCCL_MISSING}, expected a CUDA wheel of "
      "PyTorch with its nvidia packages beside it. Hint: -DPLIMSOLL_LIBTORCH=/path/to/torch names one")
  else()
    message(STATUS "NCCL: left out, needs ${PLIMSOLL_NCCL_MISSING}")
  endif()
elseif(NOT PLIMSOLL_NCCL STREQUAL "OFF")
  message(FATAL_ERROR "[PLIMSOLL_NCCL] unknown: ${PLIMSOLL_NCCL}, expected AUTO, ON or OFF")
endif()
