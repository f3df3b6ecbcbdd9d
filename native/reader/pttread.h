/* SPDX-License-Identifier: MIT */
/* pttread.h - reads traces: packet index, events merged in time order, counts, text, copies. Python calls it through ctypes. */
/*
 * Model. A reader holds a traceset: traces, each with many streams, each with one or more files that continue one another.
 * A stream is a row of packets, a packet a row of events. The order of events is total. The first criterion is the key:
 * clock ticks if all traces share a clock, else nanoseconds. Then come the stream number and the place in the stream. A
 * cursor walks that order and fills columns, one array for each property, in buffers of the caller.
 *
 *     reader = ptt_reader_create();
 *     trace = ptt_reader_add_trace(reader, uuid);
 *     stream = ptt_reader_add_stream(reader, trace);
 *     ptt_reader_add_file(reader, stream, path);
 *     ptt_reader_index(reader, 0);
 *     ptt_reader_set_clock(reader, trace, frequency, origin, shift_ns);
 *     cursor = ptt_cursor_create(reader);
 *     while ((n = ptt_cursor_read(cursor, &columns, max)) > 0)
 *             …
 *
 * Nothing in a trace is trusted: bytes that are no trace become damage entries, never a crash. Functions that can fail
 * return 0 (or a count), or a negated errno value. Functions that create something return NULL if there is no memory.
 * Several threads may use one reader at once as long as no thread adds, indexes or sets. A cursor, filter or name table
 * belongs to one thread at a time.
 */
#ifndef PTTREAD_H
#define PTTREAD_H

#include <stddef.h>
#include <stdint.h>

#define PTT_READ_VERSION 5
#define PTT_API __attribute__((visibility("default")))

struct ptt_reader;
struct ptt_cursor;
struct ptt_filter;
struct ptt_names;
struct ptt_counter;

/* ---- traceset ---- */

/* ptt_read_version - PTT_READ_VERSION of the library, so Python can refuse a library that does not fit. */
PTT_API int ptt_read_version(void);

/* ptt_reader_create, _destroy - an empty traceset. The reader must outlive its cursors, counters and name tables. */
PTT_API struct ptt_reader *ptt_reader_create(void);
PTT_API void ptt_reader_destroy(struct ptt_reader *reader);

/* ptt_reader_add_trace - adds a trace; packets with another uuid are damage, NULL accepts any. Returns its number. */
PTT_API int ptt_reader_add_trace(struct ptt_reader *reader, const uint8_t *uuid);
/* ptt_reader_add_process - declares a process image, before the events. Returns its number in the traceset. */
PTT_API int ptt_reader_add_process(struct ptt_reader *reader, uint32_t trace, uint32_t index, uint32_t pid);
/*
 * A call site in a column: an address in the low 48 bits. The bits above hold the generation of the module, if several
 * modules had the address one after the other. The highest bit is set if code is entered there, as in the first routine of
 * a thread, rather than returned to.
 */
#define PTT_SITE_ADDRESS ((UINT64_C(1) << 48) - 1)
#define PTT_SITE_GENERATION_MAX 0x7fffu
#define PTT_SITE_ENTRY (UINT64_C(1) << 63)
/* ptt_reader_set_site - sets the address of a site id in a process (its number in the traceset). */
PTT_API int ptt_reader_set_site(struct ptt_reader *reader, uint32_t process, uint32_t id, uint64_t address);
/*
 * ptt_reader_set_stack_sites - sets the call sites of events that have a stack, by the number of the stack in the process:
 * the frame to show to a user, if it is not the recorded frame. 0 = as recorded.
 */
PTT_API int ptt_reader_set_stack_sites(struct ptt_reader *reader, uint32_t process, const uint64_t *sites,
				       uint32_t count);
/* A module that shares a range of addresses with other modules, from a time on. */
struct ptt_tenant {
	uint64_t range_start, range_end; /* the whole shared range */
	uint64_t start, end;
	uint64_t since;
	uint32_t generation; /* equal for the same module */
	uint32_t reserved;
};
_Static_assert(sizeof(struct ptt_tenant) == 48, "read by Python");
/*
 * ptt_reader_set_tenants - sets the modules that had the same addresses in a process, in place of the tenants before.
 * @tenants: sorted by range, and by time; ranges are equal or disjoint
 *
 * Return: 0, -EINVAL, or -ENOMEM.
 */
