// The layers of causal convolutional networks, on torch's threads. Features of a pixel lie side by side.

#pragma once

#include "causal.h"

namespace nits {

// Pixels with as many features each.
struct Pixels {
    int64_t count, features, threads;
};

// Calls work(pixel, first feature, features) for every vector of features.
template <class T, class Work>
void for_each_feature(const Pixels& pixels, Work work) {
    constexpr int lanes = Lanes<T>::count;
#pragma omp parallel for schedule(static) num_threads(int(pixels.threads))
    for (int64_t i = 0; i < pixels.count; ++i) {
        for (int64_t c = 0; c < pixels.features; c += lanes) {
            work(i, c, int(std::min<int64_t>(lanes, pixels.features - c)));
        }
    }
}

// The derivative of y = elu(x), which y tells: 1 for y > 0, y + 1 elsewhere.
template <class T>
inline V<T> elu_slope(V<T> y) {
    return minimum<T>(y, V<T>{}) + T(1);
}

// both: elu(x) and elu(−x) side by side, twice as many features. One of them is |x|, the other
// e⁻|ˣ| − 1.
template <class T>
void signs(const Pixels& pixels, const T* x, T* both) {
    const int64_t features = pixels.features;
    for_each_feature<T>(pixels, [&](int64_t i, int64_t c, int n) {
        const V<T> v = load<T>(x + i * features + c, n);
        T* to = both + 2 * i * features + c;
        const V<T> size = absolute<T>(v), below = -kappa<T>(size);
        store<T>(to, v > T(0) ? size : below, n);
        store<T>(to + features, v > T(0) ? below : size, n);
    });
}

template <class T>
void signs_backward(const Pixels& pixels, const T* both, const T* gradient, T* dx) {
    const int64_t features = pixels.features;
    for_each_feature<T>(pixels, [&](int64_t i, int64_t c, int n) {
        const T *y = both + 2 * i * features + c, *dy = gradient + 2 * i * features + c;
        const V<T> plus = load<T>(dy, n) * elu_slope<T>(load<T>(y, n));
        const V<T> minus = load<T>(dy + features, n) * elu_slope<T>(load<T>(y + features, n));
        store<T>(dx + i * features + c, plus - minus, n);
    });
}

// σ(b) = 1 / (1 + e⁻ᵇ), by the exponential that does not overflow.
template <class T>
inline V<T> logistic(V<T> b) {
    const V<T> e = exp<T>(-absolute<T>(b));
    return (b > T(0) ? broadcast<T>(T(1)) : e) / (T(1) + e);
}

// y = x + a σ(b), where each pixel has a and b side by side.
template <class T>
void gate(const Pixels& pixels, const T* x, const T* both, T* y) {
    const int64_t features = pixels.features;
    for_each_feature<T>(pixels, [&](int64_t i, int64_t c, int n) {
        const T* from = both + 2 * i * features + c;
        const V<T> open = logistic<T>(load<T>(from + features, n));
        const V<T> found = load<T>(x + i * features + c, n) + load<T>(from, n) * open;
        store<T>(y + i * features + c, found, n);
    });
}

template <class T>
void gate_backward(const Pixels& pixels, const T* both, const T* dy, T* gradient) {
    const int64_t features = pixels.features;
    for_each_feature<T>(pixels, [&](int64_t i, int64_t c, int n) {
        const T* from = both + 2 * i * features + c;
        T* to = gradient + 2 * i * features + c;
        const V<T> open = logistic<T>(load<T>(from + features, n));
        const V<T> d = load<T>(dy + i * features + c, n);
        store<T>(to, d * open, n);
        store<T>(to + features, d * load<T>(from, n) * open * (T(1) - open), n);
    });
}

// Adds the parts that threads have computed, in the order of the threads, to a result of zeros.
template <class T, class Work>
void summed(int64_t threads, int64_t size, T* result, Work work) {
    std::vector<std::vector<T>> parts(threads);
#pragma omp parallel for schedule(static, 1) num_threads(int(threads))
    for (int64_t k = 0; k < threads; ++k) {
        if (k) parts[k].assign(size, T(0));
        work(k, k ? parts[k].data() : result);
    }
    for (int64_t k = 1; k < threads; ++k) {
        for (int64_t i = 0; i < size; ++i) result[i] += parts[k][i];
    }
}

constexpr int64_t pixels_at_once = 64;

// y = x w, or y + x w: w has shape (features, whole vectors of outputs).
template <class T>
void pointwise(const Pixels& pixels, int64_t outputs, const T* x, const T* w, T* y, bool add) {
    const int64_t features = pixels.features, tall = whole_vectors<T>(outputs) * Lanes<T>::count;
#pragma omp parallel for schedule(static) num_threads(int(pixels.threads))
    for (int64_t i = 0; i < pixels.count; i += pixels_at_once) {
        const int64_t count = std::min(pixels_at_once, pixels.count - i);
        product<T>({x + i * features, features, 1}, {w, tall}, count, features,
                   {y + i * outputs, outputs}, outputs, add ? Start::there : Start::zero);
    }
}

// dw = xᵀ dy, shape (features, whole vectors of outputs), where dy has whole vectors of outputs.
template <class T>
void pointwise_backward(const Pixels& pixels, int64_t outputs, const T* x, const T* dy, T* dw) {
    const int64_t features = pixels.features, tall = whole_vectors<T>(outputs) * Lanes<T>::count;
    summed<T>(pixels.threads, features * tall, dw, [&](int64_t k, T* part) {
        const int64_t end = pixels.count * (k + 1) / pixels.threads;
        for (int64_t i = pixels.count * k / pixels.threads; i < end; i += pixels_at_once) {
            const int64_t count = std::min(pixels_at_once, end - i);
            product<T>({x + i * features, 1, features}, {dy + i * tall, tall}, features, count,
                       {part, tall}, tall, Start::there);
        }
    });
}

template <class T, int Taps>
void convolve(const Convolution& size, const T* x, const T* u, const T* bias, const T* plus, T* y) {
    const int64_t area = size.height * size.width;
#pragma omp parallel num_threads(int(size.threads))
    {
        Tiles<T, Taps> tiles(size);
        const int64_t parts = (tiles.count() + tiles_at_once - 1) / tiles_at_once;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < size.count * parts; ++k) {
            const int64_t image = k / parts * area;
            tiles.forward(x + image * size.inputs, u, bias,
                          plus ? plus + image * size.outputs : nullptr, y + image * size.outputs,
                          k % parts * tiles_at_once);
        }
    }
}

