/* libksmreg in CPython: a module that registers the arenas of small objects, and what a program names. */
/* SPDX-License-Identifier: MIT */
/*
 *	import ksmreg
 *	ksmreg.install()
 *
 * as early as possible. CPython (3.4 and later) takes objects of up to 512 bytes out of arenas, of
 * 256 KiB or, from 3.10 on, 1 MiB; this stands between it and its source of arenas, and offers what was
 * there before. Not covered: larger objects and the tables of lists and dicts, which come from malloc;
 * and all where Python takes its objects from elsewhere (PYTHONMALLOC=malloc, the builds without
 * GIL). ksmreg.process() covers these, too, where the kernel has it.
 *
 * Build it as ksmreg.so, in a folder of sys.path:
 *	cc -shared -fPIC -O2 -fvisibility=hidden $(pkg-config --cflags python3) -I. -o ksmreg.so \
 *		adapters/python.c *.c	(but ksmreg-preload.c)
 * or with -lksmreg.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ksmreg.h"

static PyObjectArenaAllocator before;
static int installed; /* under the GIL */

static void *arena_alloc(void *unused, size_t size)
{
	void *arena = before.alloc(before.ctx, size);

	(void)unused;
	if (arena)
		ksmreg_register(arena, size);
	return arena;
}

static void arena_free(void *unused, void *arena, size_t size)
{
	(void)unused;
	before.free(before.ctx, arena, size);
}

/* None, or OSError for a negative errno. */
static PyObject *result(int err)
{
	if (!err)
		Py_RETURN_NONE;
	errno = -err;
	return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *module_install(PyObject *self, PyObject *unused)
{
	PyObjectArenaAllocator ours = { NULL, arena_alloc, arena_free };
	int err;

	(void)self;
	(void)unused;
	if (installed)
		Py_RETURN_NONE;
	PyObject_GetArenaAllocator(&before);
	PyObject_SetArenaAllocator(&ours);
	installed = 1;
	err = ksmreg_register_existing(KSMREG_HEAP | KSMREG_ANON);
	/* off is not an error */
	return result(err == -EOPNOTSUPP ? 0 : err);
}

static PyObject *module_register(PyObject *self, PyObject *args)
{
	Py_buffer view;
	int err;

	(void)self;
	if (!PyArg_ParseTuple(args, "y*:register", &view))
		return NULL;
	err = view.len ? ksmreg_register(view.buf, view.len) : 0;
	PyBuffer_Release(&view);
	return result(err == -EOPNOTSUPP ? 0 : err);
}

static PyObject *module_process(PyObject *self, PyObject *args)
{
	int on = 1;

	(void)self;
	if (!PyArg_ParseTuple(args, "|p:process", &on))
		return NULL;
	return result(ksmreg_process(on));
}

static PyObject *module_stats(PyObject *self, PyObject *unused)
{
	struct ksmreg_stats stats = { .size = sizeof(stats) };
	int err = ksmreg_get_stats(&stats);

	(void)self;
	(void)unused;
	if (err)
		return result(err);
	return Py_BuildValue("{sKsKsKsKsKsisi}", "registered", (unsigned long long)stats.registered,
		"registered_bytes", (unsigned long long)stats.registered_bytes, "skipped",
		(unsigned long long)stats.skipped, "refused", (unsigned long long)stats.refused,
		"failed", (unsigned long long)stats.failed, "last_error", (int)stats.last_error,
		"state", (int)stats.state);
}

static PyMethodDef methods[] = {
	{ "install", module_install, METH_NOARGS,
		"install()\n\nRegister the arenas of small objects, those to come and what is "
		"there." },
	{ "register", module_register, METH_VARARGS,
		"register(buffer)\n\nRegister the memory of an array, a bytearray, an mmap: its "
		"whole pages." },
	{ "process", module_process, METH_VARARGS,
		"process(on=True)\n\nOffer all memory of this process and its children, or take it "
		"back." },
	{ "stats", module_stats, METH_NOARGS,
		"stats()\n\nThe counts of ksmreg_get_stats, as a dict. state: 0 on, 1 KSMREG=off,\n"
		"2 off by the program, 3 off by the kernel." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "ksmreg",
	.m_doc = "Offers memory to the kernel for merging of equal pages (KSM).",
	.m_size = -1,
	.m_methods = methods,
};

/* before 3.9 the macro says nothing of visibility */
KSMREG_API PyMODINIT_FUNC PyInit_ksmreg(void);

PyMODINIT_FUNC PyInit_ksmreg(void)
{
	return PyModule_Create(&definition);
}
