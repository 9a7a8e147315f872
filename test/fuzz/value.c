#include <stddef.h>
#include <stdint.h>
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    (void) bytes;
    (void) size;
    return 0;
}
