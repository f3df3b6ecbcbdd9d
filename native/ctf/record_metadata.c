/* SPDX-License-Identifier: MIT */
/* record_metadata.c - the TSDL text of a trace of classic records that no recorder has written. */

#include "catalog.h"
#include "put.h"

#define GIGA UINT64_C(1000000000)

/* The same text as src/nptltrace/recording/files/tsdl_writer.py makes for stream class 1; a test compares them. */
#define U8 "integer { size = 8; align = 8; signed = false; }"
#define U32 "integer { size = 32; align = 32; signed = false; }"
#define U64 "integer { size = 64; align = 64; signed = false; }"

static const char header[] =
	"    packet.header := struct {\n"
	"        integer { size = 32; align = 32; signed = false; base = 16; } magic;\n"
	"        " U8 " uuid[16];\n"
	"        " U32 " stream_id;\n"
	"        " U64 " stream_instance_id;\n"
	"    };\n"
	"};\n\n";

static const char stream[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 32; align = 32; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 64; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 64; signed = false; map = clock.ptt.value; } := ptt_time;\n"
	"typealias integer { size = 64; align = 32; signed = false; map = clock.ptt.value; } := ptt_time_words;\n"
	"\nstream {\n    id = 1;\n"
	"    event.header := struct {\n"
	"        integer { size = 16; align = 16; signed = false; } id;\n"
	"        ptt_time_words timestamp;\n"
	"    } align(32);\n"
	"    event.context := struct {\n"
	"        uint32_t pid;\n"
	"        uint32_t tid;\n"
	"        integer { size = 64; align = 32; signed = false; base = 16; } object;\n"
	"        integer { size = 64; align = 32; signed = false; base = 16; } site;\n"
	"    };\n"
	"    packet.context := struct {\n"
	"        ptt_time timestamp_begin;\n"
	"        ptt_time timestamp_end;\n"
	"        uint64_t content_size;\n"
	"        uint64_t packet_size;\n"
	"        uint64_t events_discarded;\n"
	"        uint64_t packet_seq_num;\n"
	"        uint32_t pid;\n"
	"        uint32_t tid;\n"
	"        uint32_t process;\n"
	"        integer { size = 32; align = 32; signed = false; base = 16; } crc;\n"
	"        uint64_t chunk_serial;\n"
	"        uint32_t chunk_end;\n"
	"        uint32_t event_count;\n"
	"        uint64_t thread_serial;\n"
	"        uint64_t discarded_before;\n"
	"    };\n"
	"};\n\n";

int put_record_metadata(int dir, const char *handler, const struct put_identity *identity)
{
	/* time of day when the clock was 0 */
	uint64_t zero = (uint64_t)identity->start_unix_ns - identity->start_clock;
	char room[4096];
	struct put put;
	int err = put_open(&put, dir, "metadata", room, sizeof(room));

	if (err)
		return err;
	put_string(&put, "/* CTF 1.8 */\n\ntrace {\n    major = 1;\n    minor = 8;\n    uuid = \"");
	put_uuid(&put, identity->uuid);
	put_string(&put, "\";\n    byte_order = le;\n");
	put_string(&put, header);
	put_string(&put, "env {\n    tracer_name = \"nptltrace\";\n    clock = \"monotonic\";\n");
	put_string(&put, "    handler = \"");
	put_string(&put, handler);
	put_string(&put, "\";\n};\n\n");
	put_string(&put, "clock {\n    name = \"ptt\";\n    uuid = \"");
	put_uuid(&put, identity->uuid);
	put_string(&put, "\";\n    description = \"CLOCK_MONOTONIC\";\n    freq = 1000000000;\n    offset_s = ");
	put_decimal(&put, zero / GIGA, 1);
	put_string(&put, ";\n    offset = ");
	put_decimal(&put, zero % GIGA, 1);
	put_string(&put, ";\n};\n\n");
	put_string(&put, stream);
	put_string(&put, ptt_metadata_record_events);
	return put_close(&put);
}
