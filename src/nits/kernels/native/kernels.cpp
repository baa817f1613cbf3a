// What Python calls: columns and rows, a vector of rows at a time, on the threads that torch uses.

#include "density.h"
#include "mass.h"
#include "quantile.h"

namespace nits {

// Weights θ of PNNs: (columns, P, rows), rows next to each other, and the ends of each column's support.
template <class T>
struct Columns {
    const T* theta;
    int64_t column_stride, weight_stride;
    const T *low, *high;
    int64_t columns, weights, rows;
    const int64_t* hidden;
    int64_t depth, threads;
};

// Calls work(worker, column, row, count) for every vector of rows, each thread with a worker of its own.
template <class Worker, class T, class Work>
void everywhere(const Columns<T>& all, Work work) {
    constexpr int lanes = Lanes<T>::count;
    const int64_t tiles = (all.rows + lanes - 1) / lanes;
#pragma omp parallel num_threads(int(all.threads))
    {
        const Flushed flushed;
        Worker worker(all.hidden, int(all.depth));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < all.columns * tiles; ++i) {
            const int64_t column = i / tiles, row = i % tiles * lanes;
            const int count = int(all.rows - row < lanes ? all.rows - row : lanes);
            const T* start = all.theta + column * all.column_stride + row;
            work(worker, Rows<T>{start, all.weight_stride, count}, column, column * all.rows + row);
        }
    }
}

// Writes the gradient of a worker's last result to slope, (columns, P, rows), at one vector of rows.
template <class T, class Worker>
void write_gradient(Worker& worker, const Columns<T>& all, int64_t column, int64_t at, int count, T* slope) {
    const bool aligned = reinterpret_cast<uintptr_t>(slope) % 64 == 0 && all.rows % Lanes<T>::count == 0;
    const T low = all.low[column], high = all.high[column];
    T* to = slope + at + column * (all.weights - 1) * all.rows;
    if (aligned) {
        worker.gradient(low, high, [&](int row, const V<T>& v) { stream<T>(to + row * all.rows, v); });
    } else {
        worker.gradient(low, high, [&](int row, const V<T>& v) { store<T>(to + row * all.rows, v, count); });
    }
}

// x, value: (columns, rows). slope: (columns, P, rows), or null if no gradient is wanted.
template <class T>
void log_density(const Columns<T>& all, const T* x, T* value, T* slope) {
    everywhere<Density<T>>(all, [&](Density<T>& density, const Rows<T>& theta, int64_t column, int64_t at) {
        const V<T> point = load<T>(x + at, theta.count);
        store<T>(value + at, density.log_density(theta, point, all.low[column], all.high[column]), theta.count);
        if (slope) write_gradient<T>(density, all, column, at, theta.count, slope);
    });
}

// s, t, value: (columns, rows). slope: as above.
template <class T>
void log_mass(const Columns<T>& all, const T* s, const T* t, T* value, T* slope) {
    everywhere<Mass<T>>(all, [&](Mass<T>& mass, const Rows<T>& theta, int64_t column, int64_t at) {
        const V<T> start = load<T>(s + at, theta.count), end = load<T>(t + at, theta.count);
        store<T>(value + at, mass.log_mass(theta, start, end, all.low[column], all.high[column]), theta.count);
        if (slope) write_gradient<T>(mass, all, column, at, theta.count, slope);
    });
}

// u, x, open: (columns, rows); `open` is one where the root was not found, zero elsewhere.
template <class T>
void quantile(const Columns<T>& all, const T* u, T* x, T* open) {
    everywhere<Quantile<T>>(all, [&](Quantile<T>& quantile, const Rows<T>& theta, int64_t column, int64_t at) {
        I<T> left;
        const V<T> p = load<T>(u + at, theta.count);
        store<T>(x + at, quantile.find(theta, p, all.low[column], all.high[column], &left), theta.count);
        store<T>(open + at, left ? nits::all<T>(T(1)) : V<T>{}, theta.count);
    });
}

}  // namespace nits

extern "C" {
void log_density_float32(const nits::Columns<float>* all, const float* x, float* value, float* slope) {
    nits::log_density<float>(*all, x, value, slope);
}

void log_density_float64(const nits::Columns<double>* all, const double* x, double* value, double* slope) {
    nits::log_density<double>(*all, x, value, slope);
}

void log_mass_float32(const nits::Columns<float>* all, const float* s, const float* t, float* value, float* slope) {
    nits::log_mass<float>(*all, s, t, value, slope);
}

void log_mass_float64(const nits::Columns<double>* all, const double* s, const double* t, double* value,
                      double* slope) {
    nits::log_mass<double>(*all, s, t, value, slope);
}

void quantile_float32(const nits::Columns<float>* all, const float* u, float* x, float* open) {
    nits::quantile<float>(*all, u, x, open);
}

void quantile_float64(const nits::Columns<double>* all, const double* u, double* x, double* open) {
    nits::quantile<double>(*all, u, x, open);
}
}
