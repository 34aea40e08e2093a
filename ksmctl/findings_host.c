/* Rules of ksmctl doctor about what else is on the machine, and may disturb. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ksmctl/findings.h"

static bool foreign_controller(const struct facts *f, struct finding *out)
{
	if (!*f->controller && strcmp(f->service_phase, "hold") != 0)
		return false;
	TITLE("another program sets the scanner");
	if (*f->controller)
		SEEN("a process named %s is running", f->controller);
	else
		SEEN("the service stepped aside (ksmctl why tells what it saw)");
	out->meaning = "Two controllers undo each other's settings.";
	REMEDY("keep one: systemctl disable --now %s, or ksmctl",
		*f->controller ? f->controller : "the other");
	return true;
}

static bool read_only(const struct facts *f, struct finding *out)
{
	if (f->ksm_error || f->write_error != -EROFS)
		return false;
	TITLE("the settings cannot be changed from here");
	SEEN("%s is mounted read-only", KSM_DIR);
	out->meaning = "Containers see /sys read-only; merging is set up on the host.";
	REMEDY("run ksmctl on the host, or give the container a writable /sys");
	return true;
}

/* Most likely cause first. */
const struct findings_rule findings_host[] = {
	{ "another-controller", FINDING_LIMITS, foreign_controller },
	{ "read-only", FINDING_RISK, read_only },
	{ NULL, FINDING_STOPS, NULL },
};
