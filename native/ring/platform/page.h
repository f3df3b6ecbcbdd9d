/* SPDX-License-Identifier: MIT */
/* page.h - the largest page of a kernel for this processor: memory that is mapped over must have this alignment and a multiple of this size. */
#ifndef PTT_PAGE_H
#define PTT_PAGE_H

#if defined(__aarch64__)
#define PTT_PAGE_MAX 65536u
#else
#define PTT_PAGE_MAX 4096u
#endif

#endif
