/* SPDX-License-Identifier: MIT */
/* shared.c - memory that several processes have mapped: an object in it is one object, whatever its addresses. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers of processes end below this; the objects of shared memory belong to numbers above. */
#define MD_SHARED_SPACE 0x80000000u

int ptt_model_share(struct ptt_model *m, uint32_t process, uint64_t start, uint64_t end, uint32_t memory, uint64_t offset)
{
	struct md_shared *bigger;

	if (end <= start || memory >= MD_SHARED_SPACE)
		return -EINVAL;
	bigger = realloc(m->shared, (m->shared_count + 1) * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	m->shared = bigger;
	m->shared[m->shared_count++] = (struct md_shared){ start, end, offset, process, memory };
	return 0;
}

/* What was mapped at an address last is what counts. */
void md_find_shared(const struct ptt_model *m, uint32_t *process, uint64_t *address)
{
	for (uint32_t i = m->shared_count; i-- > 0;) {
		const struct md_shared *s = &m->shared[i];

		if (s->process == *process && *address >= s->start && *address < s->end) {
			*process = MD_SHARED_SPACE | s->memory;
			*address = *address - s->start + s->offset;
			return;
		}
	}
}
