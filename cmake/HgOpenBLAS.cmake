# OpenBLAS, the OpenMP build by preference: inside a parallel region it runs in the calling thread,
# which is how the CPU GEMM uses it. Result: target hg_openblas.

# Debian keeps each build in a folder of its own. tools/setup.sh (hg_has) knows the same places.
set(hg_openblas_builds openblas-openmp openblas-pthread openblas-serial)
list(TRANSFORM hg_openblas_builds PREPEND /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/
  OUTPUT_VARIABLE hg_openblas_includes)
list(TRANSFORM hg_openblas_builds PREPEND /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/ OUTPUT_VARIABLE
  hg_openblas_libraries)
find_path(HG_OPENBLAS_INCLUDE cblas.h HINTS ${hg_openblas_includes} PATH_SUFFIXES
  ${hg_openblas_builds} openblas REQUIRED)
find_library(HG_OPENBLAS_LIBRARY openblas HINTS ${hg_openblas_libraries} REQUIRED)
add_library(hg_openblas INTERFACE)
target_include_directories(hg_openblas SYSTEM INTERFACE ${HG_OPENBLAS_INCLUDE})
target_link_libraries(hg_openblas INTERFACE ${HG_OPENBLAS_LIBRARY})