PTT_API int ptt_reader_set_tenants(struct ptt_reader *reader, uint32_t process, const struct ptt_tenant *tenants,
				   uint32_t count);
/* ptt_reader_add_stream - adds a stream to a trace. Returns its number in the traceset. */
PTT_API int ptt_reader_add_stream(struct ptt_reader *reader, uint32_t trace);
/* ptt_reader_add_file - the next file of a stream; it may be empty and may grow. */
PTT_API int ptt_reader_add_file(struct ptt_reader *reader, uint32_t stream, const char *path);
/*
 * ptt_reader_index - finds the packets of all files; a later call finds the packets that were written since.
 *
 * With `running`, a packet that is cut off at the end of a file is not damage: the next call looks at it again. Addresses
 * in columns (payload) that were read before are invalid afterwards.
 */
PTT_API int ptt_reader_index(struct ptt_reader *reader, int running);
/*
 * ptt_reader_set_clock - sets the conversion of a trace's ticks to time in ns: (ticks - origin) * 1e9 / frequency +
 * shift_ns. @frequency: in Hz
 */
PTT_API int ptt_reader_set_clock(struct ptt_reader *reader, uint32_t trace, uint64_t frequency,
				 uint64_t origin, int64_t shift_ns);
/* ptt_reader_key_ticks - orders events by ticks (on: all traces have one clock) or by nanoseconds. */
PTT_API void ptt_reader_key_ticks(struct ptt_reader *reader, int on);
/* ptt_reader_verify - checks the CRC of every packet that has not been read yet. Returns the number of damages. */
PTT_API int ptt_reader_verify(struct ptt_reader *reader);

struct ptt_trace_info {
	uint64_t begin; /* ticks, of all packets; UINT64_MAX if there is no packet */
	uint64_t end;
	uint64_t packets;
	uint64_t bytes;
	uint64_t events;    /* as the packets say */
	uint64_t discarded; /* lost events as the packets say */
};

struct ptt_stream_info {
	uint32_t trace;
	uint32_t stream_class;
	uint64_t packets;
	uint64_t bytes;
	uint64_t discarded;
	uint64_t end; /* ticks */
};

struct ptt_process_info {
	uint32_t trace;
	uint32_t index; /* as in info/processes.jsonl; UINT32_MAX if unknown */
	uint32_t pid;
	uint32_t reserved;
};

struct ptt_thread_info {
	uint32_t process; /* number in the traceset */
	uint32_t tid;
};

struct ptt_damage {
	char path[512];
	char reason[160];
	uint64_t offset;
	uint64_t size; /* bytes that are left out because of it */
};

/* Figures by number in the traceset; -EINVAL: there is no such number. Damaged packets do not count. */
PTT_API int ptt_reader_trace_info(struct ptt_reader *reader, uint32_t trace, struct ptt_trace_info *out);
PTT_API int ptt_reader_stream_info(struct ptt_reader *reader, uint32_t stream, struct ptt_stream_info *out);
PTT_API uint32_t ptt_reader_stream_count(struct ptt_reader *reader);
PTT_API uint32_t ptt_reader_process_count(struct ptt_reader *reader);
PTT_API uint32_t ptt_reader_thread_count(struct ptt_reader *reader);
PTT_API uint32_t ptt_reader_damage_count(struct ptt_reader *reader);
PTT_API int ptt_reader_process_info(struct ptt_reader *reader, uint32_t process, struct ptt_process_info *out);
PTT_API int ptt_reader_thread_info(struct ptt_reader *reader, uint32_t thread, struct ptt_thread_info *out);
PTT_API int ptt_reader_damage(struct ptt_reader *reader, uint32_t number, struct ptt_damage *out);
/*
 * ptt_reader_cut - 1, the file and the reason, if a read has found that a mapped file became shorter, or that the plain events of
 * compact files take more than three quarters of the memory of the machine; else 0.
 *
 * Do not trust data that was read since: lost bytes were read as zeros, and packets were left out.
 */
