/* SPDX-License-Identifier: MIT */
/* clock.c - chooses the clock that the kernel itself trusts. */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

uint32_t ptt_clock_choose(void)
{
#if defined(__x86_64__)
	char name[32];
	ssize_t n;
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return PTT_CLOCK_MONOTONIC;
	n = read(fd, name, sizeof(name));
	close(fd);
	/* the kernel keeps "tsc" only while it is constant, unstopped and the same on all processors */
	if (n == 4 && memcmp(name, "tsc\n", 4) == 0)
		return PTT_CLOCK_TSC;
#endif
	return PTT_CLOCK_MONOTONIC;
}
