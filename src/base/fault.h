/* fault.h - named places where a test can make a step fail or the process die.
 *
 *     TRY(FAULT("store.put", err));
 *
 * WALBERG_FAULT=<mode>:<n>[:<name prefix>] with mode fail, crash or list: the nth point reached
 * (whose name starts with the prefix; without one, of whatever name) fails with ERR_TRANSIENT or
 * ends the process with _exit(137), and stderr has a line "fault at <name>"; list prints each name
 * to stderr instead. Up to four of them, separated by commas, each with a count of its own.
 *
 *     int64_t most = LIMIT("copy.range_bytes", 1 << 30);
 *
 * WALBERG_LIMITS=<name>=<number>[,...] makes a limit of that name another one, so that a small
 * table meets it. Both are compiled out of release builds (-Dfault_points=false). */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include "base/error.h"

#include <stdint.h>

#ifdef WALBERG_FAULT_POINTS
bool fault_point(const char *name, Error *err) WARN_UNUSED;
#define FAULT(name, err) fault_point((name), (err))
int64_t fault_limit(const char *name, int64_t usual);
#define LIMIT(name, usual) fault_limit((name), (usual))
#else
#define LIMIT(name, usual) ((int64_t) (usual))
#define FAULT(name, err)   ((void) (err), true)
#endif

#endif
