/* Many vectors, each registered by itself, and a copy of them that every process changes: wholly, then by half. */
/* SPDX-License-Identifier: MIT */
/*
 * usage: vectors [--vectors N] [--floats N]
 *
 * Two sets of as many vectors of floats. Both are filled with what every process has the same; then the
 * second is changed to values of the process's own. The first set stays, and merges between processes:
 * half of the data. For each line on standard input another phase begins:
 *	phase 1	all of the second set is changed, again and again
 *	phase 2	one half of each vector of the second set goes back to the common values and stays so:
 *		three quarters of the data are equal
 * Prints "phase N PID" when it has begun, and ends with its input.
 */
#include "ksmreg.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

/*
 * A vector touches its elements when it makes them, so the memory is registered in its allocator:
 * before the first touch.
 */
template <typename T> struct Registering {
	using value_type = T;

	Registering() = default;
	template <typename U> Registering(const Registering<U> &)
	{
	}

	static std::size_t mapped(std::size_t n)
	{
		const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

		return (n * sizeof(T) + page - 1) & ~(page - 1);
	}

	T *allocate(std::size_t n)
	{
		/* from a page on, so that equal vectors have equal pages */
		void *p = mmap(nullptr, mapped(n), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			throw std::bad_alloc();
		ksm_register_memory(p, mapped(n));
		return static_cast<T *>(p);
	}

	void deallocate(T *p, std::size_t n)
	{
		munmap(p, mapped(n));
	}

	template <typename U> bool operator==(const Registering<U> &) const
	{
		return true;
	}
	template <typename U> bool operator!=(const Registering<U> &) const
	{
		return false;
	}
};

using Vector = std::vector<float, Registering<float>>;

float common(std::size_t i, std::size_t k)
{
	return static_cast<float>(i) * 1.25F + static_cast<float>(k) * 0.001F;
}

void change(std::vector<Vector> &set, std::size_t from, int round)
{
	/* no two processes have a value in common, whichever round they are in */
	const float own = static_cast<float>(getpid() % 4096) * 4096.0F +
			  static_cast<float>(round % 1024) * 2.0F;

	for (std::size_t i = 0; i < set.size(); i++) {
		for (std::size_t k = from; k < set[i].size(); k++)
			set[i][k] = common(i, k) + own;
	}
}

/* Waits for a line for so long. Returns 1 for one, 0 for none, -1 at the end. */
int line(int ms)
{
	pollfd in = { 0, POLLIN, 0 };
	char c;

	if (poll(&in, 1, ms) == 0)
		return 0;
	do {
		if (read(0, &c, 1) != 1)
			return -1;
	} while (c != '\n');
	return 1;
}

int number(const char *text)
{
	char *end;
	const long n = std::strtol(text, &end, 10);

	if (*end || n < 1 || n > 10000000) {
		std::fprintf(stderr, "vectors: '%s' is not a number from 1 to 10000000\n", text);
		std::exit(2);
	}
	return static_cast<int>(n);
}

} // namespace

int main(int argc, char **argv)
{
	int vectors = 1000, floats = 50000, phase = 1;
	const option options[] = { { "vectors", required_argument, nullptr, 'n' },
		{ "floats", required_argument, nullptr, 'f' },
		{ "help", no_argument, nullptr, 'h' }, { nullptr, 0, nullptr, 0 } };

	for (int c; (c = getopt_long(argc, argv, "n:f:h", options, nullptr)) != -1;) {
		if (c == 'n') {
			vectors = number(optarg);
		} else if (c == 'f') {
			floats = number(optarg);
		} else {
			std::fprintf(c == 'h' ? stdout : stderr,
				"usage: vectors [--vectors N] [--floats N]\n");
			return c == 'h' ? 0 : 2;
		}
	}
	std::vector<Vector> first;

	for (int i = 0; i < vectors; i++) {
		first.emplace_back(floats);
		for (int k = 0; k < floats; k++)
			first.back()[k] = common(i, k);
	}
	std::vector<Vector> second = first;

	change(second, 0, 0);
	std::printf("phase 1 %ld\n", static_cast<long>(getpid()));
	std::fflush(stdout);
	for (int round = 1;; round++) {
		const int said = line(200);

		if (said < 0)
			return 0;
		if (said > 0 && phase == 1) {
			phase = 2;
			/* by whole vectors' first halves: what is below stays equal in all processes */
			for (std::size_t i = 0; i < second.size(); i++)
				std::copy(first[i].begin(), first[i].begin() + floats / 2,
					second[i].begin());
			std::printf("phase 2 %ld\n", static_cast<long>(getpid()));
			std::fflush(stdout);
		}
		change(second, phase == 1 ? 0 : floats / 2, round);
	}
}
