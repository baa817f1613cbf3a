// The PNN on its support, as nits/pnn/network.py computes it, for one vector of rows at a time.
//
// Numbers in brackets are the equations of docs/maths.md, and names are its symbols: f_bar is f̄,
// lambda and mu are λ = z − z_A and μ = z_B − z, r is the rise σ(z_B) − σ(z_A) of a unit, and
// rho = r / max r, within a layer. All of it stays in the L1 cache of a core.

#pragma once

#include <vector>

#include "vector.h"

namespace nits {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// σ(z), σ(−z) and log(1 + e^−|z|).
template <class T>
struct Sigmoid {
    V<T> plus, minus, tail;

    Sigmoid() = default;
    explicit Sigmoid(V<T> z) {
        V<T> far = minimum<T>(absolute<T>(z), broadcast<T>(T(40)));
        V<T> e = exp_normal<T>(-far), larger = T(1) / (T(1) + e), smaller = e * larger;
        plus = z < T(0) ? smaller : larger;
        minus = z < T(0) ? larger : smaller;
        tail = log1p<T>(e);
    }
};

template <class T>
inline V<T> positive(V<T> z) {
    return z < T(0) ? V<T>{} : z;
}

// log W = −A / √(1 + (A/20)²), the bounded weight of equation (1), and `bend` = −d log W / dA.
template <class T>
inline V<T> log_weight(V<T> A, V<T>* bend) {
    V<T> t = A * T(1.0 / 20);
    V<T> root = rsqrt<T>(minimum<T>(T(1) + t * t, broadcast<T>(T(1e36))));
    *bend = root * root * root;
    return -A * root;
}

// A unit on the support [A, B], and at a point of it.
template <class T>
struct Unit {
    V<T> z_A, z_B, D, kappa_D, log_r;  // D = z_B − z_A
    Sigmoid<T> at_A, at_B;
    V<T> rho;
    V<T> W, bend, b;           // W and bend: of the first layer only
    V<T> W_rho, scale, W_sum;  // of deeper layers: Σ W ρ, D / Σ W ρ and Σ W over the units below

    V<T> z, lambda, mu, f, f_bar;  // at the point
    V<T> log_fall, log_climb;      // log(σ(z) / σ(z_B)) and log(σ(−z) / σ(−z_A)), by (10)
    V<T> slope;                    // f′, or log f′
    V<T> rho_f, rho_f_bar;
    V<T> delta, W_delta;  // ρ f′ over its greatest in the layer, and its sum over the units below
    Sigmoid<T> at;
};

// One layer: its units, and its matrix if it reads units.
template <class T>
struct Layer {
    int inputs = 1;
    int start = 0;  // of its weights in θ
    std::vector<Unit<T>> units;
    std::vector<V<T>> W, W_bend;  // W and −dW / dA, shape (out, in)
    V<T> log_r_max;
};

// The θ of one column: P rows, `stride` numbers apart, of which the first `count` lanes are used.
template <class T>
struct Rows {
    const T* start;
    int64_t stride;
    int count;

    V<T> operator[](int row) const {
        const T* from = start + row * stride;
        // Rows lie a page or more apart, so that the CPU does not prefetch the next vectors itself.
        __builtin_prefetch(from + 2 * Lanes<T>::count);
        return load<T>(from, count);
    }
};

template <class T>
class PNN {
   public:
    std::vector<Layer<T>> layers;
    std::vector<V<T>> log_q;  // log of the last units' shares of the total rise

    PNN(const int64_t* hidden, int depth) {
        int start = 0;
        for (int k = 0; k < depth; ++k) {
            Layer<T> layer;
            layer.inputs = k ? int(hidden[k - 1]) : 1;
            layer.start = start;
            layer.units.resize(hidden[k]);
            if (k) layer.W.resize(hidden[k] * layer.inputs);
            if (k) layer.W_bend.resize(hidden[k] * layer.inputs);
            start += int(hidden[k]) * (layer.inputs + 1);
            layers.push_back(std::move(layer));
        }
        last_ = start;
        log_q.resize(hidden[depth - 1]);
    }

    int last() const { return last_; }  // where the last matrix starts in θ

