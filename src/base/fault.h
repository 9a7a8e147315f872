/* fault.h - named places where a test can make a step fail or the process die.
 *
 *     TRY(FAULT("store.put", err));
 *
 * WALBERG_FAULT=<mode>:<n>[:<name prefix>] with mode fail, crash or list: the nth point reached
 * (whose name starts with the prefix; without one, of whatever name) fails with ERR_TRANSIENT or
 * ends the process with _exit(137), and stderr has a line "fault at <name>"; list prints each name
 * to stderr instead. Up to four of them, separated by commas, each with a count of its own.
 * Compiled out of release builds (-Dfault_points=false). */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include "base/error.h"

#ifdef WALBERG_FAULT_POINTS
bool fault_point(const char *name, Error *err) WARN_UNUSED;
#define FAULT(name, err) fault_point((name), (err))
#else
#define FAULT(name, err) ((void) (err), true)
#endif

#endif
