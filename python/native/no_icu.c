/* libxml2 asks ICU for encodings that neither it nor the C library's iconv knows, and ICU's
 * tables are 31 MB. In the wheel, libxml2 gets this in their place: no converter can be opened,
 * and such a file is refused as one of an unknown encoding.
 *
 * ICU's names end in its version, which the build passes as -DICU=72.
 */
#define JOIN(name, version)  name##_##version
#define NAMED(name, version) JOIN(name, version)
#define OF_ICU(name)         NAMED(name, ICU)

enum { FILE_ACCESS_ERROR = 4 }; /* of ICU: no such table */

void *OF_ICU(ucnv_open)(const char *encoding, int *error);
void *OF_ICU(ucnv_open)(const char *encoding, int *error)
{
    (void)encoding;
    *error = FILE_ACCESS_ERROR;
    return 0;
}

/* Never called: there is no converter. */
void OF_ICU(ucnv_close)(void *converter);
void OF_ICU(ucnv_close)(void *converter) { (void)converter; }

#define NEVER(name)          \
    void OF_ICU(name)(void); \
    void OF_ICU(name)(void) {}
NEVER(ucnv_convertEx)
NEVER(ucnv_setFromUCallBack)
NEVER(ucnv_setToUCallBack)
NEVER(UCNV_FROM_U_CALLBACK_STOP)
NEVER(UCNV_TO_U_CALLBACK_STOP)