    // Sets all that does not depend on the point: the PNN with weights θ on the support [A, B].
    void normalize(const Rows<T>& theta, T A, T B) {
        A_ = A;
        B_ = B;
        first_layer(theta);
        for (size_t k = 1; k < layers.size(); ++k) deep_layer(theta, layers[k - 1], layers[k]);
        const auto& units = layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) log_q[o] = theta[last_ + int(o)] + units[o].log_r;
        V<T> total = log_sum_exp(log_q);
        for (auto& term : log_q) term = term - total;
    }

    // Follows x through the network. With `logs` slopes are logarithms, which cannot underflow, and
    // the last layer has no shares f and f̄.
    template <bool logs>
    void trace(V<T> x) {
        const size_t last = layers.size() - 1;
        const bool open_A = A_ == -infinity<T>, open_B = B_ == infinity<T>;
        x = absolute<T>(x) == infinity<T> ? V<T>{} : x;
        for (auto& unit : layers[0].units) {
            unit.z = unit.W * (x - unit.b);
            unit.lambda = open_A ? broadcast<T>(infinity<T>) : unit.W * (x - A_);
            unit.mu = open_B ? broadcast<T>(infinity<T>) : unit.W * (B_ - x);
            set_shares<logs>(unit, unit.W, V<T>{}, !logs || last > 0);
        }
        for (size_t k = 1; k <= last; ++k) {
            trace_layer<logs>(layers[k - 1], layers[k], !logs || k < last);
        }
    }

    // log Σ e^terms.
    static V<T> log_sum_exp(const std::vector<V<T>>& terms) {
        V<T> top = broadcast<T>(-infinity<T>), sum = V<T>{};
        for (const auto& term : terms) top = maximum<T>(top, term);
        for (const auto& term : terms) sum = sum + exp<T>(term - top);
        return top + log<T>(sum);
    }

   private:
    T A_ = 0, B_ = 0;
    int last_ = 0;

