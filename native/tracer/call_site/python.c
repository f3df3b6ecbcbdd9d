/* SPDX-License-Identifier: MIT */
/* python.c - finds the interpreter, and reads the frames of the calling thread. */
#include "python.h"

#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/ptt_abi.h"
#include "python_layouts.h"
#include "parked.h"
#include "unwind.h"
#include "modules.h"

#define WORD sizeof(uintptr_t)
#define OWNED_BY_C 3	  /* or more: a frame that stands for the call of the interpreter */
#define FRAMES_MAX 128	  /* of one call that are taken at once */
#define CALLS_MAX 2048	  /* that are gone over for the frame that stands for the interpreter's call */
#define TEXT_MAX 4096u
#define LINES_MAX (1u << 20)
#define ENDS_MAX 6 /* words at either end of a line table or a name, which identify it */
#define STACK_REF_MARKS ((uintptr_t)3)
#define TEXT(literal) (literal), sizeof(literal) - 1

bool ptt_has_python;

static struct ptt_python_layout layout;
static struct {
	void *(*thread_state)(void);
	uintptr_t evaluate, evaluate_end; /* the function that runs functions of Python */
	uintptr_t begin, end;		  /* of the module, where that is the interpreter and nothing else */
	uintptr_t code, text, bytes;	  /* types */
	uintptr_t cleanup;		  /* a code object that stands behind __init__ */
} python;

/* ------------------------------------------------------------ start */

/*
 * What an interpreter of a version says of itself, in _Py_DebugOffsets: version, and whether it is free-threaded, come first. A
 * free-threaded interpreter, from 3.14 on, has the instructions of each thread elsewhere.
 */
static bool find_said_layout(unsigned int minor)
{
	const uint64_t *said = dlsym(RTLD_DEFAULT, "_PyRuntime");
	const struct ptt_python_layout *like, *words;
	size_t i;

	for (i = 0; i < sizeof(ptt_python_debug_like) / sizeof(ptt_python_debug_like[0]); i++) {
		like = &ptt_python_debug_like[i];
		words = &ptt_python_debug_words[i];
		if (like->minor != minor || !said || memcmp(said, "xdebugpy", 8) != 0 || said[1] >> 16 != (0x0300u | minor) ||
		    (said[2] && minor != 13))
			continue;
		layout = *like;
#define TAKE(field) layout.field = words->field ? (uint32_t)said[words->field] : layout.field;
		PTT_PYTHON_FIELDS(TAKE)
#undef TAKE
		layout.version = layout.first_line + (like->version - like->first_line);
		layout.compact = layout.ascii + (like->compact - like->ascii);
		return true;
	}
	return false;
}

static bool find_layout(unsigned int minor)
{
	size_t i;

	for (i = 0; i < sizeof(ptt_python_layouts) / sizeof(ptt_python_layouts[0]); i++) {
		if (ptt_python_layouts[i].minor != minor)
			continue;
		layout = ptt_python_layouts[i];
		return true;
	}
	return find_said_layout(minor);
}

/* Is a file an interpreter, and no program that has one in itself? */
static bool is_interpreter(const char *path)
{
	char program[PATH_MAX];
	const char *name;
	ssize_t n;

	if (!*path) {
		n = readlink("/proc/thread-self/exe", program, sizeof(program) - 1);
		program[n > 0 ? n : 0] = '\0';
		path = program;
	}
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	return strncmp(name, "python3", 7) == 0 || strncmp(name, "libpython3", 10) == 0;
}

/* Functions of the interpreter, for a thread that is in it. */
static struct {
	void *(*state)(void); /* what it keeps of the thread that may use it now */
	void *(*error)(void);
	void (*clear_error)(void);
	void *(*text)(const char *word);
	void *(*attribute)(void *object, void *name);
	const char *(*bytes)(void *text, ptrdiff_t *size);
	void (*let_go)(void *object);
} interpreter;

