// The functions that Python calls: loops over columns and vectors of rows, on torch's threads.

#include "density.h"
#include "mass.h"
#include "quantile.h"
#include "trunk.h"

namespace nits {

// Weights θ of PNNs, shape (columns, P, rows) with neighbouring rows side by side, and the ends A
// and B of each column's support.
template <class T>
struct Columns {
    const T* theta;
    int64_t column_stride, weight_stride;
    const T *A, *B;
    int64_t columns, weights, rows;
    const int64_t* hidden;
    int64_t depth, threads;
};

// Calls work(worker, θ, column, offset) for every vector of rows, where `offset` is its place in an
// array of shape (columns, rows). Each thread has a worker of its own.
template <class Worker, class T, class Work>
void for_each_vector(const Columns<T>& pnns, Work work) {
    constexpr int lanes = Lanes<T>::count;
    const int64_t vectors = (pnns.rows + lanes - 1) / lanes;
#pragma omp parallel num_threads(int(pnns.threads))
    {
        const FlushSubnormals flush;
        Worker worker(pnns.hidden, int(pnns.depth));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < pnns.columns * vectors; ++i) {
            const int64_t column = i / vectors, row = i % vectors * lanes;
            const int count = int(pnns.rows - row < lanes ? pnns.rows - row : lanes);
            const T* start = pnns.theta + column * pnns.column_stride + row;
            const Rows<T> theta{start, pnns.weight_stride, count};
            work(worker, theta, column, column * pnns.rows + row);
        }
    }
}

// Writes the gradient of a worker's last result, for one vector of rows, to `gradient`, shape
// (columns, P, rows).
template <class T, class Worker>
void write_gradient(Worker& worker, const Columns<T>& pnns, int64_t column, int64_t offset,
                    int count, T* gradient) {
    const T A = pnns.A[column], B = pnns.B[column];
    T* to = gradient + offset + column * (pnns.weights - 1) * pnns.rows;
    const bool aligned = reinterpret_cast<uintptr_t>(gradient) % register_bytes == 0;
    if (aligned && pnns.rows % Lanes<T>::count == 0) {
        worker.gradient(A, B, [&](int row, const V<T>& v) { stream<T>(to + row * pnns.rows, v); });
    } else {
        worker.gradient(A, B,
                        [&](int row, const V<T>& v) { store<T>(to + row * pnns.rows, v, count); });
    }
}

// x, value: (columns, rows). gradient: (columns, P, rows), or null if it is not needed.
template <class T>
void log_density(const Columns<T>& pnns, const T* x, T* value, T* gradient) {
    for_each_vector<Density<T>>(
        pnns, [&](Density<T>& density, const Rows<T>& theta, int64_t column, int64_t offset) {
            const V<T> point = load<T>(x + offset, theta.count);
            const V<T> result = density.log_density(theta, point, pnns.A[column], pnns.B[column]);
            store<T>(value + offset, result, theta.count);
            if (gradient) write_gradient<T>(density, pnns, column, offset, theta.count, gradient);
        });
}

// s, t, value: (columns, rows). gradient: as above.
template <class T>
void log_mass(const Columns<T>& pnns, const T* s, const T* t, T* value, T* gradient) {
    for_each_vector<Mass<T>>(
        pnns, [&](Mass<T>& mass, const Rows<T>& theta, int64_t column, int64_t offset) {
            const V<T> start = load<T>(s + offset, theta.count);
            const V<T> end = load<T>(t + offset, theta.count);
            const V<T> result = mass.log_mass(theta, start, end, pnns.A[column], pnns.B[column]);
            store<T>(value + offset, result, theta.count);
            if (gradient) write_gradient<T>(mass, pnns, column, offset, theta.count, gradient);
        });
}

