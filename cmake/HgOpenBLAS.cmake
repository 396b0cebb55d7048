# OpenBLAS, the OpenMP build by preference: inside a parallel region it runs in the calling thread, which is how the CPU GEMM uses it. Result: target hg_openblas.

find_path(HG_OPENBLAS_INCLUDE cblas.h HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp PATH_SUFFIXES openblas-openmp openblas REQUIRED)
find_library(HG_OPENBLAS_LIBRARY openblas HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp REQUIRED)
add_library(hg_openblas INTERFACE)
target_include_directories(hg_openblas SYSTEM INTERFACE ${HG_OPENBLAS_INCLUDE})
target_link_libraries(hg_openblas INTERFACE ${HG_OPENBLAS_LIBRARY})
