#include <stdio.h>

int
main(void)
{
    puts("walberg " WALBERG_VERSION);
    return 0;
}
