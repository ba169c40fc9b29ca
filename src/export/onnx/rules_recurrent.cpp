#include <sstream>

#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

// "hard_sigmoid,tanh" as "HardSigmoid", "Tanh".
Names activations_of(const std::string& joined) {
  Names names;
  std::istringstream words(joined);
  for (std::string word; std::getline(words, word, ',');) {
    std::string name;
    bool upper = true;
    for (const char c : word) {
      if (c == '_') {
        upper = true;
        continue;
      }
      name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
    names.push_back(name);
  }
  return names;
}

void recurrent(Emitter& e, const char* op, std::string_view optional, const char* more) {
  NodeAttrs attrs = e.attrs("direction layout activation_alpha=alphas activation_beta=betas");
  for (auto& attr : e.attrs(more)) attrs.push_back(attr);
  attrs.emplace_back("hidden_size", e.in_type(2).shape.back());
  if (!e.text("activations").empty()) {
    attrs.emplace_back("activations", activations_of(e.text("activations")));
  }
  if (e.real("clip") != 0.0) attrs.emplace_back("clip", static_cast<float>(e.real("clip")));
  e.write(op, e.optional_inputs(3, optional), e.read_outputs(), attrs);
}

void lstm(Emitter& e) {
  recurrent(e, "LSTM", "b sequence_lens initial_h initial_c p", "input_forget");
}
void gru(Emitter& e) { recurrent(e, "GRU", "b sequence_lens initial_h", "linear_before_reset"); }
void rnn(Emitter& e) { recurrent(e, "RNN", "b sequence_lens initial_h", ""); }

constexpr Rule kRecurrentRules[] = {
    {"gru", gru},
    {"lstm", lstm},
    {"rnn", rnn},
};

}  // namespace

Rules recurrent_rules() { return kRecurrentRules; }

}  // namespace pyc::onnx::exporting
