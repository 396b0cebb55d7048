# hg_manual(TOOL): the man page and the completion scripts of a tool, which the tool itself prints
# from the table of its options, and their installation. Where the tool cannot run on the machine
# that builds, or runs slowly with sanitizers, there are none.
function(hg_manual tool)
  if(CMAKE_CROSSCOMPILING OR HG_SANITIZE OR HG_SANITIZE_THREAD)
    return()
  endif()
  set(dir ${PROJECT_BINARY_DIR}/manual)
  set(files ${dir}/${tool}.1 ${dir}/${tool}.bash ${dir}/${tool}.zsh ${dir}/${tool}.fish)
  add_custom_command(OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -DTOOL=$<TARGET_FILE:${tool}> -DNAME=${tool} -DOUTPUT=${dir}
      -P ${PROJECT_SOURCE_DIR}/cmake/manual.cmake
    DEPENDS ${tool} ${PROJECT_SOURCE_DIR}/cmake/manual.cmake
    COMMENT "Man page and completion of ${tool}"
    VERBATIM)
  add_custom_target(manual-${tool} ALL DEPENDS ${files})
  set(share ${CMAKE_INSTALL_DATADIR})
  install(FILES ${dir}/${tool}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${dir}/${tool}.bash DESTINATION ${share}/bash-completion/completions RENAME ${tool})
  install(FILES ${dir}/${tool}.zsh DESTINATION ${share}/zsh/site-functions RENAME _${tool})
  install(FILES ${dir}/${tool}.fish DESTINATION ${share}/fish/vendor_completions.d)
endfunction()