PTT_API int ptt_reader_cut(struct ptt_reader *reader, struct ptt_damage *out);
/* ptt_reader_key_of_time - the least key with a time of ts (in ns) or later. */
PTT_API uint64_t ptt_reader_key_of_time(struct ptt_reader *reader, int64_t ts);
/* ptt_reader_key_range - the least and greatest possible key, from the packets' heads. -ENOENT: there is no packet. */
PTT_API int ptt_reader_key_range(struct ptt_reader *reader, uint64_t *first, uint64_t *last);
/* ptt_reader_time_of_key - the time of a key in ns. */
PTT_API int64_t ptt_reader_time_of_key(struct ptt_reader *reader, uint64_t key);
/*
 * ptt_reader_density - the approximate number of events, and of lost events, in each of `count` bins, from the packets'
 * heads
 *
 * @from: beginning of the first bin, in ns
 * @width: width of a bin, in ns
 *
 * Events outside of the bins count in the first or the last bin. Returns 0 or -EINVAL.
 */
PTT_API int ptt_reader_density(struct ptt_reader *reader, int64_t from, int64_t width, uint64_t *bins, uint64_t *lost,
			       uint32_t count);

/* ---- cursors ---- */

#define PTT_CPU_UNKNOWN 0x3fffu

/* Columns of events; a NULL column is left out. Each array has room for as many events as the call asks for. */
struct ptt_columns {
	int64_t *ts;       /* ns since the start of the traceset */
	uint32_t *thread;  /* number of the thread in the traceset */
	uint16_t *id;
	uint16_t *cpu;
	uint64_t *object;
	uint64_t *site;    /* see PTT_SITE_ADDRESS; 0 = unknown */
	uint64_t *payload; /* address of the event in memory, only for the functions below */
	uint32_t *stack;   /* number of the event's stack in the process; 0 = none */
	uint16_t *reading; /* slots from a SCHED_RAN to the SCHED_KEPT that belongs to it; 0 = none */
};

/* A place between two events, given by the event that follows. At the end of the trace, stream is UINT32_MAX. */
struct ptt_position {
	uint64_t key;
	uint32_t stream;
	uint32_t packet; /* number in the stream */
	uint32_t offset; /* bytes from the start of the packet */
	uint32_t reserved;
};

/* ptt_cursor_create - a cursor at the first event, without a limit. */
PTT_API struct ptt_cursor *ptt_cursor_create(struct ptt_reader *reader);
PTT_API void ptt_cursor_destroy(struct ptt_cursor *cursor);
/* ptt_cursor_seek_start - goes to the first event. All seeks return 0, -ENOMEM, or -EINVAL for no valid position. */
PTT_API int ptt_cursor_seek_start(struct ptt_cursor *cursor);
/* ptt_cursor_seek_key - goes to the first event with this key or a greater key. */
PTT_API int ptt_cursor_seek_key(struct ptt_cursor *cursor, uint64_t key);
/* ptt_cursor_seek - goes to a saved position. -EINVAL if it is no event of this traceset. */
PTT_API int ptt_cursor_seek(struct ptt_cursor *cursor, const struct ptt_position *position);
/* ptt_cursor_position - the position of the next event. */
PTT_API void ptt_cursor_position(struct ptt_cursor *cursor, struct ptt_position *out);
/* ptt_cursor_limit_key, _limit - reading stops before this key, or before this very event. */
PTT_API void ptt_cursor_limit_key(struct ptt_cursor *cursor, uint64_t key);
PTT_API void ptt_cursor_limit(struct ptt_cursor *cursor, const struct ptt_position *position);
PTT_API void ptt_cursor_no_limit(struct ptt_cursor *cursor);
/* ptt_cursor_read - reads the next events in order, at most max. Returns their number; 0 at the end or limit. */
PTT_API int64_t ptt_cursor_read(struct ptt_cursor *cursor, const struct ptt_columns *out, int64_t max);
/* ptt_cursor_lane - the next packet and event of one stream. */
PTT_API int ptt_cursor_lane(struct ptt_cursor *cursor, uint32_t stream, uint32_t *packet, uint32_t *offset);
/* ptt_cursor_refresh - goes on at the same place after ptt_reader_index() has found more packets. */
PTT_API int ptt_cursor_refresh(struct ptt_cursor *cursor);

/*
 * ptt_reader_find - finds events of a few types, in no order
 *
 * @ids: 1024 bytes, 1 for each wanted id
 * @budget: bytes of packets to search at most; the search takes all streams in turns, from their beginnings
 * @next: place to go on, 0 at first; UINT64_MAX after the whole search, or when the budget is used up
 *
 * Returns the number of events in @out. If the events of a packet do not fit, the packet is left for the next call.
 */
