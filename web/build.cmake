# Fetches the packages that the page is made from, unless they are there, and builds it: a step of CMakeLists.txt.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(lock ${PACKAGES}/package-lock.json)

# leave_out WHY: the rest of PTT does not need the page.
function(leave_out why)
	if(MODE STREQUAL "ON")
		message(FATAL_ERROR "The page of ptt ui cannot be built: ${why}")
	endif()
	message(NOTICE "The page of ptt ui is left out: ${why}")
	file(REMOVE_RECURSE ${PAGE})
endfunction()

file(MAKE_DIRECTORY ${PACKAGES})
set(same 1)
if(EXISTS ${lock}.done)
	execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${here}/package-lock.json ${lock}.done
		RESULT_VARIABLE same OUTPUT_QUIET ERROR_QUIET)
endif()
if(NOT same EQUAL 0)
	configure_file(${here}/package.json ${PACKAGES}/package.json COPYONLY)
	configure_file(${here}/package-lock.json ${lock} COPYONLY)
	execute_process(
		COMMAND ${NPM} ci --omit=dev --ignore-scripts --prefer-offline --no-audit --no-fund
		WORKING_DIRECTORY ${PACKAGES}
		RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
	if(failed)
		message(STATUS "${said}")
		leave_out("npm could not fetch its packages")
		return()
	endif()
	configure_file(${lock} ${lock}.done COPYONLY)
endif()

execute_process(
	COMMAND ${NODE} ${here}/build.mjs --modules ${PACKAGES}/node_modules --out ${PAGE}
	RESULT_VARIABLE failed)
if(failed)
	message(FATAL_ERROR "The page of ptt ui could not be built")
endif()
