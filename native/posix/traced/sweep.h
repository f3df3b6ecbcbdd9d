/* SPDX-License-Identifier: MIT */
/* sweep.h - clears away what dead processes have left in the directory. */
#ifndef PX_SWEEP_H
#define PX_SWEEP_H

#include "meet.h"

/* px_sweep - remove files of processes that are gone, and free the slots of dead controllers. Blocks on the registry. */
void px_sweep(const struct px_path *directory);

/* px_sweep_locked - the same, by a caller that has the registry locked. */
void px_sweep_locked(const struct px_path *directory, struct px_registry *registry);

#endif
