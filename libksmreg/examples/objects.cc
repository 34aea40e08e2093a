/* Objects that look alike and are not: pointers, virtual tables and values of the process keep pages apart. */
/* SPDX-License-Identifier: MIT */
/*
 * usage: objects [--with none|pointers|vtables|values] [--mib MIB]
 *
 * Fills registered memory with objects of 256 bytes. By themselves they are the same in every process. With
 * one of the others each holds 8 bytes that are not:
 *	pointers  to its neighbour; the kernel puts memory at another address in each process
 *	vtables	  a virtual function, so the address of a table in the program
 *	values	  the PID
 * Sixteen such objects are in a page, and one is enough to keep it from merging.
 * Prints "ready PID", and stays until its standard input ends.
 */
#include "ksmreg.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

constexpr std::size_t payload = 248;

struct Plain {
	unsigned char data[payload];
	unsigned long word = 0;
};

struct Pointing {
	unsigned char data[payload];
	Pointing *next = nullptr;
};

struct Valued {
	unsigned char data[payload];
	unsigned long owner = static_cast<unsigned long>(getpid());
};

struct Virtual {
	virtual ~Virtual() = default;
	virtual unsigned sum() const
	{
		unsigned total = 0;

		for (unsigned char byte : data)
			total += byte;
		return total;
	}
	unsigned char data[payload];
};

template <typename T> T *fill(void *memory, std::size_t bytes)
{
	static_assert(sizeof(T) == 256, "sixteen to a page");
	T *objects = static_cast<T *>(memory);
	unsigned long x = 1;

	for (std::size_t i = 0; i < bytes / sizeof(T); i++) {
		T *object = new (&objects[i]) T;

		for (unsigned char &byte : object->data) {
			x = x * 6364136223846793005UL + 1442695040888963407UL;
			byte = static_cast<unsigned char>(x >> 56);
		}
	}
	return objects;
}

} // namespace

int main(int argc, char **argv)
{
	const char *with = "none";
	std::size_t bytes = 32U << 20;
	char c;

	const option options[] = { { "with", required_argument, nullptr, 'w' },
		{ "mib", required_argument, nullptr, 'm' }, { "help", no_argument, nullptr, 'h' },
		{ nullptr, 0, nullptr, 0 } };

	for (int o; (o = getopt_long(argc, argv, "w:m:h", options, nullptr)) != -1;) {
		if (o == 'w') {
			with = optarg;
		} else if (o == 'm' && std::atoi(optarg) > 0) {
			bytes = static_cast<std::size_t>(std::atoi(optarg)) << 20;
		} else {
			std::fprintf(o == 'h' ? stdout : stderr,
				"usage: objects [--with none|pointers|vtables|values] [--mib "
				"MIB]\n");
			return o == 'h' ? 0 : 2;
		}
	}
	void *memory =
		mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		std::perror("objects: mmap");
		return 1;
	}
	ksm_register_memory(memory, bytes);
	if (!std::strcmp(with, "pointers")) {
		Pointing *objects = fill<Pointing>(memory, bytes);

		for (std::size_t i = 1; i < bytes / sizeof(Pointing); i++)
			objects[i - 1].next = &objects[i];
	} else if (!std::strcmp(with, "vtables")) {
		fill<Virtual>(memory, bytes);
	} else if (!std::strcmp(with, "values")) {
		fill<Valued>(memory, bytes);
	} else if (!std::strcmp(with, "none")) {
		fill<Plain>(memory, bytes);
	} else {
		std::fprintf(
			stderr, "objects: '%s' is none of: none pointers vtables values\n", with);
		return 2;
	}
	std::printf("ready %ld\n", static_cast<long>(getpid()));
	std::fflush(stdout);
	return read(0, &c, 1) != 0;
}