PTT_API int64_t ptt_reader_find(struct ptt_reader *reader, const uint8_t *ids, uint64_t budget, uint64_t *next,
				const struct ptt_columns *out, int64_t room);

/* ---- fields ---- */

/*
 * ptt_field_column - the field with this name of all events that have one, as 64-bit numbers.
 *
 * @valid: 1 if the event has the field
 * Returns the number of events with the field.
 */
PTT_API int64_t ptt_field_column(const struct ptt_columns *columns, int64_t n, const char *name,
				 int64_t *values, uint8_t *valid);
/*
 * ptt_bytes_column - a variable field; offsets[n + 1] count into data.
 *
 * Returns the bytes needed; fields that do not fit in room are not copied.
 */
PTT_API int64_t ptt_bytes_column(const struct ptt_columns *columns, int64_t n, const char *name,
				 int64_t *offsets, char *data, int64_t room);

/*
 * ptt_recode - writes a stream file as a compact stream file, or as a plain stream file
 *
 * @compact: 1 = compact, 0 = plain
 * @at: set to the offset of the packet where the work ended
 *
 * The plain file of the compact file of a plain file is the same file, bit for bit. Returns the number of bytes written,
 * -EBADMSG if the packet at @at is damaged, or -errno. Blocks on files, and allocates.
 */
PTT_API int64_t ptt_recode(int from, int to, int compact, uint64_t *at);

/* ---- filters ---- */

PTT_API struct ptt_filter *ptt_filter_create(void);
PTT_API void ptt_filter_destroy(struct ptt_filter *filter);
/* Each of these functions restricts: the first call turns the test on, and each call lets one more value through. */
PTT_API int ptt_filter_allow_event(struct ptt_filter *filter, uint32_t id);
PTT_API int ptt_filter_allow_thread(struct ptt_filter *filter, uint32_t thread);
/*
 * process UINT32_MAX = any process, and for a site all generations at the address. address UINT64_MAX = no value, only
 * turns the test on.
 *
 * @kind: the domain of the events on the object; UINT32_MAX = any
 * @begin_ns, @end_ns: events in [begin, end) pass
 */
PTT_API int ptt_filter_allow_object(struct ptt_filter *filter, uint32_t process, uint64_t address, uint32_t kind,
				    int64_t begin_ns, int64_t end_ns);
PTT_API int ptt_filter_allow_site(struct ptt_filter *filter, uint32_t process, uint64_t address);
/* ptt_filter_keep_event - lets a type of event through on any object and from any call site. */
PTT_API int ptt_filter_keep_event(struct ptt_filter *filter, uint32_t id);
/* ptt_filter_apply - moves the events that pass to the front of all columns. Returns their number. */
PTT_API int64_t ptt_filter_apply(const struct ptt_filter *filter, struct ptt_reader *reader,
				 const struct ptt_columns *columns, int64_t n);

/*
 * ptt_cursor_pick - reads the next events that pass a filter (NULL: all), and the position of each
 *
 * @out: all columns, with room for max
 * @places: room for max
 * @budget: number of events to look at
 * @looked: number of events that were looked at
 *
 * Returns the number of events that passed. The cursor then stands behind the last event that was looked at. Allocates.
 */
PTT_API int64_t ptt_cursor_pick(struct ptt_cursor *cursor, struct ptt_reader *reader,
				const struct ptt_filter *filter, const struct ptt_columns *out,
				struct ptt_position *places, int64_t max, int64_t budget, int64_t *looked);

/* ---- counting ---- */

struct ptt_thread_count {
	uint32_t thread;
	uint32_t id;
	uint64_t events;
};

struct ptt_object_count {
	uint32_t process;
	uint32_t domain;
	uint64_t object;
	uint64_t events;
};

struct ptt_thread_span {
	int64_t first; /* in ns, context switches not counted; INT64_MAX if there is no event */
	int64_t last;
	uint64_t events; /* context switches counted */
};

/*
 * ptt_counter_create - counts all events, in no order, in `workers` threads.
 *
 * @objects: also count by object, which takes about twice the time
 */
