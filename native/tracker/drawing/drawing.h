/* SPDX-License-Identifier: MIT */
/* drawing.h - the file, the tracks and their trees, for all parts of the levels of detail. */
#ifndef PTT_TRACKER_DRAWING_H
#define PTT_TRACKER_DRAWING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hash_map.h"
#include "pttdetail.h"
#include "mapping/truncation.h"

#define DT_LEAF 16u   /* records of a leaf */
#define DT_FAN 16u    /* nodes below a node */
#define DT_LEVELS 8u  /* a track has fewer than 16^8 records */
#define DT_LANES 32u  /* the last lane has room for any number of holds */
#define DT_RECORD 56u /* maximum of bytes of a record */
#define DT_SLACK 72u  /* bytes at the end of the file where no record begins */

/* ---- the file: grows at its end, and is mapped as a whole ---- */

struct dt_store {
	uint8_t *base;
	uint64_t used;
	uint64_t size; /* of the file: bytes that may be accessed */
	uint64_t room; /* mapped bytes */
	int fd;
	struct ptt_guard *guard; /* of a store opened for reading */
};

int dt_store_create(struct dt_store *store, int fd);
int dt_store_open(struct dt_store *store, int fd);
/* dt_store_finish - cuts off the unused end of the file. Do not allocate any more. */
int dt_store_finish(struct dt_store *store);
void dt_store_close(struct dt_store *store);
/* dt_alloc - allocates zeroed bytes at the end of the file, aligned to 8; 0: error, and errno is set. May block on the disk. */
uint64_t dt_alloc(struct dt_store *store, uint64_t size);

/* dt_at - bytes of the file; NULL: the file ends before them. */
static inline void *dt_at(const struct dt_store *store, uint64_t offset, uint64_t size)
{
	return offset <= store->size && size <= store->size - offset ? store->base + offset : NULL;
}

/* ---- tracks ---- */

struct dt_node {
	int64_t begin;
	int64_t end;     /* the latest end of its records */
	uint64_t child;  /* DT_FAN nodes, or the first of DT_LEAF records */
	uint64_t busy;   /* sum of durations in ns */
	uint32_t count;
	uint32_t other;  /* of the longest record, as is the next */
	uint32_t wait;
	uint32_t longest; /* ns, at most UINT32_MAX */
	uint32_t depth;
	uint32_t reserved;
};

struct dt_level {
	uint64_t block; /* room for DT_FAN nodes; `count` are in use */
	uint32_t count;
	uint32_t reserved;
};

struct dt_track {
	uint64_t at;     /* position of the next record */
	uint64_t extent_end;
	int64_t last_end; /* of the record before, in the open leaf */
	struct dt_node leaf; /* open: sums up the records so far */
	struct dt_level levels[DT_LEVELS];
	uint32_t last_wait;
	uint32_t extent; /* size of the next extent */
	uint32_t next;   /* next track of the row; 0 = none */
	uint8_t state;
	uint8_t lane;
	uint8_t level_count;
	uint8_t reserved;
};

struct dt_row {
	uint32_t track; /* the first track */
	uint16_t lanes;
	uint16_t reserved;
};

struct dt_record {
	int64_t begin;
	int64_t end;
	uint32_t other; /* the object, or the thread */
	uint32_t wait;  /* number of a wait, else 0 */
	uint32_t depth;
	bool open;
};

_Static_assert(sizeof(struct dt_node) == 56, "node");
_Static_assert(sizeof(struct dt_track) == 24 + 56 + 16 * DT_LEVELS + 16, "track");
_Static_assert(sizeof(struct dt_row) == 8, "row");

/* dt_append - adds a record at the end of a track. 0 or -errno. */
int dt_append(struct dt_store *store, struct dt_track *track, const struct dt_record *record);

/* dt_read - reads the record at *at, and moves *at after it. @first: first record of a leaf. False: the record makes no sense. */
bool dt_read(const struct dt_store *store, uint64_t *at, bool is_wait, bool first, struct dt_record *record);

static inline bool dt_is_wait(const struct dt_track *track)
{
	return track->state < PTT_DETAIL_HELD;
}

/* ---- the levels of detail ---- */

struct dt_overview {
	int64_t begin;
	int64_t width;
	uint64_t used; /* 1 if it has data */
	struct ptt_detail_bin bins[PTT_DETAIL_BINS];
};

struct dt_rows {
	struct dt_row *items;
	uint32_t count;
	uint32_t room;
};

/* A stretch of time: the thread had a processor without a break. */
struct dt_turn {
	int64_t begin;
	int64_t end;
	uint32_t thread;
	uint16_t cpu;
	uint8_t state; /* how it ended; 0 = there is no turn */
	bool open;
};

struct dt_turns {
	struct dt_turn *now;   /* by thread: turns that may go on */
	struct dt_turn *ended; /* turns that are not yet in their tracks, because threads report them out of order */
	uint32_t now_room;
	uint32_t ended_room;
	uint32_t ended_count;
};

struct ptt_detail {
	struct dt_store store;
	struct dt_track *tracks; /* track 0 is none */
	uint32_t track_count;
	uint32_t track_room;
	struct dt_rows rows[PTT_DETAIL_KINDS];
	struct dt_turns turns;
	uint32_t *row_of; /* by object of the model */
	uint32_t object_count;
	uint32_t object_room;
	struct rd_map row_by_key;
	uint64_t *wait_blocks; /* positions of blocks of DT_WAITS waits */
	uint32_t wait_count;   /* greatest number, plus 1 */
	uint32_t wait_blocks_count;
	struct dt_overview *overview;
	bool finished; /* the file is complete */
};

#define DT_WAITS 4096u

/* dt_more - makes room in a table for @want items. New items are zeroed. 0 or -ENOMEM. */
int dt_more(void **items, uint32_t *room, uint32_t want, size_t size);
/* dt_row_reach - adds rows up to a number. 0 or -ENOMEM. */
int dt_row_reach(struct ptt_detail *d, uint32_t by, uint32_t row);
/* dt_put - adds a record to the track of a lane and state. Adds the track if there is none. 0 or -errno. */
int dt_put(struct ptt_detail *d, uint32_t by, uint32_t row, uint32_t lane, uint32_t state,
	   const struct dt_record *record);
/* dt_turns_feed - adds the next state of a thread. 0 or -errno. */
int dt_turns_feed(struct ptt_detail *d, const struct ptt_model_state *s);
void dt_turns_free(struct dt_turns *turns);

void dt_overview_events(struct dt_overview *overview, const int64_t *ts, int64_t n);
void dt_overview_wait(struct dt_overview *overview, int64_t begin, int64_t end, uint32_t which);
/* dt_wait - the wait with a number, or NULL. */
const struct ptt_detail_wait *dt_wait(const struct ptt_detail *detail, uint32_t id);

#endif
