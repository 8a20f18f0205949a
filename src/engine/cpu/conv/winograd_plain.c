/* Winograd convolutions without any instruction set: the compiler makes of vectors of 8 what the
 * machine has. */
#define LANES 8
#define TARGET
#define MADD(a, b, c)   ((a) * (b) + (c))
#define SPREAD(p)       ((vec){0} + *(p))
#define PICK(yes, a, b) ((vec)(((bits)(a) & (bits)(yes)) | ((bits)(b) & ~(bits)(yes))))
#define LARGER(a, b)    PICK((a) > (b), a, b)
#define SMALLER(a, b)   PICK((a) < (b), a, b)
#define ROWS_OF_TWO     6
#define CODE            ot_wino_plain
#define NAME            "any machine"
#include "winograd_code.h"
