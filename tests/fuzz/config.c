/* Fuzz target: ksmctl.conf. What was taken is printed, and what is printed is taken and the same. */
/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ksmctl/config.h"

#include "tests/fuzz/fuzz.h"

/* The file that is there to be read, whatever it is called. */
static struct {
	char *text;
	size_t len;
} file;

FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__real_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	return file.len ? fmemopen(file.text, file.len, "r") : __real_fopen64(path, mode);
}

static char *print(const struct config *config, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	FUZZ_MUST(out != NULL);
	config_print(config, out);
	FUZZ_MUST(fclose(out) == 0);
	return text;
}

static void round_trip(const struct config *config)
{
	struct config again;
	char message[256] = "";
	size_t len, again_len;
	char *printed = print(config, &len);

	file.text = printed;
	file.len = len;
	config_defaults(&again);
	FUZZ_MUST(config_read(&again, "", message, sizeof(message)) == 0);
	char *once_more = print(&again, &again_len);
	FUZZ_MUST(again_len == len && !memcmp(printed, once_more, len));
	free(once_more);
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config, before;
	char message[256] = "";

	if (!size)
		return 0;
	file.text = fuzz_copy(data, size);
	file.len = size;
	config_defaults(&before);
	memcpy(&config, &before, sizeof(config));
	int line = config_read(&config, "", message, sizeof(message));
	free(file.text);
	FUZZ_MUST(line >= 0);
	FUZZ_MUST(memchr(message, '\0', sizeof(message)) != NULL);
	FUZZ_MUST((line > 0) == (*message != '\0'));
	if (line)
		FUZZ_MUST(fuzz_same(&config, &before, sizeof(config)));
	else
		round_trip(&config);
	file.len = 0;
	return 0;
}
