/* SPDX-License-Identifier: MIT */
/* python.c - finds the CPython interpreter, and reads the frames of the calling thread. */
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
#define OWNED_BY_C 3	  /* owner of a frame, or more: the frame stands for the call of the interpreter */
#define FRAMES_MAX 128	  /* frames of one call of the interpreter */
#define CALLS_MAX 2048	  /* frames on the way to the frame that stands for the interpreter's call */
#define TEXT_MAX 4096u
#define LINES_MAX (1u << 20)
#define ENDS_MAX 6 /* words at each end of a line table or a name that identify it */
#define STACK_REF_MARKS ((uintptr_t)3)
#define TEXT(literal) (literal), sizeof(literal) - 1

bool ptt_has_python;

static struct ptt_python_layout layout;
static struct {
	void *(*thread_state)(void);
	uintptr_t evaluate, evaluate_end; /* the function that runs functions of Python */
	uintptr_t begin, end;		  /* of the module, if it contains only the interpreter */
	uintptr_t code, text, bytes;	  /* addresses of PyCode_Type, PyUnicode_Type, PyBytes_Type */
	uintptr_t cleanup;		  /* _Py_InitCleanup: the caller's code object of an inlined __init__; no function of the program */
} python;

/* ------------------------------------------------------------ start */

/*
 * The layout in _Py_DebugOffsets, where an interpreter describes itself. It begins with a cookie, the version, and
 * whether the interpreter is free-threaded. From 3.14 on, a free-threaded interpreter keeps the instructions of each
 * thread elsewhere, and has no layout here.
 */
static bool find_debug_layout(unsigned int minor)
{
	const uint64_t *offsets = dlsym(RTLD_DEFAULT, "_PyRuntime");
	const struct ptt_python_layout *like, *words;
	size_t i;

	for (i = 0; i < sizeof(ptt_python_debug_like) / sizeof(ptt_python_debug_like[0]); i++) {
		like = &ptt_python_debug_like[i];
		words = &ptt_python_debug_words[i];
		if (like->minor != minor || !offsets || memcmp(offsets, "xdebugpy", 8) != 0 ||
		    offsets[1] >> 16 != (0x0300u | minor) || (offsets[2] && minor != 13))
			continue;
		layout = *like;
#define TAKE(field) layout.field = words->field ? (uint32_t)offsets[words->field] : layout.field;
		PTT_PYTHON_FIELDS(TAKE)
#undef TAKE
		layout.version = layout.first_line + (like->version - like->first_line);
		layout.compact = layout.ascii + (like->compact - like->ascii);
		return true;
	}
	return false;
}

/* Does this file's table have 3.@minor? Structures of other versions may differ in any way. */
static bool is_known(unsigned int minor)
{
	size_t i;

	for (i = 0; i < sizeof(ptt_python_layouts) / sizeof(ptt_python_layouts[0]); i++)
		if (ptt_python_layouts[i].minor == minor)
			return true;
	for (i = 0; i < sizeof(ptt_python_debug_like) / sizeof(ptt_python_debug_like[0]); i++)
		if (ptt_python_debug_like[i].minor == minor)
			return true;
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
	return find_debug_layout(minor);
}

/* Does a file contain only the interpreter? A program may have an interpreter linked into it. */
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

/* Functions of the interpreter. Only a thread that has its lock may call them. */
static struct {
	void *(*state)(void); /* the PyThreadState of the thread that has the lock */
	void *(*error)(void);
	void (*clear_error)(void);
	void *(*text)(const char *word);
	void *(*attribute)(void *object, void *name);
	const char *(*bytes)(void *text, ptrdiff_t *size);
	void (*release)(void *object);
	void *(*save)(void);
	void (*restore)(void *state);
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
	interpreter.release = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_DecRef");
	interpreter.save = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
	interpreter.restore = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
}

