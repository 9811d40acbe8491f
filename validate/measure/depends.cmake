# Read by cpack before it packs: the packages that the two programs need. CPack's own way would ask for the libraries of every
# object in the package, and so for CUDA on machines without GPUs.
find_program(SHLIBDEPS dpkg-shlibdeps)
if(SHLIBDEPS)
  set(folder ${CPACK_FABRICAST_BUILD}/depends)  # with a debian/control, or dpkg-shlibdeps does not start
  file(WRITE ${folder}/debian/control "")
  execute_process(COMMAND ${SHLIBDEPS} --ignore-missing-info -O ${CPACK_FABRICAST_BUILD}/fabricast
                          ${CPACK_FABRICAST_BUILD}/fabricast-validate
    WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE depends ERROR_VARIABLE said RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REMOVE_RECURSE ${folder})
  if(failed)
    message(FATAL_ERROR "dpkg-shlibdeps: ${said}")
  endif()
  string(REGEX REPLACE "^.*Depends=" "" CPACK_DEBIAN_PACKAGE_DEPENDS "${depends}")
else()
  message(WARNING "no dpkg-shlibdeps: the package names nothing that it depends on")
endif()
