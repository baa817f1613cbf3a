// Products of small matrices, with a block of the result in registers.

#pragma once

#include "vector.h"

namespace nits {

#if defined(__AVX512F__)
constexpr int rows_at_once = 8;
#else
constexpr int rows_at_once = 4;
#endif
constexpr int vectors_at_once = 3;

// Rows of A, of which the number at (i, k) is start[i · row + k · step].
template <class T>
struct Left {
    const T* start;
    int64_t row, step;
};

// A matrix whose rows lie `stride` apart. As a right factor it has whole vectors in each row.
template <class T>
struct Matrix {
    T* start;
    int64_t stride;
};

template <class T>
constexpr int64_t whole_vectors(int64_t count) {
    return (count + Lanes<T>::count - 1) / Lanes<T>::count;
}

// What a product is added to: nothing, or what the result holds.
enum class Start { zero, there };

// R rows and C vectors of columns of the product; of the last vector, `last` numbers are written.
template <class T, int R, int C>
inline void product_block(const Left<T>& a, const Matrix<const T>& b, int64_t depth,
                          const Matrix<T>& c, int last, Start start) {
    constexpr int lanes = Lanes<T>::count;
    V<T> sum[R][C];
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < C; ++v) {
            const T* there = c.start + r * c.stride + v * lanes;
            sum[r][v] = start == Start::zero ? V<T>{} : load<T>(there, v + 1 < C ? lanes : last);
        }
    }
    for (int64_t k = 0; k < depth; ++k) {
        V<T> right[C];
        for (int v = 0; v < C; ++v) right[v] = load<T>(b.start + k * b.stride + v * lanes, lanes);
        for (int r = 0; r < R; ++r) {
            const T left = a.start[r * a.row + k * a.step];
            for (int v = 0; v < C; ++v) sum[r][v] += left * right[v];
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < C; ++v) {
            const V<T> found = sum[r][v];  // a copy, so that the sums need no place in memory
            store<T>(c.start + r * c.stride + v * lanes, found, v + 1 < C ? lanes : last);
        }
    }
}

template <class T, int C>
inline void product_panel(Left<T> a, const Matrix<const T>& b, int64_t rows, int64_t depth,
                          Matrix<T> c, int last, Start start) {
    int64_t i = 0;
    for (; i + rows_at_once <= rows; i += rows_at_once) {
        product_block<T, rows_at_once, C>(a, b, depth, c, last, start);
        a.start += rows_at_once * a.row;
        c.start += rows_at_once * c.stride;
    }
    for (; i < rows; ++i) {
        product_block<T, 1, C>(a, b, depth, c, last, start);
        a.start += a.row;
        c.start += c.stride;
    }
}

// C = A B, or C + A B, for A of shape (rows, depth) and C of shape (rows, columns).
template <class T>
inline void product(const Left<T>& a, const Matrix<const T>& b, int64_t rows, int64_t depth,
                    const Matrix<T>& c, int64_t columns, Start start) {
    constexpr int lanes = Lanes<T>::count;
    int64_t vectors = whole_vectors<T>(columns), j = 0;
    while (vectors > 0) {
        const int most = vectors == vectors_at_once + 1 ? 2 : vectors_at_once;
        const int at_once = int(vectors < most ? vectors : most);
        const Matrix<const T> right{b.start + j, b.stride};
        const Matrix<T> to{c.start + j, c.stride};
        const int64_t end = j + at_once * lanes;
        const int last = int(columns < end ? lanes - (end - columns) : lanes);
        if (at_once == 3) product_panel<T, 3>(a, right, rows, depth, to, last, start);
        if (at_once == 2) product_panel<T, 2>(a, right, rows, depth, to, last, start);
        if (at_once == 1) product_panel<T, 1>(a, right, rows, depth, to, last, start);
        vectors -= at_once;
        j = end;
    }
}

}  // namespace nits
