// Causal convolutions of 2 × 3 and 2 × 2 taps by Winograd's minimal filtering.
//
// Of four neighbouring inputs x, four products m give three outputs y of two taps g, which one by one
// would cost six:
//
//     m₀ = (x₀ − x₂) g₀             y₀ = m₀ + m₁ + m₂
//     m₁ = (x₁ + x₂) (g₀ + g₁)/2    y₁ = m₁ − m₂
//     m₂ = (x₂ − x₁) (g₀ − g₁)/2    y₂ = m₁ + m₂ − m₃
//     m₃ = (x₁ − x₃) g₁
//
// With three taps they give two outputs of six products: y₀ = m₀ + m₁ + m₂, y₁ = m₁ − m₂ − m₃, with
// (g₀ ± g₁ + g₂)/2 in the middle. In two directions, 16 products are six outputs of 2 × 3 taps, or nine
// of 2 × 2: a tile, whose outputs are `dilation` apart. The products of all tiles with one combination
// of taps are a product of matrices. Gradients are the transposes of these maps.
//
// The first output of a tile has later inputs in it, which cancel but for rounding: good for training,
// not for scores.

#pragma once

#include <algorithm>
#include <vector>

#include "products.h"

namespace nits {

// Images of shape (count, height, width, inputs) and their convolution with 2 × taps taps, of which
// the last one is the pixel itself, or with three taps the middle one of the last row.
struct Convolution {
    int64_t count, height, width, inputs, outputs, taps, dilation, threads;
};

constexpr int64_t tiles_at_once = 96;

// Where tiles with so many outputs begin, in a direction of so many pixels.
inline std::vector<int64_t> tile_starts(int64_t size, int64_t dilation, int outputs) {
    std::vector<int64_t> found;
    for (int64_t i = 0; i < size; ++i) {
        if (i / dilation % outputs == 0) found.push_back(i);
    }
    return found;
}

// One direction with so many taps: maps of numbers that lie `step` apart in an array.
template <class T, int Taps>
struct Direction;

template <class T>
struct Direction<T, 2> {
    static constexpr int inputs = 4, outputs = 3;

    // Turns inputs into what is multiplied.
    static void enter(V<T>* x, int step) {
        const V<T> a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
        x[0] = a - c;
        x[step] = b + c;
        x[2 * step] = c - b;
        x[3 * step] = b - d;
    }

    static void enter_transposed(V<T>* x, int step) {
        const V<T> a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
        x[step] = b - c + d;
        x[2 * step] = b + c - a;
        x[3 * step] = -d;
    }

    // Turns products into outputs.
    static void leave(V<T>* m, int step) {
        const V<T> a = m[0], b = m[step], c = m[2 * step], d = m[3 * step];
        m[0] = a + b + c;
        m[step] = b - c;
        m[2 * step] = b + c - d;
    }

    static void leave_transposed(V<T>* m, int step) {
        const V<T> a = m[0], b = m[step], c = m[2 * step];
        m[step] = a + b + c;
        m[2 * step] = a - b + c;
        m[3 * step] = -c;
    }
};

template <class T>
struct Direction<T, 3> {
    static constexpr int inputs = 4, outputs = 2;

    static void enter(V<T>* x, int step) { Direction<T, 2>::enter(x, step); }

    static void enter_transposed(V<T>* x, int step) { Direction<T, 2>::enter_transposed(x, step); }

    static void leave(V<T>* m, int step) {
        const V<T> a = m[0], b = m[step], c = m[2 * step];
        m[0] = a + b + c;
        m[step] = b - c - m[3 * step];
    }

    static void leave_transposed(V<T>* m, int step) {
        const V<T> a = m[0], b = m[step];
        m[step] = a + b;
        m[2 * step] = a - b;
        m[3 * step] = -b;
    }
};

// A worker with room for some tiles of one image.
template <class T, int Taps>
class Tiles {
   public:
    using Down = Direction<T, 2>;
    using Across = Direction<T, Taps>;
    static constexpr int side = Across::inputs, points = Down::inputs * side;
    static constexpr int down = Down::outputs, across = Across::outputs;

