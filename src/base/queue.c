#include "base/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/xalloc.h"

struct Queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any change: few waiters, so one condition is enough */
    size_t capacity;
    size_t head;
    size_t count;
    bool closed;
    void **items;
};

Queue *
queue_new(size_t capacity)
{
    Queue *queue = xcalloc(1, sizeof *queue);
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, &attr);
    pthread_condattr_destroy(&attr);
    queue->capacity = capacity;
    queue->items = xcalloc(capacity, sizeof *queue->items);
    return queue;
}

void
queue_free(Queue *queue)
{
    if (queue == NULL)
        return;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue->items);
    free(queue);
}

/* Both with the lock held. */
static bool
push(Queue *queue, void *item)
{
    if (queue->closed || queue->count == queue->capacity)
        return false;
    queue->items[(queue->head + queue->count++) % queue->capacity] = item;
    pthread_cond_broadcast(&queue->changed);
    return true;
}

static void *
pop(Queue *queue)
{
    if (queue->count == 0)
        return NULL;

    void *item = queue->items[queue->head];

    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    pthread_cond_broadcast(&queue->changed);
    return item;
}

bool
queue_offer(Queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);

    bool done = push(queue, item);

    pthread_mutex_unlock(&queue->lock);
    return done;
}

bool
queue_put(Queue *queue, void *item)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->capacity)
        pthread_cond_wait(&queue->changed, &queue->lock);

    bool done = push(queue, item);

    pthread_mutex_unlock(&queue->lock);
    return done;
}

static struct timespec
deadline_after(int64_t ms)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t) (ms / 1000);
    ts.tv_nsec += (long) (ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

bool
queue_wait_room(Queue *queue, int64_t ms)
{
    struct timespec deadline = deadline_after(ms);
    int rc = 0;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == queue->capacity && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&queue->changed, &queue->lock, &deadline);

    bool room = queue->closed || queue->count < queue->capacity;

    pthread_mutex_unlock(&queue->lock);
    return room;
}

void *
queue_take(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0)
        pthread_cond_wait(&queue->changed, &queue->lock);

    void *item = pop(queue);

    pthread_mutex_unlock(&queue->lock);
    return item;
}

void *
queue_take_for(Queue *queue, int64_t ms, bool *out_timeout)
{
    struct timespec deadline = deadline_after(ms);
    int rc = 0;

    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && queue->count == 0 && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&queue->changed, &queue->lock, &deadline);

    void *item = pop(queue);

    *out_timeout = item == NULL && !queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return item;
}

void
queue_close(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

bool
queue_closed(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);

    bool closed = queue->closed;

    pthread_mutex_unlock(&queue->lock);
    return closed;
}
