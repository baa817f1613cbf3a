// Vectors as wide as the CPU's registers, and their elementary functions, in operations that every
// CPU has. Of wider ones, compilers do comparisons and choices number by number.
//
// The functions are polynomials without branches, which a compiler turns into the widest
// instructions of the machine. Errors are at most a few units in the last place; NaN stays NaN.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace nits {

template <class T>
struct Bits;

template <>
struct Bits<float> {
    using Int = int32_t;
    static constexpr int mantissa = 23, bias = 127;
    static constexpr Int rsqrt = 0x5f3759df;
    static constexpr int rsqrt_steps = 3;
    static constexpr int exp_terms = 7, log_terms = 5, log1p_terms = 7, kappa_terms = 8;
    static constexpr float least_exp = -87.0f;
    static constexpr float round = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer
    // ln 2 in two parts; the first has so few bits that its product with n is exact.
    static constexpr float ln2_high = 0.693145752f, ln2_low = 1.42860677e-06f;
    static constexpr float straight = 1e-10f, close = 3e-4f;
};

template <>
struct Bits<double> {
    using Int = int64_t;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr Int rsqrt = 0x5fe6eb50c7b537a9;
    static constexpr int rsqrt_steps = 5;
    static constexpr int exp_terms = 13, log_terms = 10, log1p_terms = 15, kappa_terms = 15;
    static constexpr double least_exp = -708.0;
    static constexpr double round = 6755399441055744.0;  // 1.5 · 2⁵²
    static constexpr double ln2_high = 0.69314718036912382, ln2_low = 1.9082149292705877e-10;
    static constexpr double straight = 1e-20, close = 1e-7;
};

#if defined(__AVX512F__)
constexpr int register_bytes = 64;
#elif defined(__AVX2__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif

template <class T>
struct Lanes {
    static constexpr int count = register_bytes / sizeof(T);
    typedef T V __attribute__((vector_size(register_bytes)));
    typedef typename Bits<T>::Int I __attribute__((vector_size(register_bytes)));
    typedef std::make_unsigned_t<typename Bits<T>::Int> U
        __attribute__((vector_size(register_bytes)));
};

template <class T>
using V = typename Lanes<T>::V;

template <class T>
using I = typename Lanes<T>::I;

// For arithmetic on the bits of numbers, which may overflow where the result is not used.
template <class T>
using U = typename Lanes<T>::U;

template <class T>
inline V<T> broadcast(T value) {
    return V<T>{} + value;
}

// Reads n values; the last one also fills the rest of the vector.
template <class T>
inline V<T> load(const T* from, int n) {
    V<T> v;
    if (n == Lanes<T>::count) {
        std::memcpy(&v, from, sizeof v);
    } else {
        for (int i = 0; i < Lanes<T>::count; ++i) v[i] = from[i < n ? i : n - 1];
    }
    return v;
}

template <class T>
inline void store(T* to, const V<T>& v, int n) {
    if (n == Lanes<T>::count) {
        std::memcpy(to, &v, sizeof v);
    } else {
        std::memcpy(to, &v, n * sizeof(T));
    }
}

// Writes a whole vector, past the caches where it is a line of them, since it is not read again soon;
// `to` must be a multiple of `register_bytes`.
template <class T>
inline void stream(T* to, const V<T>& v) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)v);
#else
    std::memcpy(to, &v, sizeof v);
#endif
}

template <class T>
inline V<T> maximum(V<T> a, V<T> b) {
    return a < b ? b : a;
}

template <class T>
inline V<T> minimum(V<T> a, V<T> b) {
    return a > b ? b : a;
}

template <class T>
inline V<T> absolute(V<T> x) {
    return (V<T>)((I<T>)x & std::numeric_limits<typename Bits<T>::Int>::max());
}

// While it exists, subnormal numbers are rounded to zero in this thread: they are slow to compute
// with, and negligible here.
class FlushSubnormals {
#if defined(__SSE__)
   public:
    FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushSubnormals() { _mm_setcsr(before_); }

   private:
    unsigned before_;
#endif
};

template <class T>
inline bool any(I<T> mask) {
    typename Bits<T>::Int found = 0;
    for (int i = 0; i < Lanes<T>::count; ++i) found |= mask[i];
    return found != 0;
}