void ptt_python_start(void)
{
	const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	const ElfW(Sym) *symbol = NULL;
	struct dl_find_object module;
	unsigned int minor;
	void *evaluate;
	Dl_info info;

	/* most programs have no interpreter: do not search all their modules for the other names */
	if (!version)
		return;
	minor = strncmp(version(), "3.", 2) == 0 ? (unsigned int)strtoul(version() + 2, NULL, 10) : 0;
	if (is_known(minor))
		ptt_python_parked_start();
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

void *ptt_python_let_run(void)
{
	void *own = ptt_has_python && interpreter.state && interpreter.restore ? python.thread_state() : NULL;

	return own && interpreter.state() == own ? interpreter.save() : NULL;
}

void ptt_python_go_on(void *state)
{
	if (state)
		interpreter.restore(state);
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

static PTT_UNWATCHED bool is_readable(struct ptt_reach *reach, uintptr_t at, size_t size)
{
	uintptr_t word, page;

	for (page = at & ~(PTT_REACH_PAGE - 1); page < at + size; page += PTT_REACH_PAGE)
		if (!word_at(reach, page, &word))
			return false;
	return true;
}

/* ------------------------------------------------------------ code objects */

/* A code object to be numbered. */
struct code {
	struct ptt_python_code described;
	struct ptt_reach *reach;
	uintptr_t file, name, lines;
};

static PTT_UNWATCHED bool is_a(struct ptt_reach *reach, uintptr_t object, uintptr_t type)
{
	uintptr_t word;

	return word_at(reach, object + layout.type, &word) && word == type;
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
	return is_readable(reach, (uintptr_t)text->at, text->size);
}

static PTT_UNWATCHED bool describe_lines(struct ptt_reach *reach, uintptr_t object, struct ptt_python_text *lines)
{
	uintptr_t size;

	if (!is_a(reach, object, python.bytes) || !word_at(reach, object + layout.size, &size) || size > LINES_MAX)
		return false;
	lines->width = 1;
	lines->size = size;
	lines->at = (const void *)(object + layout.bytes);
	return is_readable(reach, object + layout.bytes, lines->size);
}

static PTT_UNWATCHED bool describe(struct ptt_python_code *described)
{
	struct code *code = (struct code *)described;

	/* this memory never changes, but it is too much to list */
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

/* Hash the first and last words of some bytes; @at is aligned to a word. Nearly all texts are shorter. */
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

/* Hash a str by its own hash value; by its characters if it has no hash value yet. */
static PTT_UNWATCHED bool mix_text(struct ptt_reach *reach, uintptr_t object, uint64_t *hash)
{
	struct ptt_python_text text;
	uintptr_t word;

	/* the hash value stands behind the length */
	if (!word_at(reach, object + layout.length + WORD, &word))
		return false;
	if (word != UINTPTR_MAX) {
		*hash = mix(*hash, word);
		return true;
	}
	return describe_text(reach, object, &text) && mix_bytes(reach, (uintptr_t)text.at, text.size, hash);
}

/*
 * Since 3.12 a code object has a version number. Before 3.12 a new code object may lie at the address of an old code
 * object, and have the same pointers. Then the name, file or line table at these addresses differs.
 */
static PTT_UNWATCHED bool mix_contents(const struct code *code, uintptr_t at, uint64_t *hash)
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
 * The identity of a code object: a hash of its address, its pointers, and the words behind its head (sizes; since
 * 3.11 also constants and names). These never change.
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
	if (!mix_contents(code, at, &hash))
		return false;
	code->described.identity = hash ? hash : 1;
	return true;
}

/* ------------------------------------------------------------ frames */

/* Find the marker of the call that runs the innermost function that is left. */
static PTT_UNWATCHED void find_marker(struct ptt_python *p)
{
	uintptr_t frame = p->frame, outer;
	uint32_t owner, i;

	p->marker = layout.outer && frame ? p->call : 0;
	for (i = 0; layout.owner && frame && i < CALLS_MAX; i++) {
		if (!part_at(&p->frames, frame + layout.owner, &owner)) {
			p->bad = true;
			return;
		}
		if ((owner & 0xff) >= OWNED_BY_C) {
			p->marker = frame;
			/* since 3.15, the chain of a thread ends with a frame in its state, which no call owns */
			if (frame == p->frame && word_at(&p->frames, frame + layout.previous, &outer) && !outer)
				p->frame = p->marker = 0;
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

/* Store the frame of a function. Return: 1; 0 if the function is not shown. */
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
	/* before its first instruction, a function is at instruction -1 */
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

/* Step to the caller's frame. Return: was the frame the last frame of the interpreter's call? */
static PTT_UNWATCHED bool step_frame(struct ptt_python *p)
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
			last = step_frame(p) || (owner & 0xff) >= OWNED_BY_C;
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

/*
 * The threading.Thread object if the innermost function is Thread.start(); else 0. Since 3.11 a function's name
 * includes the class.
 */
static PTT_UNWATCHED uintptr_t find_started_thread(void)
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
	    !interpreter.text || !interpreter.attribute || !interpreter.bytes || !interpreter.release)
		return 0;
	/* does the thread have the interpreter's lock, or an attached thread state (free-threaded)? */
	if (!interpreter.state() || (uintptr_t)interpreter.state() != ptt_python_state() || interpreter.error())
		return 0;
	thread = find_started_thread();
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
		interpreter.release(value);
	if (word)
		interpreter.release(word);
	return length;
}
