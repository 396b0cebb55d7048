# The target docs: the reference manual from the public headers and the guide pages in docs/. It
# exists only where doxygen and awk are found, and a warning of doxygen is an error.
find_program(HG_DOXYGEN doxygen)
find_program(HG_AWK awk)
if(HG_DOXYGEN AND HG_AWK)
  set(HG_DOCS_OUTPUT ${PROJECT_BINARY_DIR}/docs)
  configure_file(docs/Doxyfile.in ${PROJECT_BINARY_DIR}/docs/Doxyfile @ONLY)
  add_custom_target(docs
    COMMAND ${HG_DOXYGEN} ${PROJECT_BINARY_DIR}/docs/Doxyfile
    COMMENT "The reference manual: ${PROJECT_BINARY_DIR}/docs/html/index.html"
    VERBATIM)
endif()
