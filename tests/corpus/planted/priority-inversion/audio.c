/* SPDX-License-Identifier: MIT */
/* audio.c - a real-time audio thread waits for settings; an ordinary thread holds them while it saves them. */
/* expect: priority-inversion threads=audio,saver objects=settings sites=audio-wants */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t settings;
static int held, audio_tid;

static void *audio(void *unused)
{
	i_am("audio");
	await(&held, 1);
	set_tid(&audio_tid);
	pthread_mutex_lock(&settings); /* SITE audio-wants */
	pthread_mutex_unlock(&settings);
	return unused;
}

static void *saver(void *unused)
{
	i_am("saver");
	pthread_mutex_lock(&settings);
	arrive(&held);
	await_asleep(&audio_tid);
	nap_ms(50);
	pthread_mutex_unlock(&settings);
	return unused;
}

int main(void)
{
	struct sched_param param = {.sched_priority = 50};
	pthread_t first, second;
	pthread_attr_t attr;

	OBJECT(settings);
	pthread_mutex_init(&settings, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_RR);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&first, &attr, audio, NULL))
		return 77;
	second = start(saver, NULL);
	join(first);
	join(second);
	pthread_mutex_destroy(&settings);
	return 0;
}
