// What the gradients of densities and masses have in common: equations (22) and (23) by layers.
//
// The layer above reads four outputs of a unit: σ(z), ρ f, ρ f̄ and Δ, which is the slope ρ f′ for
// a density and the rise between two points for a mass. They depend on four inputs: z, λ, μ and
// Δz, which is z′ for a density and δ = z_t − z_s for a mass. An adjoint is the derivative of the
// result, log ν(x) or log P(s < X ≤ t), in one of them.

#pragma once

#include "pnn.h"

namespace nits {

// The outputs of a unit, with Δ divided by its greatest in the layer. end_A = ρ f / (e^λ − 1) and
// end_B = ρ f̄ / (e^μ − 1) are finite also at the ends of the support, where λ or μ is 0.
template <class T>
struct Outputs {
    V<T> sigma, rho_f, rho_f_bar, delta, end_A, end_B;
};

// Adjoints of the outputs. end_A is that of log(ρ f) over e^λ − 1, end_B that of log(ρ f̄) over
// e^μ − 1.
template <class T>
struct OutputAdjoint {
    V<T> sigma, log_rho_f, log_rho_f_bar, log_rho, log_delta, end_A, end_B;
};

// Adjoints of the inputs, which equation (22) computes from those of the outputs.
template <class T>
struct InputAdjoint {
    V<T> z, lambda, mu, log_delta_z;
};

// What (22) needs of the ends of the support: σ(z_A), σ(−z_B) and flat = 1 / (e^D − 1).
template <class T>
struct Ends {
    V<T> sigma_A, sigma_minus_B, flat;

    Ends(const Unit<T>& u, bool open_A, bool open_B) {
        sigma_A = open_A ? V<T>{} : u.at_A.plus;
        sigma_minus_B = open_B ? V<T>{} : u.at_B.minus;
        flat = open_A || open_B ? V<T>{} : exp<T>(-u.D) / u.kappa_D;
    }
};

// Hands the gradient in the weights of a deeper layer to `write`, by rows of θ, and sets the
// output adjoints of the layer below, equation (23). `in` holds the layer's input adjoints, in
// units of the sums Σ W ρ f, Σ W ρ f̄ and Σ W Δ.
template <class T, class Write>
void pass_down(const Layer<T>& layer, const std::vector<InputAdjoint<T>>& in,
               const std::vector<Outputs<T>>& outputs, std::vector<OutputAdjoint<T>>& below,
               Write write) {
    const int count = int(layer.units.size()), inputs = layer.inputs;
    for (int o = 0; o < count; ++o) {
        write(layer.start + count * inputs + o, -in[o].z * layer.units[o].W_sum);
    }
    for (int j = 0; j < inputs; ++j) {
        const Outputs<T>& out = outputs[j];
        V<T> sigma{}, rho_f{}, rho_f_bar{}, delta{};
        for (int o = 0; o < count; ++o) {
            const V<T> W = layer.W[o * inputs + j];
            sigma += W * in[o].z;
            rho_f += W * in[o].lambda;
            rho_f_bar += W * in[o].mu;
            delta += W * in[o].log_delta_z;
            const V<T> in_W = in[o].z * (out.sigma - layer.units[o].b) + in[o].lambda * out.rho_f +
                              in[o].mu * out.rho_f_bar + in[o].log_delta_z * out.delta;
            write(layer.start + o * inputs + j, -layer.W_bend[o * inputs + j] * in_W);
        }
        below[j].sigma = sigma;
        below[j].log_rho_f = rho_f * out.rho_f;
        below[j].log_rho_f_bar = rho_f_bar * out.rho_f_bar;
        below[j].log_rho = V<T>{};
        below[j].log_delta = delta * out.delta;
        below[j].end_A = rho_f * out.end_A;
        below[j].end_B = rho_f_bar * out.end_B;
    }
}

// The log-probability that was evaluated last, and its gradient, from the top layer down.
// `Derived` evaluates it: its at(k) is layer k at the point, or at the lower of two points, and its
// input_adjoint(…) is equation (22).
template <class T, class Derived>
class Gradient {
   public:
    Gradient(const int64_t* hidden, int depth) : pnn_(hidden, depth), terms_(hidden[depth - 1]) {
        for (int k = 0; k < depth; ++k) {
            out_.emplace_back(hidden[k], OutputAdjoint<T>{});
            in_.emplace_back(hidden[k]);
            outputs_.emplace_back(hidden[k]);
        }
    }

