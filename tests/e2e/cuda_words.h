/* Words of CUDA C for a compiler of C++ that does not know them: enough to check the syntax and
 * the types of generated programs. */
#include <math.h>
#include <string.h>

#define __global__
#define __device__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)
#define __syncthreads() ((void)0)

struct cuda_place {
    unsigned int x, y, z;
};
static const cuda_place threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0}, gridDim = {1, 1, 1};

struct half {
    unsigned short bits;
};
float __half2float(half x);
half __float2half_rn(float x);

static inline float __uint_as_float(unsigned int bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline unsigned int __float_as_uint(float x)
{
    unsigned int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
