// The PNN over its support, as nits/pnn.py has it, for one vector of rows at a time.
//
// Numbers in brackets are the equations of docs/maths.md. Everything lies in the first cache of a core: the
// weights of a few rows are read once, and the gradient written once.

#pragma once

#include <vector>

#include "vector.h"

namespace nits {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// σ(z), σ(−z) and log(1 + e^−|z|).
template <class T>
struct Sigmoid {
    V<T> up, down, tail;

    Sigmoid() = default;
    explicit Sigmoid(V<T> z) {
        V<T> far = lesser<T>(magnitude<T>(z), all<T>(T(40)));
        V<T> e = exp_within<T>(-far), high = T(1) / (T(1) + e), low = e * high;
        up = z < T(0) ? low : high;
        down = z < T(0) ? high : low;
        tail = log_1_plus<T>(e);
    }
};

template <class T>
inline V<T> positive(V<T> z) {
    return z < T(0) ? V<T>{} : z;
}

// log W, and in `cube` −d log W / dA, equation (1).
template <class T>
inline V<T> log_weight(V<T> A, V<T>* cube) {
    V<T> t = A * T(1.0 / 20);
    V<T> root = rsqrt<T>(lesser<T>(T(1) + t * t, all<T>(T(1e36))));
    *cube = root * root * root;
    return -A * root;
}

// A unit over the support [A, B], and at a point of it.
template <class T>
struct Unit {
    V<T> z_low, z_high, width, shrink, log_rise;  // z at A and B, D, κ(D), log(σ(z_B) − σ(z_A))
    Sigmoid<T> low, high;
    V<T> weight, cube, centre;  // of the first layer: W, −d log W / dA, b
    V<T> mixed, scale, sum;     // of deeper ones: W ρ, D over it, and the sum of W
    V<T> rise;                  // ρ, the rise over the greatest of the layer

    V<T> z, lower, upper, below, above;  // at a point: z, z − z_A, z_B − z, f, f̄
    V<T> fall, climb;                    // log σ(z) − log σ(z_B) and log σ(−z) − log σ(−z_A), equation (10)
    V<T> slope;                          // f′, or its logarithm
    V<T> mass, rest, part, marginal;     // ρ f, ρ f̄ and ρ f′, and what deeper layers sum up of the last
    Sigmoid<T> at;
};

// One layer: its units, and its matrix if it reads units.
template <class T>
struct Layer {
    int inputs = 1, start = 0;  // and where its weights start in θ
    std::vector<Unit<T>> units;
    std::vector<V<T>> weight, steep;  // W, and −dW / dA, shape (out, in)
    V<T> top;                         // the greatest log_rise
};

// Where a column's θ lies: P rows, `stride` numbers apart, of which `count` lanes are wanted.
template <class T>
struct Rows {
    const T* start;
    int64_t stride;
    int count;

    V<T> operator[](int row) const {
        const T* from = start + row * stride;
        __builtin_prefetch(from + 2 * Lanes<T>::count);  // for the next but one: rows lie a page apart
        return load<T>(from, count);
    }
};

template <class T>
class PNN {
   public:
    std::vector<Layer<T>> layers;
    std::vector<V<T>> share;  // log share of the last units in the total rise

    PNN(const int64_t* hidden, int depth) {
        int start = 0;
        for (int k = 0; k < depth; ++k) {
            Layer<T> layer;
            layer.inputs = k ? int(hidden[k - 1]) : 1;
            layer.start = start;
            layer.units.resize(hidden[k]);
            if (k) layer.weight.resize(hidden[k] * layer.inputs);
            if (k) layer.steep.resize(hidden[k] * layer.inputs);
            start += int(hidden[k]) * (layer.inputs + 1);
            layers.push_back(std::move(layer));
        }
        last_ = start;
        share.resize(hidden[depth - 1]);
    }

    int last() const { return last_; }  // where the last matrix starts in θ

    // Lays the PNN with weights θ over [low, high].
    void frame(const Rows<T>& theta, T low, T high) {
        low_ = low;
        high_ = high;
        first(theta);
        for (size_t k = 1; k < layers.size(); ++k) deep(theta, layers[k - 1], layers[k]);
        const auto& units = layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) share[o] = theta[last_ + int(o)] + units[o].log_rise;
        V<T> total = log_sum(share);
        for (auto& s : share) s = s - total;
    }

    // Follows x through the network; slopes are logarithms if `logs`, which cannot underflow.
    template <bool logs>
    void trace(V<T> x) {
        const bool open_low = low_ == -infinity<T>, open_high = high_ == infinity<T>;
        x = magnitude<T>(x) == infinity<T> ? V<T>{} : x;
        for (auto& unit : layers[0].units) {
            unit.z = unit.weight * (x - unit.centre);
            unit.lower = open_low ? all<T>(infinity<T>) : unit.weight * (x - low_);
            unit.upper = open_high ? all<T>(infinity<T>) : unit.weight * (high_ - x);
            settle<logs>(unit, unit.weight, V<T>{});
        }
        for (size_t k = 1; k < layers.size(); ++k) pass<logs>(layers[k - 1], layers[k]);
    }

    // log Σ e^terms.
    static V<T> log_sum(const std::vector<V<T>>& terms) {
        V<T> top = all<T>(-infinity<T>), sum = V<T>{};
        for (const auto& term : terms) top = greater<T>(top, term);
        for (const auto& term : terms) sum = sum + exp<T>(term - top);
        return top + log<T>(sum);
    }