// du holds zeros; dx or du may be missing.
template <class T, int Taps>
void convolve_backward(const Convolution& size, const T* x, const T* dy, const T* v, T* dx, T* du) {
    const int64_t area = size.height * size.width;
    const int64_t tall = whole_vectors<T>(size.outputs) * Lanes<T>::count;
    const int64_t weights = du ? Tiles<T, Taps>::points * size.inputs * tall : 0;
    summed<T>(size.threads, weights, du, [&](int64_t k, T* part) {
        Tiles<T, Taps> tiles(size);
        for (int64_t n = size.count * k / size.threads; n < size.count * (k + 1) / size.threads; ++n) {
            const int64_t image = n * area;
            if (dx) std::fill_n(dx + image * size.inputs, area * size.inputs, T(0));
            for (int64_t first = 0; first < tiles.count(); first += tiles_at_once) {
                tiles.backward(x + image * size.inputs, dy + image * size.outputs, v,
                               dx ? dx + image * size.inputs : nullptr, du ? part : nullptr, first);
            }
        }
    });
}

template <class T>
void convolution(const Convolution& size, const T* x, const T* u, const T* bias, const T* plus,
                 T* y) {
    (size.taps == 2 ? convolve<T, 2> : convolve<T, 3>)(size, x, u, bias, plus, y);
}

