# make install: libraries, headers, CMake package (halfgraph::halfgraph, halfgraph::data, and the
# static halfgraph::static, halfgraph::data_static), pkg-config files, tools with man pages and
# completion.

include(CMakePackageConfigHelpers)
include(HgManual)

set(exported halfgraph_shared halfgraph_static)
set_target_properties(halfgraph_shared PROPERTIES EXPORT_NAME halfgraph)
set_target_properties(halfgraph_static PROPERTIES EXPORT_NAME static)
add_library(halfgraph::halfgraph ALIAS halfgraph_shared)
install(TARGETS ${exported} EXPORT halfgraph
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME
    DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/halfgraph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN
  "*.h")

install(EXPORT halfgraph NAMESPACE halfgraph:: FILE halfgraphTargets.cmake DESTINATION
  ${CMAKE_INSTALL_LIBDIR}/cmake/halfgraph)
configure_package_config_file(cmake/halfgraphConfig.cmake.in
  ${PROJECT_BINARY_DIR}/halfgraphConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/halfgraph)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/halfgraphConfigVersion.cmake COMPATIBILITY
  SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/halfgraphConfig.cmake
  ${PROJECT_BINARY_DIR}/halfgraphConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/halfgraph)

# relative to the file itself, so that an installed tree may be moved
file(RELATIVE_PATH hg_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
# what the static library links (pkg-config --static)
set(hg_pc_private -lopenblas)
foreach(name ${OpenMP_C_LIB_NAMES} m)
  list(APPEND hg_pc_private -l${name})
endforeach()
if(HG_HAVE_CUDA)
  list(APPEND hg_pc_private -L${CUDAToolkit_LIBRARY_DIR} -lcublasLt -lcudart -lstdc++)
endif()
list(JOIN hg_pc_private " " hg_pc_private)
function(hg_install_pc name)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
hg_install_pc(halfgraph)

if(HG_BUILD_TOOLS)
  set_target_properties(halfgraph_data_shared PROPERTIES EXPORT_NAME data)
  set_target_properties(halfgraph_data_static PROPERTIES EXPORT_NAME data_static)
  install(TARGETS halfgraph_data_shared halfgraph_data_static EXPORT halfgraph
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  get_property(hg_data_pc_private GLOBAL PROPERTY HG_HDF5_LIBRARY)
  string(APPEND hg_data_pc_private " -ljansson -lzip -lyaml -lz -lm")
  hg_install_pc(halfgraph_data)
  install(FILES tools/python/halfgraph.py DESTINATION ${CMAKE_INSTALL_DATADIR}/halfgraph)
  foreach(tool h5convert hg-train hg-doctor hg-bench)
    if(TARGET ${tool})
      install(TARGETS ${tool} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
      hg_manual(${tool})
    endif()
  endforeach()
endif()
