/* Compiled Python functions on C's stack: how they end with RecursionError instead of the process.

Python counts the calls of interpreted functions.  mypyc turns functions into C, which nobody counts: a schema that nests
deep enough would overflow the stack of its thread and kill the process.  So ext/front_end/translate.py begins every
function with WFSA_GUARD, which compares the address of its frame with a limit, measured once per thread. */

#ifndef WFSA_FRONT_END_STACK_H
#define WFSA_FRONT_END_STACK_H

#if defined(__GNUC__) || defined(__clang__)
#define WFSA_HIDDEN __attribute__((visibility("hidden")))
#else
#error "the compiled front end needs GCC or Clang"
#endif

/* The lowest address at which a function of this thread may begin; null before the first one. */
extern __thread char *wfsa_stack_limit WFSA_HIDDEN;

/* Whether RecursionError was raised: the slow path, for a thread's first function and below its limit. */
int wfsa_stack_is_used_up(char *here) WFSA_HIDDEN;

/* Leaves a function with `result`, its value on errors, where too little stack is left. */
#define WFSA_GUARD(result)                                                                                   \
    do {                                                                                                     \
        char *here_ = (char *)__builtin_frame_address(0);                                                    \
        char *limit_ = wfsa_stack_limit;                                                                     \
        if (__builtin_expect(limit_ == 0 || here_ < limit_, 0) && wfsa_stack_is_used_up(here_)) return result; \
    } while (0)

#endif