// eˣ = 2ⁿ eʳ with |r| ≤ ln 2 / 2, for x such that eˣ is a normal number.
template <class T>
inline V<T> exp_normal(V<T> x) {
    using B = Bits<T>;
    V<T> shifted = x * T(1.4426950408889634) + B::round;
    V<T> n = shifted - B::round;
    V<T> r = x - n * B::ln2_high - n * B::ln2_low;
    static constexpr double inverse_factorial[] = {
        1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    V<T> sum = broadcast<T>(T(inverse_factorial[B::exp_terms]));
    for (int k = B::exp_terms - 1; k >= 0; --k) sum = sum * r + T(inverse_factorial[k]);
    U<T> power = ((U<T>)shifted + B::bias) << B::mantissa;
    return sum * (V<T>)power;
}

// eˣ for x such that it does not overflow; zero where it would be subnormal.
template <class T>
inline V<T> exp(V<T> x) {
    return x < Bits<T>::least_exp ? V<T>{} : exp_normal<T>(x);
}

// log x = e ln 2 + 2 artanh((m − 1) / (m + 1)) with x = 2ᵉ m and m between √½ and √2.
template <class T>
inline V<T> log(V<T> x) {
    using B = Bits<T>;
    using Int = typename B::Int;
    U<T> bits = (U<T>)x;
    U<T> half = (U<T>)broadcast<T>(T(0.70710678118654752));
    I<T> exponent = (I<T>)(bits - half) >> B::mantissa;
    V<T> m = (V<T>)(bits - ((U<T>)exponent << B::mantissa));
    V<T> e = __builtin_convertvector(exponent, V<T>);
    V<T> s = (m - T(1)) / (m + T(1)), square = s * s;
    V<T> sum = broadcast<T>(T(1.0 / (2 * B::log_terms + 1)));
    for (int k = B::log_terms - 1; k >= 1; --k) sum = sum * square + T(1.0 / (2 * k + 1));
    V<T> twice = s + s;
    V<T> result = e * B::ln2_high + (twice + (twice * square * sum + e * B::ln2_low));
    constexpr T infinity = std::numeric_limits<T>::infinity();
    constexpr T least = std::numeric_limits<T>::min();
    static_assert(sizeof(Int) == sizeof(T));
    result = x < least ? broadcast<T>(-infinity) : result;  // zero or subnormal
    result = x > std::numeric_limits<T>::max() ? broadcast<T>(infinity) : result;
    return x >= T(0) ? result : broadcast<T>(std::numeric_limits<T>::quiet_NaN());
}

// log(1 + x) for x between 0 and 1: 2 artanh(x / (2 + x)).
template <class T>
inline V<T> log1p(V<T> x) {
    V<T> s = x / (x + T(2)), square = s * s;
    V<T> sum = broadcast<T>(T(1.0 / (2 * Bits<T>::log1p_terms + 1)));
    for (int k = Bits<T>::log1p_terms - 1; k >= 0; --k) sum = sum * square + T(1.0 / (2 * k + 1));
    return (s + s) * sum;
}

// 1 / √x for x ≥ 1, by Newton's method from an estimate that halves the exponent.
template <class T>
inline V<T> rsqrt(V<T> x) {
    V<T> y = (V<T>)(Bits<T>::rsqrt - (U<T>)((I<T>)x >> 1)), half = x * T(0.5);
    for (int k = 0; k < Bits<T>::rsqrt_steps; ++k) y = y * (T(1.5) - half * y * y);
    return y;
}

// κ(h) = 1 − e⁻ʰ for h ≥ 0: a power series where the subtraction would lose digits.
template <class T>
inline V<T> kappa(V<T> h) {
    static constexpr double signed_inverse_factorial[] = {
        0.0, 1.0, -1.0 / 2, 1.0 / 6, -1.0 / 24, 1.0 / 120, -1.0 / 720, 1.0 / 5040, -1.0 / 40320,
        1.0 / 362880, -1.0 / 3628800, 1.0 / 39916800, -1.0 / 479001600, 1.0 / 6227020800,
        -1.0 / 87178291200, 1.0 / 1307674368000};
    I<T> small = h < T(0.5);
    V<T> near = small ? h : V<T>{}, series = V<T>{};
    for (int k = Bits<T>::kappa_terms; k >= 1; --k) {
        series = near * (series + T(signed_inverse_factorial[k]));
    }
    return small ? series : T(1) - exp<T>(-h);
}

}  // namespace nits
