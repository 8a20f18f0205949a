/* Example: a program of ONNX Runtime's C interface that runs a model on the provider.
 *
 *   run_provider libonnxtile_ort.so MODEL.onnx [goal]
 *
 * The model has one input and one output of floats, of known dimensions; the input is filled with
 * 0.5. Prints the output's sum on the provider and on ONNX Runtime's own processor, which must
 * agree. Compile with ONNX Runtime's headers and library (1.23 or newer).
 */
#include <onnxruntime_c_api.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *ort;

static void check(OrtStatus *status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
    exit(1);
}

/* The provider's device; NULL: the library is not registered. */
static const OrtEpDevice *find_device(OrtEnv *env)
{
    const OrtEpDevice *const *devices;
    size_t n = 0;
    check(ort->GetEpDevices(env, &devices, &n));
    for (size_t k = 0; k < n; k++)
        if (strcmp(ort->EpDevice_EpName(devices[k]), "OnnxTile") == 0) return devices[k];
    return NULL;
}

static size_t elements(const OrtValue *v)
{
    OrtTensorTypeAndShapeInfo *info;
    size_t n = 0;
    check(ort->GetTensorTypeAndShape(v, &info));
    check(ort->GetTensorShapeElementCount(info, &n));
    ort->ReleaseTensorTypeAndShapeInfo(info);
    return n;
}

/* A tensor like the session's first input, all 0.5. */
static OrtValue *make_input(const OrtSession *s, OrtAllocator *memory)
{
    OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *info;
    int64_t dims[16];
    size_t rank = 0;
    OrtValue *x = NULL;
    void *data;
    check(ort->SessionGetInputTypeInfo(s, 0, &type));
    check(ort->CastTypeInfoToTensorInfo(type, &info));
    check(ort->GetDimensionsCount(info, &rank));
    check(ort->GetDimensions(info, dims, rank));
    check(ort->CreateTensorAsOrtValue(memory, dims, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
    ort->ReleaseTypeInfo(type);
    check(ort->GetTensorMutableData(x, &data));
    for (size_t k = 0; k < elements(x); k++) ((float *)data)[k] = 0.5f;
    return x;
}

static double run(OrtEnv *env, const OrtSessionOptions *options, const char *model)
{
    OrtSession *s;
    OrtAllocator *memory;
    OrtValue *y = NULL;
    char *in, *out;
    void *data;
    double sum = 0;
    check(ort->CreateSession(env, model, options, &s));
    check(ort->GetAllocatorWithDefaultOptions(&memory));
    check(ort->SessionGetInputName(s, 0, memory, &in));
    check(ort->SessionGetOutputName(s, 0, memory, &out));
    OrtValue *x = make_input(s, memory);
    check(ort->Run(s, NULL, (const char *const *)&in, (const OrtValue *const *)&x, 1,
                   (const char *const *)&out, 1, &y));
    check(ort->GetTensorMutableData(y, &data));
    for (size_t k = 0; k < elements(y); k++) sum += ((const float *)data)[k];
    ort->ReleaseValue(x);
    ort->ReleaseValue(y);
    check(ort->AllocatorFree(memory, in));
    check(ort->AllocatorFree(memory, out));
    ort->ReleaseSession(s);
    return sum;
}

int main(int argc, char **argv)
{
    const char *const keys[] = {"goal", "threads"};
    const char *const values[] = {argc > 3 ? argv[3] : "memory", "1"};
    OrtEnv *env;
    OrtSessionOptions *plain, *ours;
    if (argc < 3) {
        fprintf(stderr, "usage: run_provider libonnxtile_ort.so MODEL.onnx [goal]\n");
        return 2;
    }
    ort = OrtGetApiBase()->GetApi(23);
    if (!ort) return 1; /* ONNX Runtime has said why */
    check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "run_provider", &env));
    check(ort->RegisterExecutionProviderLibrary(env, "OnnxTile", argv[1]));
    const OrtEpDevice *device = find_device(env);
    if (!device) {
        fprintf(stderr, "no provider of that library\n");
        return 1;
    }
    check(ort->CreateSessionOptions(&plain));
    check(ort->CreateSessionOptions(&ours));
    check(ort->SessionOptionsAppendExecutionProvider_V2(ours, env, &device, 1, keys, values, 2));
    const double want = run(env, plain, argv[2]), got = run(env, ours, argv[2]);
    printf("%s: %.6g on the provider, %.6g without\n", argv[2], got, want);
    ort->ReleaseSessionOptions(plain);
    ort->ReleaseSessionOptions(ours);
    check(ort->UnregisterExecutionProviderLibrary(env, "OnnxTile"));
    ort->ReleaseEnv(env);
    return fabs(got - want) <= 1e-4 * fabs(want) + 1e-6 ? 0 : 1;
}
