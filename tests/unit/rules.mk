# How some unit tests are linked: they stand between the code and the C library.
# SPDX-License-Identifier: GPL-2.0-or-later
wrap = $(addprefix -Wl$(comma)--wrap=,$(1))
comma := ,

# These play the kernel's files themselves, and their faults.
$B/tests/unit/test_ksm_set $B/tests/unit/test_ksm_faults: override LDFLAGS += \
	$(call wrap,openat openat64 read write close)
# These cut what is read into pieces.
$B/tests/unit/test_smaps_read: override LDFLAGS += $(call wrap,read)
# This plays a process and its pages.
$B/tests/unit/test_pagemap: override LDFLAGS += $(call wrap,ioctl pread64)
# Here memory runs out.
$B/tests/unit/test_select: override LDFLAGS += $(call wrap,strndup reallocarray)