    void first_layer(const Rows<T>& theta) {
        const bool open_A = A_ == -infinity<T>, open_B = B_ == infinity<T>;
        Layer<T>& layer = layers[0];
        const int count = int(layer.units.size());
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            unit.W = exp_normal<T>(log_weight<T>(theta[o], &unit.bend));
            unit.b = theta[count + o];
            unit.z_A = open_A ? broadcast<T>(-infinity<T>) : unit.W * (A_ - unit.b);
            unit.z_B = open_B ? broadcast<T>(infinity<T>) : unit.W * (B_ - unit.b);
            unit.D = open_A || open_B ? broadcast<T>(infinity<T>) : unit.W * (B_ - A_);
            unit.kappa_D = kappa<T>(unit.D);
            set_rise(unit, log<T>(unit.kappa_D));
        }
        set_relative_rises(layer);
    }

    void deep_layer(const Rows<T>& theta, const Layer<T>& below, Layer<T>& layer) {
        const int count = int(layer.units.size()), inputs = layer.inputs;
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            V<T>*W_o = &layer.W[o * inputs], *W_bend_o = &layer.W_bend[o * inputs];
            V<T> b = theta[layer.start + count * inputs + o];
            V<T> W_rho{}, z_A{}, W_sum{};
            for (int j = 0; j < inputs; ++j) {
                V<T> bend;
                V<T> W = exp_normal<T>(log_weight<T>(theta[layer.start + o * inputs + j], &bend));
                W_o[j] = W;
                W_bend_o[j] = W * bend;
                W_rho += W * below.units[j].rho;
                z_A += W * (below.units[j].at_A.plus - b);
                W_sum += W;
            }
            V<T> log_D = below.log_r_max + log<T>(W_rho);
            V<T> D = exp<T>(log_D);
            I<T> flat = D < Bits<T>::straight;
            unit.b = b;
            unit.W_rho = W_rho;
            unit.W_sum = W_sum;
            unit.D = flat ? broadcast<T>(Bits<T>::straight) : D;
            unit.scale = unit.D / W_rho;
            unit.z_A = z_A;
            unit.z_B = z_A + unit.D;
            unit.kappa_D = kappa<T>(unit.D);
            set_rise(unit, flat ? log_D : log<T>(unit.kappa_D));
        }
        set_relative_rises(layer);
    }

    // log r = log κ(D) + log σ(z_B) + log σ(−z_A), equation (7).
    static void set_rise(Unit<T>& unit, V<T> log_kappa_D) {
        unit.at_A = Sigmoid<T>(unit.z_A);
        unit.at_B = Sigmoid<T>(unit.z_B);
        unit.log_r = log_kappa_D - positive<T>(-unit.z_B) - unit.at_B.tail - positive<T>(unit.z_A) -
                     unit.at_A.tail;
    }

    static void set_relative_rises(Layer<T>& layer) {
        layer.log_r_max = layer.units[0].log_r;
        for (const auto& unit : layer.units) {
            layer.log_r_max = maximum<T>(layer.log_r_max, unit.log_r);
        }
        for (auto& unit : layer.units) unit.rho = exp<T>(unit.log_r - layer.log_r_max);
    }

    // λ_o = scale Σ W_oj ρ_j f_j, μ_o = scale Σ W_oj ρ_j f̄_j and z′_o = scale Σ W_oj ρ_j f′_j.
    template <bool logs>
    void trace_layer(Layer<T>& below, Layer<T>& layer, bool shares) {
        V<T> top = set_outputs<logs>(below);
        const int count = int(layer.units.size()), inputs = layer.inputs;
        for (int o = 0; o < count; ++o) {
            Unit<T>& unit = layer.units[o];
            const V<T>* W = &layer.W[o * inputs];
            V<T> lambda{}, mu{}, W_delta{};
            for (int j = 0; j < inputs; ++j) {
                const Unit<T>& from = below.units[j];
                lambda += W[j] * from.rho_f;
                mu += W[j] * from.rho_f_bar;
                W_delta += W[j] * from.delta;
            }
            unit.lambda = unit.scale * lambda;
            unit.mu = unit.scale * mu;
            // z from the nearer end of the support, where it is known best.
            unit.z = unit.mu < unit.lambda ? unit.z_B - unit.mu : unit.z_A + unit.lambda;
            unit.W_delta = W_delta;
            set_shares<logs>(unit, unit.scale * W_delta, top, shares);
        }
    }

    // What the layer above sums: ρ f, ρ f̄ and ρ f′, the last of them over e^top, which it returns.
    template <bool logs>
    static V<T> set_outputs(Layer<T>& layer) {
        V<T> top{};
        if constexpr (logs) {
            top = broadcast<T>(-infinity<T>);
            for (auto& unit : layer.units) {
                unit.delta = unit.log_r - layer.log_r_max + unit.slope;
                top = maximum<T>(top, unit.delta);
            }
        }
        for (auto& unit : layer.units) {
            unit.rho_f = unit.rho * unit.f;
            unit.rho_f_bar = unit.rho * unit.f_bar;
            unit.delta = logs ? exp<T>(unit.delta - top) : unit.rho * unit.slope;
        }
        return top;
    }

    // Equation (9) through identity (7), if `shares` are wanted, and the slope f′, for which
    // z′ = e^top dz.
    template <bool logs>
    static void set_shares(Unit<T>& u, V<T> dz, V<T> top, bool shares) {
        u.at = Sigmoid<T>(u.z);
        u.log_fall = u.at_B.tail - u.at.tail - (u.z_B > T(0) ? positive<T>(-u.z) : u.mu);
        u.log_climb = u.at_A.tail - u.at.tail - (u.z_A < T(0) ? positive<T>(u.z) : u.lambda);
        if constexpr (logs) u.slope = u.log_fall + u.log_climb + (log<T>(dz / u.kappa_D) + top);
        if (!shares) return;
        V<T> fall = exp<T>(u.log_fall), climb = exp<T>(u.log_climb);
        u.f = fall * (kappa<T>(u.lambda) / u.kappa_D);
        u.f_bar = climb * (kappa<T>(u.mu) / u.kappa_D);
        if constexpr (!logs) u.slope = fall * climb * (dz / u.kappa_D);
    }
};

}  // namespace nits
