/* SPDX-License-Identifier: MIT */
/* page.h - the largest page that a kernel of this processor may have: memory that is mapped over must be so aligned and so large. */
#ifndef PTT_PAGE_H
#define PTT_PAGE_H

#if defined(__aarch64__)
#define PTT_PAGE_MAX 65536u
#else
#define PTT_PAGE_MAX 4096u
#endif

#endif