    // Hands the gradient to `write`, by rows of θ.
    template <class Write>
    void gradient(T A, T B, Write write) {
        auto& top = out_.back();
        for (size_t o = 0; o < top.size(); ++o) {
            const V<T> p = exp<T>(pnn_.log_q[o]), q = exp<T>(terms_[o] - total_);
            top[o].log_rho = -p;
            top[o].log_delta = q;
            write(pnn_.last() + int(o), q - p);
        }
        for (size_t k = pnn_.layers.size() - 1; k > 0; --k) {
            set_input_adjoints(k);
            set_outputs(k - 1);
            pass_down<T>(pnn_.layers[k], in_[k], outputs_[k - 1], out_[k - 1], write);
        }
        first_layer(A == -infinity<T>, B == infinity<T>, write);
    }

   protected:
    PNN<T> pnn_;
    std::vector<V<T>> terms_;  // the result is log Σ e^terms, over the units of the top layer
    V<T> total_{};             // the result

   private:
    std::vector<std::vector<OutputAdjoint<T>>> out_;
    std::vector<std::vector<InputAdjoint<T>>> in_;
    std::vector<std::vector<Outputs<T>>> outputs_;

    const Derived& derived() const { return static_cast<const Derived&>(*this); }

    void set_input_adjoints(size_t k) {
        const auto& at = derived().at(k);
        for (size_t o = 0; o < at.size(); ++o) {
            const Unit<T>& u = pnn_.layers[k].units[o];
            const InputAdjoint<T> in =
                Derived::input_adjoint(u, at[o], out_[k][o], Ends<T>(u, false, false));
            in_[k][o] = {in.z, in.lambda * u.scale, in.mu * u.scale,
                         in.log_delta_z / at[o].W_delta};
        }
    }

    void set_outputs(size_t k) {
        const auto& at = derived().at(k);
        for (size_t j = 0; j < at.size(); ++j) {
            const Unit<T>& u = pnn_.layers[k].units[j];
            Outputs<T>& out = outputs_[k][j];
            out.sigma = at[j].at.plus;
            out.rho_f = at[j].rho_f;
            out.rho_f_bar = u.rho_f_bar;
            out.delta = at[j].delta;
            out.end_A = u.rho * exp<T>(at[j].log_fall - at[j].lambda) / u.kappa_D;
            out.end_B = u.rho * exp<T>(u.log_climb - u.mu) / u.kappa_D;
        }
    }

    // z = W (x − b), λ = W (x − A), μ = W (B − x) and z′ = W. With two points s and t, z and λ are
    // at s, μ = W (B − t) and δ = W (t − s).
    template <class Write>
    void first_layer(bool open_A, bool open_B, Write write) const {
        const auto& units = pnn_.layers[0].units;
        const auto& at = derived().at(0);
        const V<T> zero{};
        for (size_t o = 0; o < units.size(); ++o) {
            const Unit<T>& u = units[o];
            const InputAdjoint<T> in =
                Derived::input_adjoint(u, at[o], out_[0][o], Ends<T>(u, open_A, open_B));
            const V<T> lambda = open_A ? zero : in.lambda * at[o].lambda;
            const V<T> mu = open_B ? zero : in.mu * u.mu;
            write(int(o), -u.bend * (in.z * at[o].z + lambda + mu + in.log_delta_z));
            write(int(units.size() + o), -u.W * in.z);
        }
    }
};

}  // namespace nits
