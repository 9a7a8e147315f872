/* testing.h - cmocka with its includes in the right order, and a few words of ours. */
#ifndef TESTING_H
#define TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* A call that must succeed: shows the error when it does not. `err` must be in scope. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (!(call)) {                                                                             \
            print_error("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, err.msg);                    \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* A call that must fail with this kind. */
#define FAILS(call, wanted)                                                                        \
    do {                                                                                           \
        assert_false(call);                                                                        \
        if (err.kind != (wanted)) {                                                                \
            print_error("%s:%d: %s: kind %d: %s\n", __FILE__, __LINE__, #call, (int) err.kind,     \
                        err.msg);                                                                  \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

#endif
