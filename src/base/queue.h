/* queue.h - a bounded queue of pointers between threads.
 *
 * The bound is the back pressure that keeps memory inside its budget. A producer that must not
 * block (the stream reader answers keepalives while the sink is busy) uses queue_offer() and
 * queue_wait_room(). After queue_close() offers fail and takes drain what is left, then return
 * NULL. */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Queue Queue;

Queue *queue_new(size_t capacity);
void queue_free(Queue *queue); /* what is left inside is the owner's business */

/* False when the queue is full or closed. */
bool queue_offer(Queue *queue, void *item);
/* Blocks while full; false when closed. */
bool queue_put(Queue *queue, void *item);
/* Wait up to ms for room; true when there is some or the queue is closed. */
bool queue_wait_room(Queue *queue, int64_t ms);
/* Next item; NULL when closed and empty. Blocks. */
void *queue_take(Queue *queue);
/* Like queue_take, but waits at most ms; *out_timeout says which kind of NULL it is. */
void *queue_take_for(Queue *queue, int64_t ms, bool *out_timeout);
void queue_close(Queue *queue);
bool queue_closed(Queue *queue);

#endif
