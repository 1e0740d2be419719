// C++ exceptions as Python's: what each extension module names in `except +wfsa_translate`.
//
// The classes of wfsa.errors are looked up when one is raised, so a module has nothing to register.
#pragma once
#include <Python.h>

#include <chrono>
#include <exception>
#include <new>

#include "bindings/at_end.hpp"
#include "bindings/at_fork.hpp"
#include "errors.hpp"
#include "interrupt.hpp"

namespace wfsa {

inline void raise_as(const char* name, const char* message) {
    PyObject* module = PyImport_ImportModule("wfsa.errors");
    PyObject* kind = module ? PyObject_GetAttrString(module, name) : nullptr;
    if (kind) PyErr_SetString(kind, message);
    Py_XDECREF(kind);
    Py_XDECREF(module);
}

// Round a call that touches no Python object: from a millisecond on, other threads run beside it, or `at_once`. For
// less, to take the interpreter lock again may cost more than the call: 5 ms where another thread computes in Python.
class LetOthers {
  public:
    explicit LetOthers(bool at_once = false) : outer_(innermost_) {
        innermost_ = this;
        if (at_once) released_ = PyEval_SaveThread();
    }
    ~LetOthers() {
        innermost_ = outer_;
        if (!released_) return;
        AtEnd::before_lock();
        PyEval_RestoreThread(released_);
    }
    LetOthers(const LetOthers&) = delete;
    static void poll() {
        LetOthers* const of = innermost_;
        if (!of || of->released_ || std::chrono::steady_clock::now() - of->began_ < std::chrono::milliseconds(1)) return;
        of->released_ = PyEval_SaveThread();
    }

  private:
    static inline thread_local LetOthers* innermost_ = nullptr;
    LetOthers* const outer_;
    PyThreadState* released_ = nullptr;
    const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// With the interpreter lock: does the interpreter end, has a signal's handler raised, or is used up what this compilation
// may use?
inline bool has_to_stop() {
    if (AtEnd::stops_this_thread() || PyErr_CheckSignals() != 0) return true;
    PyObject* module = PyImport_ImportModule("wfsa.grammar.allowance");
    PyObject* none = module ? PyObject_CallMethod(module, "check", nullptr) : nullptr;
    Py_XDECREF(none);
    Py_XDECREF(module);
    return !none;
}

// For Cython, whose functions end where -1 is returned and Python's error is set.
inline int stop_where_asked() { return has_to_stop() ? -1 : 0; }

// The same with or without the lock; it is taken every 50 ms at most.
inline bool asked_to_stop() {
    LetOthers::poll();
    static thread_local auto last = std::chrono::steady_clock::now();
    const auto now = std::chrono::steady_clock::now();
    if (now - last < std::chrono::milliseconds(50)) return false;
    last = now;
    AtEnd::before_lock();
    const PyGILState_STATE lock = PyGILState_Ensure();
    const bool stop = has_to_stop();
    PyGILState_Release(lock);
    return stop;
}

// While one lives, what this thread compiles in this module can be stopped: by a signal, or for what it uses.
class AllowInterrupts {
  public:
    AllowInterrupts() : before_(interrupted) { interrupted = asked_to_stop; }
    ~AllowInterrupts() { interrupted = before_; }
    AllowInterrupts(const AllowInterrupts&) = delete;
    // Raises where this thread may not begin.  (Cython leaves out a variable that is never named again.)
    int hold() const { return AtEnd::stops_this_thread() ? -1 : 0; }

  private:
    const AtEnd::Work work_;
    bool (*before_)();
};

// Inside a catch block, with the interpreter lock.
inline void translate() {
    try {
        throw;
    } catch (const LimitExceeded& e) {
        raise_as("LimitError", e.what());
    } catch (const Undecided& e) {
        raise_as("GrammarError", e.what());
    } catch (const Unsupported& e) {
        raise_as("StateError", e.what());
    } catch (const BudgetTooSmall& e) {
        raise_as("BudgetError", e.what());
    } catch (const Damaged& e) {
        raise_as("ArtifactError", e.what());
    } catch (const Miss&) {
        raise_as("ArtifactError", "the compiled tables lack a needed entry");
    } catch (const Interrupted&) {  // Python's error is set: KeyboardInterrupt, SystemExit, what a handler raised, Exhausted
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
}

}  // namespace wfsa
