/* SPDX-License-Identifier: MIT */
/* image_files.h - files for the recorder, see ptt_abi.h: modules that calls come from, and code objects of Python. */
#ifndef PTT_IMAGE_FILES_H
#define PTT_IMAGE_FILES_H

#include "call_site.h"
#include "nptl_trace.h"

/*
 * Both functions are async-signal-safe and no cancellation points, take no lock and allocate nothing. They write nothing if
 * the program may write no file.
 */

/* ptt_ring_note_module - append a line to modules-<image> in the session directory. */
void ptt_ring_note_module(const struct nptl_trace_module *module);

/*
 * ptt_ring_python_code - number a code object, and append it to python-<image> in the session directory when it is new
 * Return: 0 if the program may write no file, or has too many code objects.
 */
ptt_number_python_code ptt_ring_python_code __attribute__((visibility("hidden")));

#endif