template <class T>
void convolution_backward(const Convolution& size, const T* x, const T* dy, const T* v, T* dx,
                          T* du) {
    (size.taps == 2 ? convolve_backward<T, 2> : convolve_backward<T, 3>)(size, x, dy, v, dx, du);
}

// Weights of PNNs as a network leaves them and as PNNs take them. The first `units` of them are the
// A of equation (1), the next as many offsets β of centres from a guess r, b = r + β / W, (20).
struct Placing {
    int64_t images, columns, weights, units, threads;
};

// −log W = A / √(1 + (A/20)²) and its derivative.
template <class T>
inline V<T> log_width(V<T> a, V<T>* slope) {
    const V<T> root = rsqrt<T>(T(1) + a * a * T(1.0 / 400));
    *slope = root * root * root;
    return a * root;
}

// raw: (images, columns, weights). bias: (columns, weights). guess: (images, columns).
// theta: (columns, weights, images).
template <class T>
void place(const Placing& size, const T* raw, const T* bias, const T* guess, T* theta) {
    const int64_t images = size.images, weights = size.weights, units = size.units;
#pragma omp parallel for schedule(static) num_threads(int(size.threads))
    for (int64_t s = 0; s < size.columns; ++s) {
        T* to = theta + s * weights * images;
        for (int64_t n = 0; n < images; ++n) {
            const T *from = raw + (n * size.columns + s) * weights, *plus = bias + s * weights;
            for (int64_t p = 0; p < weights; ++p) to[p * images + n] = from[p] + plus[p];
            for (int64_t p = 0; p < units; p += Lanes<T>::count) {
                const int count = int(std::min<int64_t>(Lanes<T>::count, units - p));
                const V<T> a = load<T>(from + p, count) + load<T>(plus + p, count);
                const V<T> beta =
                    load<T>(from + units + p, count) + load<T>(plus + units + p, count);
                V<T> slope;
                const V<T> centre =
                    beta * exp<T>(log_width<T>(a, &slope)) + guess[n * size.columns + s];
                for (int i = 0; i < count; ++i) to[(units + p + i) * images + n] = centre[i];
            }
        }
    }
}

// gradient: as theta. draw: as raw. dbias: as bias. dguess: as guess, or missing.
template <class T>
void place_backward(const Placing& size, const T* raw, const T* bias, const T* gradient, T* draw,
                    T* dbias, T* dguess) {
    const int64_t images = size.images, weights = size.weights, units = size.units;
#pragma omp parallel for schedule(static) num_threads(int(size.threads))
    for (int64_t s = 0; s < size.columns; ++s) {
        const T *d = gradient + s * weights * images, *plus = bias + s * weights;
        T* sum = dbias + s * weights;
        std::fill_n(sum, weights, T(0));
        for (int64_t n = 0; n < images; ++n) {
            const T* from = raw + (n * size.columns + s) * weights;
            T *to = draw + (n * size.columns + s) * weights, total = 0;
            for (int64_t p = 0; p < weights; ++p) to[p] = d[p * images + n];
            for (int64_t p = 0; p < units; ++p) total += to[units + p];
            for (int64_t p = 0; p < units; p += Lanes<T>::count) {
                const int count = int(std::min<int64_t>(Lanes<T>::count, units - p));
                const V<T> a = load<T>(from + p, count) + load<T>(plus + p, count);
                const V<T> beta =
                    load<T>(from + units + p, count) + load<T>(plus + units + p, count);
                V<T> slope;
                const V<T> width = exp<T>(log_width<T>(a, &slope));
                const V<T> moved = load<T>(to + units + p, count) * width;
                store<T>(to + units + p, moved, count);
                store<T>(to + p, load<T>(to + p, count) + moved * beta * slope, count);
            }
            for (int64_t p = 0; p < weights; ++p) sum[p] += to[p];
            if (dguess) dguess[n * size.columns + s] = total;
        }
    }
}

}  // namespace nits
