/* ksmstat --prom: the machine, groups and processes as metrics of Prometheus. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMSTAT_PROM_H
#define KSMSTAT_PROM_H

#include <stdio.h>

#include "ksmstat/entry.h"
#include "ksmstat/group.h"
#include "ksmstat/options.h"
#include "sysfs/root.h"

/* Returns an exit code of ksmstat. */
int prom(const struct options *options, const struct root *root);

/* What it is made of, in prom_print.c. What is not known has no line, and a metric without lines no head. */

/* What the kernel counts. Returns 0 or -errno of opening /sys/kernel/mm/ksm; nothing is written then. */
int prom_machine(FILE *f, const struct root *root);
/* How many processes were read. */
void prom_processes(FILE *f, const struct entry_list *list);
/* Sums of groups, with a label of the kind's name. Returns 0 or -ENOMEM. */
int prom_groups(FILE *f, const struct entry_list *list, enum group_by by);
/* A series for each process, with labels of its PID, program and user. */
void prom_each(FILE *f, const struct entry_list *list);

#endif
