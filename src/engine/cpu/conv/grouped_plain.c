/* Grouped convolutions without any instruction set: the compiler makes of vectors of 8 what the
 * machine has. */
#define LANES 8
#define TARGET
#define MADD(a, b, c)     ((a) * (b) + (c))
#define CHOSEN(yes, a, b) ((vec)(((bits)(a) & (bits)(yes)) | ((bits)(b) & ~(bits)(yes))))
#define LARGER(a, b)      CHOSEN((a) > (b), a, b)
#define SMALLER(a, b)     CHOSEN((a) < (b), a, b)
#define LONGEST           8
#define CODE              ot_grouped_plain
#include "grouped_code.h"