static void find_functions(void)
{
	interpreter.state = (void *(*)(void))dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
	if (!interpreter.state)
		interpreter.state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
	interpreter.error = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyErr_Occurred");
	interpreter.clear_error = (void (*)(void))dlsym(RTLD_DEFAULT, "PyErr_Clear");
	interpreter.text = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "PyUnicode_InternFromString");
	interpreter.attribute = (void *(*)(void *, void *))dlsym(RTLD_DEFAULT, "PyObject_GenericGetAttr");
	interpreter.bytes = (const char *(*)(void *, ptrdiff_t *))dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8AndSize");
	interpreter.let_go = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_DecRef");
}

void ptt_python_start(void)
{
	const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	const ElfW(Sym) *symbol = NULL;
	struct dl_find_object module;
	unsigned int minor;
	void *evaluate;
	Dl_info info;

	/* most programs have none, and are not to look through all of their modules for the rest */
	if (!version)
		return;
	minor = strncmp(version(), "3.", 2) == 0 ? (unsigned int)strtoul(version() + 2, NULL, 10) : 0;
	ptt_python_parked_start(minor);
	evaluate = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	python.thread_state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	python.code = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
	python.text = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
	python.bytes = (uintptr_t)dlsym(RTLD_DEFAULT, "PyBytes_Type");
	python.cleanup = (uintptr_t)dlsym(RTLD_DEFAULT, "_Py_InitCleanup");
	if (!evaluate || !python.thread_state || !python.code || !python.text || !python.bytes ||
	    !find_layout(minor))
		return;
	if (!dladdr1(evaluate, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return;
	python.evaluate = (uintptr_t)evaluate;
	python.evaluate_end = python.evaluate + symbol->st_size;
	if (ptt_find_object && ptt_find_object(evaluate, &module) == 0 && module.dlfo_link_map &&
	    is_interpreter(module.dlfo_link_map->l_name))
		ptt_module_extent(&module, &python.begin, &python.end);
	find_functions();
	ptt_has_python = true;
}

bool ptt_python_has(uintptr_t pc)
{
	return pc - python.begin < python.end - python.begin;
}

/* ------------------------------------------------------------ memory */

static inline __attribute__((always_inline)) PTT_UNWATCHED bool word_at(struct ptt_reach *reach, uintptr_t at, uintptr_t *word)
{
	if (at % WORD || at & ~PTT_CODE_MASK || !ptt_reaches(reach, at))
		return false;
	*word = *(const uintptr_t *)at;
	ptt_note_read(reach->read, at, *word);
	return true;
}

/* A field of up to four bytes that does not straddle words. */
static inline __attribute__((always_inline)) PTT_UNWATCHED bool part_at(struct ptt_reach *reach, uintptr_t at, uint32_t *part)
{
	uintptr_t word;

	if (!word_at(reach, at & ~(WORD - 1), &word))
		return false;
	*part = (uint32_t)(word >> at % WORD * 8);
	return true;
}

/* Is all of it there? */
static PTT_UNWATCHED bool is_there(struct ptt_reach *reach, uintptr_t at, size_t size)
{
	uintptr_t word, page;

	for (page = at & ~(PTT_REACH_PAGE - 1); page < at + size; page += PTT_REACH_PAGE)
		if (!word_at(reach, page, &word))
			return false;
	return true;
}

/* ------------------------------------------------------------ code objects */

/* What is numbered, and what is known of it. */
struct code {
	struct ptt_python_code described;
	struct ptt_reach *reach;
	uintptr_t file, name, lines;
};

static PTT_UNWATCHED bool is_a(struct ptt_reach *reach, uintptr_t object, uintptr_t type)
{
	uintptr_t found;

	return word_at(reach, object + layout.type, &found) && found == type;
}

static PTT_UNWATCHED bool describe_text(struct ptt_reach *reach, uintptr_t object, struct ptt_python_text *text)
{
	uintptr_t length;
	uint32_t state;

	if (!is_a(reach, object, python.text) || !word_at(reach, object + layout.length, &length) ||
	    !part_at(reach, object + layout.state, &state))
		return false;
	/* bits of the state: interned, bytes of a character, compact, ASCII */
	state >>= layout.kind;
	text->width = state & 7;
	if (!(state & 0x08) || length > TEXT_MAX || (text->width != 1 && text->width != 2 && text->width != 4))
		return false;
	text->size = length * text->width;
	text->at = (const void *)(object + (state & 0x10 ? layout.ascii : layout.compact));
	return is_there(reach, (uintptr_t)text->at, text->size);
}

static PTT_UNWATCHED bool describe_lines(struct ptt_reach *reach, uintptr_t object, struct ptt_python_text *lines)
{
	uintptr_t size;

	if (!is_a(reach, object, python.bytes) || !word_at(reach, object + layout.size, &size) || size > LINES_MAX)
		return false;
	lines->width = 1;
	lines->size = size;
	lines->at = (const void *)(object + layout.bytes);
	return is_there(reach, object + layout.bytes, lines->size);
}

static PTT_UNWATCHED bool describe(struct ptt_python_code *described)
{
	struct code *code = (struct code *)described;

	/* the memory that is read here never changes, but a stack is not remembered by it */
	ptt_read_unlisted(code->reach->read);
	described->minor = layout.minor;
	return describe_text(code->reach, code->file, &described->file) &&
	       describe_text(code->reach, code->name, &described->name) &&
	       describe_lines(code->reach, code->lines, &described->lines);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* Bytes by their first and last words; @at is a multiple of a word. Nearly all that this is asked of is shorter. */
static PTT_UNWATCHED bool mix_bytes(struct ptt_reach *reach, uintptr_t at, size_t size, uint64_t *hash)
{
	size_t i, words = size / WORD;
	uintptr_t word;

	*hash = mix(*hash, size);
	for (i = 0; i < words; i = i + 1 == ENDS_MAX && words > 2 * ENDS_MAX ? words - ENDS_MAX : i + 1) {
		if (!word_at(reach, at + i * WORD, &word))
			return false;
		*hash = mix(*hash, word);
	}
	if (!(size % WORD))
		return true;
	if (!word_at(reach, at + words * WORD, &word))
		return false;
	*hash = mix(*hash, word << (WORD - size % WORD) * 8);
	return true;
}

/* A str by its hash, or where that was not asked for yet, by itself. */
static PTT_UNWATCHED bool mix_text(struct ptt_reach *reach, uintptr_t object, uint64_t *hash)
{
	struct ptt_python_text text;
	uintptr_t word;

	/* its hash stands behind its length */
	if (!word_at(reach, object + layout.length + WORD, &word))
		return false;
	if (word != UINTPTR_MAX) {
		*hash = mix(*hash, word);
		return true;
	}
	return describe_text(reach, object, &text) && mix_bytes(reach, (uintptr_t)text.at, text.size, hash);
}

/*
 * A code object has a number of its own since 3.12. Before that, one that lies where another one did may point to where
 * that one did: what lies there is another name, file or line table then.
 */
static PTT_UNWATCHED bool mix_what_differs(const struct code *code, uintptr_t at, uint64_t *hash)
{
	uint32_t version = 0;
	uintptr_t size;

	if (layout.version && !part_at(code->reach, at + layout.version, &version))
		return false;
	*hash = mix(*hash, version);
	return version || (mix_text(code->reach, code->file, hash) && mix_text(code->reach, code->name, hash) &&
			   word_at(code->reach, code->lines + layout.size, &size) && size <= LINES_MAX &&
			   mix_bytes(code->reach, code->lines + layout.bytes, size, hash));
}

/*
 * What a code object points to, and the first words behind its head, never change: sizes, and since 3.11 constants and names.
 */
static PTT_UNWATCHED bool identify(uintptr_t at, struct code *code)
{
	uint64_t hash = mix(0, at);
	uintptr_t word;
	uint32_t i;

	if (!is_a(code->reach, at, python.code) || !word_at(code->reach, at + layout.filename, &code->file) ||
	    !word_at(code->reach, at + layout.name, &code->name) || !word_at(code->reach, at + layout.lines, &code->lines) ||
	    !part_at(code->reach, at + layout.first_line, &code->described.first_line))
		return false;
	for (i = layout.type + WORD; i < layout.type + 4 * WORD; i += WORD) {
		if (!word_at(code->reach, at + i, &word))
			return false;
		hash = mix(hash, word);
	}
	hash = mix(mix(mix(mix(hash, code->file), code->name), code->lines), code->described.first_line);
	if (!mix_what_differs(code, at, &hash))
		return false;
	code->described.identity = hash ? hash : 1;
	return true;
}

/* ------------------------------------------------------------ frames */

/* What stands for the call that runs the innermost function that is left. */
static PTT_UNWATCHED void find_marker(struct ptt_python *p)
{
	uintptr_t frame = p->frame;
	uint32_t owner, i;

	p->marker = layout.outer && frame ? p->call : 0;
	for (i = 0; layout.owner && frame && i < CALLS_MAX; i++) {
		if (!part_at(&p->frames, frame + layout.owner, &owner)) {
			p->bad = true;
			return;
		}
		if ((owner & 0xff) >= OWNED_BY_C) {
			p->marker = frame;
			return;
		}
		if (!word_at(&p->frames, frame + layout.previous, &frame))
			p->bad = true;
	}
}

uintptr_t ptt_python_state(void)
{
	return (uintptr_t)python.thread_state();
}

PTT_UNWATCHED bool ptt_python_begin(struct ptt_python *p, const struct ptt_reach *reach, struct ptt_words_read *read)
{
	uintptr_t state = ptt_python_state();

	*p = (struct ptt_python){.frames = *reach, .codes = *reach};
	p->frames.read = p->codes.read = read;
	if (!state || !word_at(&p->frames, state + layout.frame, &p->frame))
		return false;
	p->call = p->frame;
	if (layout.indirect && !word_at(&p->frames, p->call + layout.current, &p->frame))
		return false;
	find_marker(p);
	return p->frame && !p->bad;
}

bool ptt_python_is_run_by(const struct ptt_python *p, uintptr_t low, uintptr_t high, uintptr_t pc)
{
	if (!p->frame)
		return false;
	if (p->marker)
		return p->marker >= low && p->marker < high;
	return pc - python.evaluate < python.evaluate_end - python.evaluate;
}

/* Return: 1 if the frame is one of a function that is to be seen. */
static PTT_UNWATCHED uint32_t put(struct ptt_python *p, uint64_t *frame, ptt_number_python_code *number)
{
	const uint64_t last = (UINT64_C(1) << PTT_PYTHON_SHIFT) - 1;
	struct code code = {.described.describe = describe, .reach = &p->codes};
	uintptr_t at, word;
	uint64_t instruction, n;

	if (!word_at(&p->frames, p->frame + layout.code, &at) ||
	    !word_at(&p->frames, p->frame + layout.instruction, &word))
		goto bad;
	if (layout.stack_ref)
		at &= ~STACK_REF_MARKS;
	if (at == python.cleanup)
		return 0;
	if (!identify(at, &code))
		goto bad;
	/* before its first instruction, a function is at the instruction before that */
	instruction = layout.instructions ? word - (at + layout.instructions) : (uint64_t)(int32_t)word;
	if ((int64_t)instruction < 0)
		instruction = 0;
	instruction = layout.minor == 10 ? instruction : instruction / 2;
	n = number(&code.described);
	if (!n)
		goto bad;
	*frame = PTT_PYTHON_PLACE | n << PTT_PYTHON_SHIFT | (instruction < last ? instruction : last);
	return 1;
bad:
	p->bad = true;
	return 0;
}

/* Go on behind a frame. Return: was it the last one of the call of the interpreter? */
static PTT_UNWATCHED bool go_on(struct ptt_python *p)
{
	bool last = !layout.outer && !layout.owner;
	uint32_t entry = 0;

	if (layout.entry) {
		if (!part_at(&p->frames, p->frame + layout.entry, &entry))
			p->bad = true;
		last = entry & 0xff;
	}
	if (!word_at(&p->frames, p->frame + layout.previous, &p->frame))
		p->bad = true;
	if (last && layout.outer && !p->bad &&
	    (!word_at(&p->frames, p->call + layout.outer, &p->call) || !p->call ||
	     !word_at(&p->frames, p->call + layout.current, &p->frame)))
		p->bad = true;
	return last;
}

PTT_UNWATCHED uint32_t ptt_python_run(struct ptt_python *p, uint64_t *frame, uint32_t room, ptt_number_python_code *number)
{
	bool last = false;
	uint32_t n = 0, i, owner;

	for (i = 0; p->frame && !p->bad && !last && n < room && i < FRAMES_MAX; i++) {
		owner = 0;
		if (layout.owner && !part_at(&p->frames, p->frame + layout.owner, &owner))
			p->bad = true;
		else if ((owner & 0xff) < OWNED_BY_C)
			n += put(p, frame + n, number);
		if (!p->bad)
			last = go_on(p) || (owner & 0xff) >= OWNED_BY_C;
	}
	if (!p->bad)
		find_marker(p);
	return n;
}

/* ------------------------------------------------------------ names of threads */

static bool ends_in(const struct ptt_python_text *text, const char *end, size_t size)
{
	return text->width == 1 && text->size >= size &&
	       memcmp((const char *)text->at + text->size - size, end, size) == 0;
}

/* The object whose start() of threading was called. Since 3.11 a function's name has the name of its class before it. */
static PTT_UNWATCHED uintptr_t find_started(void)
{
	struct ptt_reach reach = ptt_reach_from((uintptr_t)__builtin_frame_address(0));
	struct code code = {.reach = &reach};
	struct ptt_python p;
	uintptr_t at, thread;

	if (!ptt_python_begin(&p, &reach, NULL) || !word_at(&reach, p.frame + layout.code, &at) || !identify(at, &code) ||
	    !describe(&code.described) || !ends_in(&code.described.name, TEXT("start")) ||
	    !ends_in(&code.described.file, TEXT("threading.py")) || !word_at(&reach, p.frame + layout.locals, &thread))
		return 0;
	return thread;
}

static size_t copy_name(char *name, size_t room, const char *bytes, size_t size)
{
	if (size > room)
		for (size = room; size && ((unsigned char)bytes[size] & 0xc0) == 0x80; size--)
			;
	memcpy(name, bytes, size);
	return size;
}

size_t ptt_python_thread_name(char *name, size_t room)
{
	void *word, *value = NULL;
	const char *bytes = NULL;
	ptrdiff_t size = 0;
	uintptr_t thread;
	size_t length = 0;

	if (!ptt_has_python || !layout.locals || !interpreter.state || !interpreter.error || !interpreter.clear_error ||
	    !interpreter.text || !interpreter.attribute || !interpreter.bytes || !interpreter.let_go)
		return 0;
	/* it has the interpreter's lock, or what stands for that */
	if (!interpreter.state() || (uintptr_t)interpreter.state() != ptt_python_state() || interpreter.error())
		return 0;
	thread = find_started();
	if (!thread)
		return 0;
	word = interpreter.text("_name");
	if (word)
		value = interpreter.attribute((void *)thread, word);
	if (value)
		bytes = interpreter.bytes(value, &size);
	if (bytes)
		length = copy_name(name, room, bytes, (size_t)size);
	else
		interpreter.clear_error();
	if (value)
		interpreter.let_go(value);
	if (word)
		interpreter.let_go(word);
	return length;
}