   private:
    T low_ = 0, high_ = 0;
    int last_ = 0;

    void first(const Rows<T>& theta) {
        const bool open_low = low_ == -infinity<T>, open_high = high_ == infinity<T>;
        Layer<T>& layer = layers[0];
        const int count = int(layer.units.size());
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            unit.weight = exp_within<T>(log_weight<T>(theta[o], &unit.cube));
            unit.centre = theta[count + o];
            unit.z_low = open_low ? all<T>(-infinity<T>) : unit.weight * (low_ - unit.centre);
            unit.z_high = open_high ? all<T>(infinity<T>) : unit.weight * (high_ - unit.centre);
            unit.width = open_low || open_high ? all<T>(infinity<T>) : unit.weight * (high_ - low_);
            unit.shrink = kappa<T>(unit.width);
            span(unit, log<T>(unit.shrink));
        }
        normalize(layer);
    }

    void deep(const Rows<T>& theta, const Layer<T>& below, Layer<T>& layer) {
        const int count = int(layer.units.size()), inputs = layer.inputs;
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            V<T>*weight = &layer.weight[o * inputs], *steep = &layer.steep[o * inputs];
            V<T> centre = theta[layer.start + count * inputs + o];
            V<T> mixed{}, start{}, sum{};
            for (int j = 0; j < inputs; ++j) {
                V<T> cube, W = exp_within<T>(log_weight<T>(theta[layer.start + o * inputs + j], &cube));
                weight[j] = W;
                steep[j] = W * cube;
                mixed += W * below.units[j].rise;
                start += W * (below.units[j].low.up - centre);
                sum += W;
            }
            V<T> log_width = below.top + log<T>(mixed);
            unit.centre = centre;
            unit.mixed = mixed;
            unit.sum = sum;
            V<T> width = exp<T>(log_width);
            I<T> flat = width < Bits<T>::straight;
            unit.width = flat ? all<T>(Bits<T>::straight) : width;
            unit.scale = unit.width / mixed;
            unit.z_low = start;
            unit.z_high = start + unit.width;
            unit.shrink = kappa<T>(unit.width);
            span(unit, flat ? log_width : log<T>(unit.shrink));
        }
        normalize(layer);
    }

    // log(σ(z_B) − σ(z_A)), equation (7) over the whole support.
    static void span(Unit<T>& unit, V<T> log_shrink) {
        unit.low = Sigmoid<T>(unit.z_low);
        unit.high = Sigmoid<T>(unit.z_high);
        unit.log_rise = log_shrink - positive<T>(-unit.z_high) - unit.high.tail - positive<T>(unit.z_low) -
                        unit.low.tail;
    }

    static void normalize(Layer<T>& layer) {
        layer.top = layer.units[0].log_rise;
        for (const auto& unit : layer.units) layer.top = greater<T>(layer.top, unit.log_rise);
        for (auto& unit : layer.units) unit.rise = exp<T>(unit.log_rise - layer.top);
    }

    template <bool logs>
    void pass(Layer<T>& below, Layer<T>& layer) {
        V<T> top = weigh<logs>(below);
        const int count = int(layer.units.size()), inputs = layer.inputs;
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            const V<T>* weight = &layer.weight[o * inputs];
            V<T> lower{}, upper{}, marginal{};
            for (int j = 0; j < inputs; ++j) {
                const Unit<T>& from = below.units[j];
                lower += weight[j] * from.mass;
                upper += weight[j] * from.rest;
                marginal += weight[j] * from.part;
            }
            unit.lower = unit.scale * lower;
            unit.upper = unit.scale * upper;
            unit.z = unit.upper < unit.lower ? unit.z_high - unit.upper : unit.z_low + unit.lower;
            unit.marginal = marginal;
            settle<logs>(unit, unit.scale * marginal, top);
        }
    }

    // What the layer above sums up: ρ f, ρ f̄ and ρ f′, the latter over e^top.
    template <bool logs>
    static V<T> weigh(Layer<T>& layer) {
        V<T> top{};
        if constexpr (logs) {
            top = all<T>(-infinity<T>);
            for (auto& unit : layer.units) {
                unit.part = unit.log_rise - layer.top + unit.slope;
                top = greater<T>(top, unit.part);
            }
        }
        for (auto& unit : layer.units) {
            unit.mass = unit.rise * unit.below;
            unit.rest = unit.rise * unit.above;
            unit.part = logs ? exp<T>(unit.part - top) : unit.rise * unit.slope;
        }
        return top;
    }

    // Equation (9) through identity (7), and the slope f′, for which z′ = e^top dz.
    template <bool logs>
    static void settle(Unit<T>& u, V<T> dz, V<T> top) {
        u.at = Sigmoid<T>(u.z);
        u.fall = u.high.tail - u.at.tail - (u.z_high > T(0) ? positive<T>(-u.z) : u.upper);
        u.climb = u.low.tail - u.at.tail - (u.z_low < T(0) ? positive<T>(u.z) : u.lower);
        V<T> falling = exp<T>(u.fall), climbing = exp<T>(u.climb);
        u.below = falling * (kappa<T>(u.lower) / u.shrink);
        u.above = climbing * (kappa<T>(u.upper) / u.shrink);
        if constexpr (logs) {
            u.slope = u.fall + u.climb + (log<T>(dz / u.shrink) + top);
        } else {
            u.slope = falling * climbing * (dz / u.shrink);
        }
    }
};

}  // namespace nits
