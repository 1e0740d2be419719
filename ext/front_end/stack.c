/* The stack of the current thread, measured; see stack.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include <Python.h>
#include <pthread.h>
#include <stdint.h>

#include "stack.h"

/* What stays free: half of the stack, at most 4 MB.  C code that is called at the limit takes from it: CPython itself
compares and prints nested lists by recursion, up to 10,000 levels since 3.12, of some 200 bytes each. */
#define MOST_FREE ((size_t)4 << 20)
/* What compiled functions use of a stack that is larger than any schema needs. */
#define MOST_USED ((size_t)16 << 20)
/* The same where the system does not tell the size of a stack. */
#define USED_IF_UNKNOWN ((size_t)96 << 10)

__thread char *wfsa_stack_limit;
static __thread char *stack_begin, *stack_end; /* null: not known */

static void measure(char *here) {
    char *begin = 0;
    size_t size = 0, guard = 0;
#if defined(__APPLE__)
    size = pthread_get_stacksize_np(pthread_self());
    begin = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
#else
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *address = 0;
        if (pthread_attr_getstack(&attributes, &address, &size) == 0) begin = (char *)address;
        if (pthread_attr_getguardsize(&attributes, &guard) != 0) guard = 0;
        pthread_attr_destroy(&attributes);
    }
#endif
    if (begin == 0 || here < begin || here >= begin + size || guard >= size) {
        wfsa_stack_limit = (uintptr_t)here > USED_IF_UNKNOWN ? here - USED_IF_UNKNOWN : (char *)1;
        return;
    }
    stack_begin = begin;
    stack_end = begin + size;
    size_t free = (size - guard) / 2 < MOST_FREE ? (size - guard) / 2 : MOST_FREE;
    char *limit = begin + guard + free;
    if ((size_t)(here - begin) > MOST_USED && here - MOST_USED > limit) limit = here - MOST_USED;
    wfsa_stack_limit = limit;
}

int wfsa_stack_is_used_up(char *here) {
    if (wfsa_stack_limit == 0) measure(here);
    if (here >= wfsa_stack_limit) return 0;
    /* A library of coroutines may run this thread on another stack, whose size nobody tells. */
    if (stack_begin != 0 && (here < stack_begin || here >= stack_end)) return 0;
    PyErr_SetString(PyExc_RecursionError, "too little of the thread's stack is left");
    return 1;
}
