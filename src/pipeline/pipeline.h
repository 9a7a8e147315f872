/* pipeline.h - one source into one sink, until told to leave. */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include "base/cancel.h"
#include "config/config.h"

#include <stdatomic.h>

typedef struct PipelineOptions {
    Config *config;                /* loaded; resolved here, once the source's database is known */
    Arena *arena;                  /* the config's */
    bool once;                     /* up to the server's present WAL position, then end */
    bool serve;                    /* start the query server (query.listen) as a child process */
    const char *const *query_args; /* its command line behind the program, NULL-terminated */
    Cancel *cancel;                /* leave at once */
    Cancel *leaving;               /* set with `stop`: what only asks the source ends at once */
    const atomic_bool *stop;       /* a wish to leave: commit what is whole, acknowledge, end */
    atomic_bool *graceful; /* set once there is something to finish; before that, leave at once */
} PipelineOptions;

/* True when it ended as wished. ERR_INPUT: a person has to act; ERR_TRANSIENT: gave up on something
 * that may pass (only with once). Logs its story at INFO. */
bool pipeline_run(const PipelineOptions *options, Error *err) WARN_UNUSED;

#endif
