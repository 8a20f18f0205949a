/* What examples/provider/run_provider.c uses of ONNX Runtime's header, which the wheels on PyPI do
 * not have: functions at their positions in the table, as of version 23. */
#ifndef ONNXRUNTIME_C_API_H
#define ONNXRUNTIME_C_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtEpDevice OrtEpDevice;
enum { ORT_LOGGING_LEVEL_WARNING = 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 };

#define SKIP(from, below) void *skipped_##from[(below) - (from)]

typedef struct OrtApi {
    SKIP(0, 2);
    const char *(*GetErrorMessage)(const OrtStatus *s);
    OrtStatus *(*CreateEnv)(int level, const char *id, OrtEnv **out);
    SKIP(4, 7);
    OrtStatus *(*CreateSession)(const OrtEnv *e, const char *path, const OrtSessionOptions *o,
                                OrtSession **out);
    SKIP(8, 9);
    OrtStatus *(*Run)(OrtSession *s, const OrtRunOptions *o, const char *const *in,
                      const OrtValue *const *x, size_t n_in, const char *const *out, size_t n_out,
                      OrtValue **y);
    OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **out);
    SKIP(11, 33);
    OrtStatus *(*SessionGetInputTypeInfo)(const OrtSession *s, size_t k, OrtTypeInfo **out);
    SKIP(34, 36);
    OrtStatus *(*SessionGetInputName)(const OrtSession *s, size_t k, OrtAllocator *a, char **out);
    OrtStatus *(*SessionGetOutputName)(const OrtSession *s, size_t k, OrtAllocator *a, char **out);
    SKIP(38, 48);
    OrtStatus *(*CreateTensorAsOrtValue)(OrtAllocator *a, const int64_t *dims, size_t rank,
                                         int type, OrtValue **out);
    SKIP(49, 51);
    OrtStatus *(*GetTensorMutableData)(OrtValue *v, void **out);
    SKIP(52, 55);
    OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *t,
                                           const OrtTensorTypeAndShapeInfo **out);
    SKIP(56, 61);
    OrtStatus *(*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo *s, size_t *out);
    OrtStatus *(*GetDimensions)(const OrtTensorTypeAndShapeInfo *s, int64_t *dims, size_t n);
    SKIP(63, 64);
    OrtStatus *(*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo *s, size_t *out);
    OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *v, OrtTensorTypeAndShapeInfo **out);
    SKIP(66, 76);
    OrtStatus *(*AllocatorFree)(OrtAllocator *a, void *p);
    SKIP(77, 78);
    OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **out);
    SKIP(79, 92);
    void (*ReleaseEnv)(OrtEnv *e);
    SKIP(93, 95);
    void (*ReleaseSession)(OrtSession *s);
    void (*ReleaseValue)(OrtValue *v);
    SKIP(97, 98);
    void (*ReleaseTypeInfo)(OrtTypeInfo *t);
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *s);
    void (*ReleaseSessionOptions)(OrtSessionOptions *o);
    SKIP(101, 301);
    OrtStatus *(*RegisterExecutionProviderLibrary)(OrtEnv *e, const char *name, const char *path);
    OrtStatus *(*UnregisterExecutionProviderLibrary)(OrtEnv *e, const char *name);
    OrtStatus *(*GetEpDevices)(const OrtEnv *e, const OrtEpDevice *const **out, size_t *n);
    OrtStatus *(*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions *o, OrtEnv *e,
                                                           const OrtEpDevice *const *devices,
                                                           size_t n, const char *const *keys,
                                                           const char *const *values,
                                                           size_t n_options);
    SKIP(305, 312);
    const char *(*EpDevice_EpName)(const OrtEpDevice *d);
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

#endif
