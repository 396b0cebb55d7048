# cmake -DTOOL=program -DNAME=name -DOUTPUT=folder -P manual.cmake: writes NAME.1, NAME.bash,
# NAME.zsh and NAME.fish, each complete or not at all.
file(MAKE_DIRECTORY ${OUTPUT})
function(write file)
  execute_process(COMMAND ${TOOL} ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${TOOL} ${ARGN} failed: ${code}")
  endif()
  file(WRITE ${OUTPUT}/${file} "${text}")
endfunction()
write(${NAME}.1 --man)
foreach(shell bash zsh fish)
  write(${NAME}.${shell} --completion ${shell})
endforeach()
