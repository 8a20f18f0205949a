/* Activation functions by name, with the alpha and beta that they have when the attributes give
 * none: those of the ONNX operators of the same name; where ONNX says nothing, and for
 * ThresholdedRelu, zero, as in ONNX Runtime.
 */
#include "ref_product.h"

#include <math.h>
#include <strings.h>

static double f_relu(double x, double a, double b)
{
    (void)a, (void)b;
    return x > 0 ? x : 0;
}
static double f_tanh(double x, double a, double b)
{
    (void)a, (void)b;
    return tanh(x);
}
static double f_sigmoid(double x, double a, double b)
{
    (void)a, (void)b;
    return 1 / (1 + exp(-x));
}
static double f_affine(double x, double a, double b) { return a * x + b; }
static double f_leaky(double x, double a, double b)
{
    (void)b;
    return x >= 0 ? x : a * x;
}
static double f_threshold(double x, double a, double b)
{
    (void)b;
    return x > a ? x : 0;
}
static double f_scaled_tanh(double x, double a, double b) { return a * tanh(b * x); }
static double f_hard(double x, double a, double b) { return fmin(fmax(a * x + b, 0), 1); }
static double f_elu(double x, double a, double b)
{
    (void)b;
    return x >= 0 ? x : a * expm1(x);
}
static double f_softsign(double x, double a, double b)
{
    (void)a, (void)b;
    return x / (1 + fabs(x));
}
static double f_softplus(double x, double a, double b)
{
    (void)a, (void)b;
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

bool ot_activation_find(const char *name, ot_activation *out)
{
    static const struct {
        const char *name;
        ot_activation act;
    } table[] = {
        {"Relu", {f_relu, 0, 0, false, false}},
        {"Tanh", {f_tanh, 0, 0, false, false}},
        {"Sigmoid", {f_sigmoid, 0, 0, false, false}},
        {"Affine", {f_affine, 0, 0, true, true}},
        {"LeakyRelu", {f_leaky, 0.01, 0, true, false}},
        {"ThresholdedRelu", {f_threshold, 0, 0, true, false}},
        {"ScaledTanh", {f_scaled_tanh, 0, 0, true, true}},
        {"HardSigmoid", {f_hard, 0.2, 0.5, true, true}},
        {"Elu", {f_elu, 1, 0, true, false}},
        {"Softsign", {f_softsign, 0, 0, false, false}},
        {"Softplus", {f_softplus, 0, 0, false, false}},
    };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (strcasecmp(name, table[k].name) != 0) continue;
        *out = table[k].act;
        return true;
    }
    return false;
}