PTT_API struct ptt_counter *ptt_counter_create(struct ptt_reader *reader, int workers, int objects);
PTT_API void ptt_counter_destroy(struct ptt_counter *counter);
/* ptt_counter_threads, _objects, _spans - fill at most `room` rows (spans: by thread). Return the number of all rows. */
PTT_API int64_t ptt_counter_threads(struct ptt_counter *counter, struct ptt_thread_count *out, int64_t room);
PTT_API int64_t ptt_counter_objects(struct ptt_counter *counter, struct ptt_object_count *out, int64_t room);
PTT_API int64_t ptt_counter_spans(struct ptt_counter *counter, struct ptt_thread_span *out, int64_t room);

/* ---- names and text ---- */

enum ptt_name_kind { PTT_NAME_SITE = 0, PTT_NAME_OBJECT = 1, PTT_NAME_CODE = 2 };
enum ptt_text_format { PTT_TEXT = 0, PTT_RAW = 1, PTT_JSONL = 2, PTT_CSV = 3, PTT_SENTENCE = 4 };

struct ptt_missing_name {
	uint32_t kind;
	uint32_t process;
	uint64_t address;
};

PTT_API struct ptt_names *ptt_names_create(struct ptt_reader *reader);
PTT_API void ptt_names_destroy(struct ptt_names *names);
/* ptt_names_show_process - shows pid/tid in place of tid in the text view. */
PTT_API void ptt_names_show_process(struct ptt_names *names, int on);
/* ptt_names_set_thread - sets the name of a thread from a time on (in ns; INT64_MIN: for ever); an empty text: the thread has no name. */
PTT_API int ptt_names_set_thread(struct ptt_names *names, uint32_t thread, int64_t since, const char *text);
/*
 * ptt_names_set_pthread - sets the thread that a pthread_t stands for from a time on, until the next setting or an event in
 * the trace.
 */
PTT_API int ptt_names_set_pthread(struct ptt_names *names, uint32_t process, uint64_t pthread, int64_t since,
				  uint32_t thread);
/* ptt_names_set - sets the name of an address in a process. @kind: enum ptt_name_kind */
PTT_API int ptt_names_set(struct ptt_names *names, uint32_t kind, uint32_t process, uint64_t address,
			  const char *text);
/* ptt_names_add_range - ptt_names_missing() asks only for objects and code inside such ranges. */
PTT_API int ptt_names_add_range(struct ptt_names *names, uint32_t process, uint64_t from, uint64_t to);
/*
 * ptt_names_missing - addresses in these events that have no name yet, each once.
 *
 * Returns their number. If that is `room` there may be more: call again.
 */
PTT_API int64_t ptt_names_missing(struct ptt_names *names, const struct ptt_columns *columns, int64_t n,
				  struct ptt_missing_name *out, int64_t room);
/*
 * ptt_text - writes events as lines.
 *
 * All columns must be there. @done: number of events that were written. Returns the bytes used in out.
 */
PTT_API int64_t ptt_text(struct ptt_names *names, const struct ptt_columns *columns, int64_t n, int format,
			 char *out, int64_t room, int64_t *done);
/* The longest line of ptt_text(); out must have more room than this. */
#define PTT_LINE_MAX 65536

/* ---- copies ---- */

struct ptt_copy {
	uint32_t from_packet; /* first event to copy, as ptt_cursor_lane() returns it */
	uint32_t from_offset;
	uint32_t to_packet;   /* first event not to copy */
	uint32_t to_offset;
	uint8_t uuid[16];
	uint64_t instance;       /* stream_instance_id of the packets written */
	const uint8_t *threads;  /* by number in the traceset: 1 = copy the thread's events; NULL = all threads */
	const uint64_t *events;  /* events to copy, in order: packet << 32 | offset in it; NULL = all */
	uint64_t event_count;
	uint32_t process_shift;  /* added to the process index of each packet */
	uint32_t sequence;       /* packet_seq_num of the first packet written */
	/* Each time stamp becomes (ticks - tick_origin) * tick_mul / tick_div + tick_base, rounded down. */
	uint64_t tick_origin;
	uint64_t tick_base;
	uint64_t tick_mul;
	uint64_t tick_div; /* at most tick_mul, so no two ticks become equal; not 0 */
};

/*
 * ptt_copy_stream - writes a part of a stream to a file
 *
 * A packet becomes several packets if its time stamps grow too far apart for their 40 bits. Returns the number of events
 * written, or a negated errno.
 */
PTT_API int64_t ptt_copy_stream(struct ptt_reader *reader, uint32_t stream, const struct ptt_copy *what, int fd);

#endif
