/* A driver library that answers what FAKE_CUDA says: a number for cuInit, or "hang", or "segv". */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *asked(void)
{
    const char *value = getenv("FAKE_CUDA");
    return value ? value : "0";
}

int cuInit(unsigned int flags)
{
    (void)flags;
    if (strcmp(asked(), "hang") == 0)
        for (;;)
            sleep(1000);
    if (strcmp(asked(), "segv") == 0)
        *(volatile int *)8 = 1;
    return atoi(asked());
}

int cuDriverGetVersion(int *version)
{
    const char *value = getenv("FAKE_CUDA_VERSION");
    *version = value ? atoi(value) : 12040;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}
