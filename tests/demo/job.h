/* What a demonstration job and its starter tell each other, in one shared page. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_DEMO_JOB_H
#define TESTS_DEMO_JOB_H

#include <stdatomic.h>
#include <stdint.h>

/* The memory of one job, like that of a farm's: most of it the same in every job. */
#define JOB_EQUAL_MIB 120   /* geometry, calibration: the same bytes in all jobs */
#define JOB_UNIQUE_MIB 50   /* results of its own */
#define JOB_ZERO_MIB 20	    /* reserved and cleared, not used yet */
#define JOB_CHANGING_MIB 10 /* the event being worked on, rewritten all the time */

/* That of a job of a farm of old, 700 MiB: 36 % of its data are the same in every job. */
#define JOB_FARM_EQUAL_MIB 256
#define JOB_FARM_UNIQUE_MIB 384
#define JOB_FARM_ZERO_MIB 20
#define JOB_FARM_CHANGING_MIB 40

struct job_report {
	_Atomic uint64_t ready;		/* 1 once its memory is built */
	_Atomic uint64_t events;	/* done so far */
	_Atomic uint64_t event_cpu_ns;	/* CPU time used for them */
	_Atomic uint64_t event_wall_ns; /* time they took */
	_Atomic uint64_t damaged;	/* events that read back something else than was written */
};

#endif
