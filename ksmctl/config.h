/* The service's configuration: one table of keys for the file, its checks and its printing. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KSMCTL_CONFIG_H
#define KSMCTL_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "ksmctl/policy.h"

#ifndef KSM_SYSCONFDIR
#define KSM_SYSCONFDIR "/etc"
#endif
#define CONFIG_FILE KSM_SYSCONFDIR "/ksmctl.conf"
#define CONFIG_NICE_KEEP 100 /* leave ksmd's niceness as it is */

struct config {
	struct policy_config policy;
	int ksmd_nice;	     /* 0 to 19, or CONFIG_NICE_KEEP */
	char state_dir[256]; /* where lock, status and first values are kept */
};

void config_defaults(struct config *config);

/*
 * Read a file over the values that are there. Unknown keys, values out of range and sections are
 * errors. Returns 0; -errno when the file cannot be read; or the number of the first wrong line,
 * with what is wrong of it in message.
 */
int config_read(struct config *config, const char *path, char *message, size_t size);

/* Print every key with its value, in the form that config_read takes, each below its meaning. */
void config_print(const struct config *config, FILE *out);

#endif
