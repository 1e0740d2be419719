// C++ exceptions as Python's: what each extension module names in `except +wfsa_translate`.
//
// The classes of wfsa.errors are looked up when one is raised, so a module has nothing to register.
#pragma once
#include <Python.h>

#include <exception>
#include <new>

#include "errors.hpp"

namespace wfsa {

inline void raise_as(const char* name, const char* message) {
    PyObject* module = PyImport_ImportModule("wfsa.errors");
    PyObject* kind = module ? PyObject_GetAttrString(module, name) : nullptr;
    if (kind) PyErr_SetString(kind, message);
    Py_XDECREF(kind);
    Py_XDECREF(module);
}

// Inside a catch block, with the interpreter lock.
inline void translate() {
    try {
        throw;
    } catch (const LimitExceeded& e) {
        raise_as("LimitError", e.what());
    } catch (const Undecided& e) {
        raise_as("GrammarError", e.what());
    } catch (const Damaged& e) {
        raise_as("ArtifactError", e.what());
    } catch (const Miss&) {
        raise_as("ArtifactError", "the compiled tables lack a needed entry");
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
}

}  // namespace wfsa