// u, x, open: (columns, rows). `open` becomes one where the root was not found, zero elsewhere.
template <class T>
void quantile(const Columns<T>& pnns, const T* u, T* x, T* open) {
    for_each_vector<Quantile<T>>(
        pnns, [&](Quantile<T>& quantile, const Rows<T>& theta, int64_t column, int64_t offset) {
            I<T> left;
            const V<T> p = load<T>(u + offset, theta.count);
            const V<T> result = quantile.find(theta, p, pnns.A[column], pnns.B[column], &left);
            store<T>(x + offset, result, theta.count);
            store<T>(open + offset, left ? broadcast<T>(T(1)) : V<T>{}, theta.count);
        });
}

}  // namespace nits

extern "C" {
void log_density_float32(const nits::Columns<float>* pnns, const float* x, float* value,
                         float* gradient) {
    nits::log_density<float>(*pnns, x, value, gradient);
}

void log_density_float64(const nits::Columns<double>* pnns, const double* x, double* value,
                         double* gradient) {
    nits::log_density<double>(*pnns, x, value, gradient);
}

void log_mass_float32(const nits::Columns<float>* pnns, const float* s, const float* t,
                      float* value, float* gradient) {
    nits::log_mass<float>(*pnns, s, t, value, gradient);
}

void log_mass_float64(const nits::Columns<double>* pnns, const double* s, const double* t,
                      double* value, double* gradient) {
    nits::log_mass<double>(*pnns, s, t, value, gradient);
}

void quantile_float32(const nits::Columns<float>* pnns, const float* u, float* x, float* open) {
    nits::quantile<float>(*pnns, u, x, open);
}

void quantile_float64(const nits::Columns<double>* pnns, const double* u, double* x, double* open) {
    nits::quantile<double>(*pnns, u, x, open);
}

int64_t lanes_float32() { return nits::Lanes<float>::count; }
int64_t lanes_float64() { return nits::Lanes<double>::count; }

#define TRUNK(T, NAME)                                                                             \
    void signs_##NAME(const nits::Pixels* p, const T* x, T* both) { nits::signs<T>(*p, x, both); } \
    void signs_backward_##NAME(const nits::Pixels* p, const T* both, const T* d, T* dx) {          \
        nits::signs_backward<T>(*p, both, d, dx);                                                  \
    }                                                                                              \
    void gate_##NAME(const nits::Pixels* p, const T* x, const T* both, T* y) {                     \
        nits::gate<T>(*p, x, both, y);                                                             \
    }                                                                                              \
    void gate_backward_##NAME(const nits::Pixels* p, const T* both, const T* dy, T* d) {           \
        nits::gate_backward<T>(*p, both, dy, d);                                                   \
    }                                                                                              \
    void pointwise_##NAME(const nits::Pixels* p, int64_t outputs, const T* x, const T* w, T* y,    \
                          int64_t add) {                                                           \
        nits::pointwise<T>(*p, outputs, x, w, y, add != 0);                                        \
    }                                                                                              \
    void pointwise_backward_##NAME(const nits::Pixels* p, int64_t outputs, const T* x,             \
                                   const T* dy, T* dw) {                                           \
        nits::pointwise_backward<T>(*p, outputs, x, dy, dw);                                       \
    }                                                                                              \
    void convolution_##NAME(const nits::Convolution* c, const T* x, const T* u, const T* bias,     \
                            const T* plus, T* y) {                                                 \
        nits::convolution<T>(*c, x, u, bias, plus, y);                                             \
    }                                                                                              \
    void convolution_backward_##NAME(const nits::Convolution* c, const T* x, const T* dy,          \
                                     const T* v, T* dx, T* du) {                                   \
        nits::convolution_backward<T>(*c, x, dy, v, dx, du);                                       \
    }                                                                                              \
    void place_##NAME(const nits::Placing* p, const T* raw, const T* bias, const T* guess,         \
                      T* theta) {                                                                  \
        nits::place<T>(*p, raw, bias, guess, theta);                                               \
    }                                                                                              \
    void place_backward_##NAME(const nits::Placing* p, const T* raw, const T* bias,                \
                               const T* gradient, T* draw, T* dbias, T* dguess) {                  \
        nits::place_backward<T>(*p, raw, bias, gradient, draw, dbias, dguess);                     \
    }

TRUNK(float, float32)
TRUNK(double, float64)
}