    explicit Tiles(const Convolution& size)
        : size_(size),
          rows_(tile_starts(size.height, size.dilation, down)),
          columns_(tile_starts(size.width, size.dilation, across)),
          wide_(whole_vectors<T>(size.inputs)),
          tall_(whole_vectors<T>(size.outputs)),
          inputs_(points * (tiles_at_once * wide_ + apart)),
          outputs_(points * (tiles_at_once * tall_ + apart)),
          nothing_(std::max(wide_, tall_)) {}

    int64_t count() const { return int64_t(rows_.size() * columns_.size()); }

    // Output of some tiles: combinations of taps `u`, shape (points, inputs, whole vectors of outputs).
    void forward(const T* x, const T* u, const T* bias, const T* plus, T* y, int64_t first) {
        const int64_t tiles = std::min(tiles_at_once, count() - first);
        read_inputs(x, first, tiles);
        for (int p = 0; p < points; ++p) {
            product<T>({inputs(p), wide(), 1}, {u + p * size_.inputs * tall(), tall()}, tiles,
                       size_.inputs, {outputs(p), tall()}, tall(), Start::zero);
        }
        write_outputs(bias, plus, y, first, tiles);
    }

    // Gradients for some tiles: dx is added to, if it is there, and so is du, shape (points,
    // inputs, whole vectors of outputs). v: u with inputs and outputs exchanged.
    void backward(const T* x, const T* dy, const T* v, T* dx, T* du, int64_t first) {
        const int64_t tiles = std::min(tiles_at_once, count() - first);
        read_outputs(dy, first, tiles);
        if (du) {
            read_inputs(x, first, tiles);
            for (int p = 0; p < points; ++p) {
                product<T>({inputs(p), 1, wide()}, {outputs(p), tall()}, size_.inputs, tiles,
                           {du + p * size_.inputs * tall(), tall()}, tall(), Start::there);
            }
        }
        if (!dx) return;
        for (int p = 0; p < points; ++p) {
            product<T>({outputs(p), tall(), 1}, {v + p * size_.outputs * wide(), wide()}, tiles,
                       size_.outputs, {inputs(p), wide()}, wide(), Start::zero);
        }
        add_inputs(dx, first, tiles);
    }

   private:
    static constexpr int lanes = Lanes<T>::count;
    // Vectors between the points of tiles, which would else share few lines of the L1 cache.
    static constexpr int64_t apart = 1;

    int64_t wide() const { return wide_ * lanes; }
    int64_t tall() const { return tall_ * lanes; }
    T* inputs(int p) {
        return reinterpret_cast<T*>(inputs_.data() + p * (tiles_at_once * wide_ + apart));
    }
    T* outputs(int p) {
        return reinterpret_cast<T*>(outputs_.data() + p * (tiles_at_once * tall_ + apart));
    }

    // The pixels of a tile's inputs, or −1 for those outside of the image. The first output is at the
    // second input of each direction.
    struct Places {
        int64_t at[points];

        int64_t output(int q) const { return at[(q / across + 1) * side + q % across + 1]; }
    };

    Places places(int64_t tile) const {
        const int64_t top = rows_[tile / columns_.size()], left = columns_[tile % columns_.size()];
        Places found;
        for (int p = 0; p < points; ++p) {
            const int64_t i = top + (p / side - 1) * size_.dilation;
            const int64_t j = left + (p % side - 1) * size_.dilation;
            const bool inside = i >= 0 && i < size_.height && j >= 0 && j < size_.width;
            found.at[p] = inside ? i * size_.width + j : -1;
        }
        return found;
    }

    // Calls work(channel, channels) for every vector of channels.
    template <class Work>
    static void for_each_vector(int64_t channels, Work work) {
        int64_t c = 0;
        for (; c + lanes <= channels; c += lanes) work(c, lanes);
        if (c < channels) work(c, int(channels - c));
    }

