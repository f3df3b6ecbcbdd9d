/* SPDX-License-Identifier: MIT */
/* image_files.h - writes down for the recorder which modules calls come from, and since when. */
#ifndef PTT_IMAGE_FILES_H
#define PTT_IMAGE_FILES_H

#include "nptl_trace.h"

/*
 * ptt_ring_note_module - append a line to modules-<index> in the session directory, see ptt_abi.h.
 *
 * Opens, writes and closes the file without being a cancellation point; may run in signal handlers. Does nothing where
 * the program may not write.
 */
void ptt_ring_note_module(const struct nptl_trace_module *module);

#endif
