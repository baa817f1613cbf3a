// Calls the kernels with hostile weights and sizes, for `make sanitize`: AddressSanitizer and
// UBSan end the program at the first read or write outside an array, or undefined operation.
//
// Every array has exactly the size that its kernel is told, so that nothing lies beside it.

#include <cstdio>
#include <limits>
#include <memory>
#include <random>

#include "kernels.cpp"

namespace {

template <class T>
using Array = std::unique_ptr<T[]>;

template <class T>
T hostile(std::mt19937& source) {
    using Limits = std::numeric_limits<T>;
    const T some[] = {T(0),          T(-0.0),        T(1),          T(-1),
                      T(40),         T(-40),         T(1e4),        T(-1e4),
                      Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(),
                      Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), T(1e-30)};
    const unsigned k = source() % 32;
    return k < 16 ? some[k] : std::normal_distribution<T>()(source);
}

template <class T>
Array<T> filled(int64_t count, std::mt19937& source, bool tame) {
    Array<T> found(new T[size_t(count)]);
    for (int64_t i = 0; i < count; ++i)
        found[i] = tame ? std::normal_distribution<T>()(source) : hostile<T>(source);
    return found;
}

template <class T>
struct Case {
    std::vector<int64_t> hidden;
    int64_t columns, rows, padding;
    bool tame;
    int threads;
};

int64_t weights_of(const std::vector<int64_t>& hidden) {
    int64_t inputs = 1, found = 0;
    for (int64_t width : hidden) {
        found += width * (inputs + 1);
        inputs = width;
    }
    return found + inputs;
}

template <class T>
void run(const Case<T>& c, std::mt19937& source) {
    const int64_t P = weights_of(c.hidden), stride = c.rows + c.padding, n = c.columns * c.rows;
    const int64_t last = (c.columns * P - 1) * stride + c.rows;
    auto theta = filled<T>(last, source, c.tame);
    Array<T> A(new T[size_t(c.columns)]), B(new T[size_t(c.columns)]);
    const T ends[][2] = {{-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()},
                         {T(-1), T(2)},
                         {T(0), std::numeric_limits<T>::infinity()},
                         {T(0), std::numeric_limits<T>::denorm_min()}};
    for (int64_t i = 0; i < c.columns; ++i) {
        const auto& pair = ends[source() % 4];
        A[i] = pair[0];
        B[i] = pair[1];
    }
    const nits::Columns<T> pnns{theta.get(),       P * stride, stride,   A.get(),
                                B.get(),           c.columns,  P,        c.rows,
                                c.hidden.data(),   int64_t(c.hidden.size()), c.threads};
    auto s = filled<T>(n, source, c.tame), t = filled<T>(n, source, c.tame);
    Array<T> value(new T[size_t(n)]), open(new T[size_t(n)]), gradient(new T[size_t(n * P)]);
    nits::log_density<T>(pnns, s.get(), value.get(), nullptr);
    nits::log_density<T>(pnns, s.get(), value.get(), gradient.get());
    nits::log_mass<T>(pnns, s.get(), t.get(), value.get(), nullptr);
    nits::log_mass<T>(pnns, s.get(), t.get(), value.get(), gradient.get());
    nits::quantile<T>(pnns, s.get(), value.get(), open.get());
}

template <class T>
int all(std::mt19937& source) {
    const std::vector<std::vector<int64_t>> shapes = {{1}, {3}, {32}, {16, 16}, {5, 3}, {4, 1, 4},
                                                      {1, 1, 1, 1}, {200}, {64, 7}};
    int cases = 0;
    for (const auto& hidden : shapes)
        for (int64_t columns : {1, 3})
            for (int64_t rows : {1, 2, 7, 8, 9, 15, 16, 17, 33, 64})
                for (int64_t padding : {0, 5})
                    for (bool tame : {true, false}) {
                        run<T>({hidden, columns, rows, padding, tame, 1 + cases % 3}, source);
                        ++cases;
                    }
    return cases;
}

}  // namespace

int main() {
    std::mt19937 source(20);
    const int cases = all<float>(source) + all<double>(source);
    std::printf("%d cases of five calls each: clean\n", cases);
}