    void read_inputs(const T* x, int64_t first, int64_t tiles) {
        const T* zeros = reinterpret_cast<const T*>(nothing_.data());
        for (int64_t t = 0; t < tiles; ++t) {
            const Places places = this->places(first + t);
            const T* from[points];
            for (int p = 0; p < points; ++p) {
                from[p] = places.at[p] < 0 ? zeros : x + places.at[p] * size_.inputs;
            }
            for_each_vector(size_.inputs, [&](int64_t c, int n) {
                V<T> tile[points];
                for (int p = 0; p < points; ++p) tile[p] = load<T>(from[p] + c, n);
                for (int q = 0; q < side; ++q) Down::enter(tile + q, side);
                for (int q = 0; q < Down::inputs; ++q) Across::enter(tile + q * side, 1);
                for (int p = 0; p < points; ++p) keep(inputs(p) + t * wide() + c, tile[p]);
            });
        }
    }

    void add_inputs(T* dx, int64_t first, int64_t tiles) {
        for (int64_t t = 0; t < tiles; ++t) {
            const Places places = this->places(first + t);
            for_each_vector(size_.inputs, [&](int64_t c, int n) {
                V<T> tile[points];
                for (int p = 0; p < points; ++p) tile[p] = kept(inputs(p) + t * wide() + c);
                for (int q = 0; q < Down::inputs; ++q) Across::enter_transposed(tile + q * side, 1);
                for (int q = 0; q < side; ++q) Down::enter_transposed(tile + q, side);
                for (int p = 0; p < points; ++p) {
                    if (places.at[p] < 0) continue;
                    T* to = dx + places.at[p] * size_.inputs + c;
                    store<T>(to, load<T>(to, n) + tile[p], n);
                }
            });
        }
    }

    void write_outputs(const T* bias, const T* plus, T* y, int64_t first, int64_t tiles) {
        for (int64_t t = 0; t < tiles; ++t) {
            const Places places = this->places(first + t);
            for_each_vector(size_.outputs, [&](int64_t c, int n) {
                const V<T> base = load<T>(bias + c, n);
                V<T> tile[points];
                for (int p = 0; p < points; ++p) tile[p] = kept(outputs(p) + t * tall() + c);
                for (int q = 0; q < side; ++q) Down::leave(tile + q, side);
                for (int q = 0; q < down; ++q) Across::leave(tile + q * side, 1);
                for (int q = 0; q < down * across; ++q) {
                    const int64_t at = places.output(q);
                    if (at < 0) continue;
                    V<T> found = tile[q / across * side + q % across] + base;
                    if (plus) found += load<T>(plus + at * size_.outputs + c, n);
                    store<T>(y + at * size_.outputs + c, found, n);
                }
            });
        }
    }

    void read_outputs(const T* dy, int64_t first, int64_t tiles) {
        const T* zeros = reinterpret_cast<const T*>(nothing_.data());
        for (int64_t t = 0; t < tiles; ++t) {
            const Places places = this->places(first + t);
            const T* from[down * across];
            for (int q = 0; q < down * across; ++q) {
                const int64_t at = places.output(q);
                from[q] = at < 0 ? zeros : dy + at * size_.outputs;
            }
            for_each_vector(size_.outputs, [&](int64_t c, int n) {
                V<T> tile[points];
                for (int q = 0; q < down * across; ++q) {
                    tile[q / across * side + q % across] = load<T>(from[q] + c, n);
                }
                for (int q = 0; q < down; ++q) Across::leave_transposed(tile + q * side, 1);
                for (int q = 0; q < side; ++q) Down::leave_transposed(tile + q, side);
                for (int p = 0; p < points; ++p) keep(outputs(p) + t * tall() + c, tile[p]);
            });
        }
    }

    static void keep(T* to, const V<T>& v) { std::memcpy(to, &v, sizeof v); }

    static V<T> kept(const T* from) {
        V<T> v;
        std::memcpy(&v, from, sizeof v);
        return v;
    }

    const Convolution size_;
    const std::vector<int64_t> rows_, columns_;
    const int64_t wide_, tall_;  // vectors of inputs and of outputs
    std::vector<V<T>> inputs_, outputs_, nothing_;
};

}  // namespace nits
