#pragma once

// Reads .cases files; README.md beside this file describes them.

#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pyc::test {

struct Tolerance {
  int64_t ulp = 0;
  double abs = 0.0;
  double rel = 0.0;
};

struct Refusal {
  std::string code;
  std::string message;  // a part of it
  bool at_run = false;
};

struct Case {
  std::string name;
  int line = 0;
  std::string op;                   // with its attributes
  std::vector<std::string> inputs;  // "f32[2] dense(1.0, 2.0)", or a type alone
  std::vector<std::string> outputs;
  Tolerance tolerance;
  std::optional<Refusal> refusal;
};

// The word a line begins with, and the rest.
struct Line {
  int number = 0;
  std::string key;
  std::string rest;
};

inline std::vector<Line> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Line> lines;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty() || text[0] == '#') continue;
    if (text[0] == ' ' && !lines.empty()) {
      lines.back().rest += " " + text.substr(text.find_first_not_of(' '));
      continue;
    }
    const size_t space = text.find(' ');
    const bool bare = space == std::string::npos;
    lines.push_back({number, text.substr(0, space), bare ? "" : text.substr(space + 1)});
  }
  return lines;
}

inline Tolerance parse_tolerance(const std::string& text) {
  Tolerance result;
  std::istringstream words(text);
  std::string kind;
  double value = 0.0;
  while (words >> kind >> value) {
    if (kind == "ulp") {
      result.ulp = static_cast<int64_t>(value);
    } else if (kind == "abs") {
      result.abs = value;
    } else if (kind == "rel") {
      result.rel = value;
    } else {
      throw std::runtime_error("unknown tolerance " + text);
    }
  }
  return result;
}

// CODE "part of the message", with \" for a quote.
inline Refusal parse_refusal(const std::string& text, bool at_run) {
  const size_t open = text.find(" \"");
  if (open == std::string::npos || text.back() != '"') throw std::runtime_error("bad " + text);
  Refusal result{text.substr(0, open), "", at_run};
  for (size_t i = open + 2; i + 1 < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    result.message += text[i];
  }
  return result;
}

// Throws std::runtime_error when the file is malformed.
inline std::vector<Case> read_cases(const std::string& path) {
  std::vector<Case> cases;
  for (const Line& line : read_lines(path)) {
    if (line.key == "case") {
      cases.push_back({});
      cases.back().name = line.rest;
      cases.back().line = line.number;
      continue;
    }
    const std::string where = path + ":" + std::to_string(line.number) + ": ";
    if (cases.empty()) throw std::runtime_error(where + "expected 'case'");
    Case& c = cases.back();
    if (line.key == "op") {
      c.op = line.rest;
    } else if (line.key == "in") {
      c.inputs.push_back(line.rest);
    } else if (line.key == "out") {
      c.outputs.push_back(line.rest);
    } else if (line.key == "tol") {
      c.tolerance = parse_tolerance(line.rest);
    } else if (line.key == "expect-error" || line.key == "expect-run-error") {
      c.refusal = parse_refusal(line.rest, line.key == "expect-run-error");
    } else {
      throw std::runtime_error(where + "unknown word '" + line.key + "'");
    }
  }
  return cases;
}

// "f32[2,3] dense(…)" → "f32[2,3]".
inline std::string type_of(const std::string& tensor) { return tensor.substr(0, tensor.find(' ')); }
// "reduce_sum {axes=[1]}" → "reduce_sum".
inline std::string op_name(const std::string& op) { return op.substr(0, op.find(' ')); }

}  // namespace pyc::test
